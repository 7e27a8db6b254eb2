"""Batch systems signal all processes of a job at once: the trial's and the server's ends are none of their own."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from place import HELD, LIMIT_S, SMALL, Place, until
from warm_command import Started

SWEEP = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size", "8")
AGAIN = "to continue, run the same command again\n"

AnySweep = Started | subprocess.Popen[str]


@pytest.fixture
def hold(place: Place) -> Path:
    """A model waits for as long as this file is there."""
    file = place.home / "hold"
    file.touch()
    (place.home / "nets.py").write_text(HELD.format(hold=str(file)))
    return file


@pytest.mark.slow
@pytest.mark.usefixtures("hold")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_sweep_whose_trial_hears_it_first_is_stopped_all_the_same(
    place: Place, number: signal.Signals
) -> None:
    started = _start(place)
    _in_training(started)
    _signal(psutil.Process(started.pid).children(recursive=True)[::-1], number)
    time.sleep(0.1)
    started.send_signal(number)
    out, err = started.communicate(timeout=LIMIT_S)
    assert started.returncode == 75, err
    assert err.endswith(AGAIN)
    assert "x interrupted: the sweep was" in out


@pytest.mark.slow
def test_a_server_that_is_only_starting_ends_no_sweep(place: Place, hold: Path) -> None:
    started = place.start_cold(*SWEEP)
    until(lambda: bool(_servers(started)), "the fork server to start")
    _signal(_servers(started), signal.SIGTERM)
    _in_training(started)
    hold.unlink()
    _, err = started.communicate(timeout=LIMIT_S)
    assert started.returncode == 0, err


@pytest.mark.slow
@pytest.mark.usefixtures("hold")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP])
def test_while_another_sweep_measures_on_these_cpus_it_can_be_gone_on_with_too(
    place: Place, number: signal.Signals
) -> None:
    first = _start(place)
    until(lambda: any((place.home / "results" / "batch-size").glob("logs/*/*.log")), "a trial to begin")
    second = place.start(*SWEEP[:-1], "16")
    until(
        lambda: len(list((place.home / "results" / "batch-size").glob("records/*/*.1"))) == 2,
        "the second sweep to claim its trial",
    )
    time.sleep(3)  # it is at the CPUs by then
    second.send_signal(number)
    _, err = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 75
    assert err.endswith(f"stopped; {AGAIN}")
    assert len(list((place.home / "results" / "batch-size").glob("logs/*/*.log"))) == 1
    first.kill()
    first.communicate()


def _start(place: Place) -> Started:
    return place.start(*SWEEP)


def _in_training(started: AnySweep) -> None:
    """Returns once its trial has a leader and a rank."""
    assert started.stderr is not None
    assert any("started" in line for line in started.stderr), "it ended before"
    own = psutil.Process(started.pid)
    until(lambda: len(own.children(recursive=True)) >= 3, "server, leader and rank")
    time.sleep(0.3)  # the leader has made the signals its own by now


def _servers(started: AnySweep) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(started.pid).children()
        return [one for one in children if "gpubench.node.launch.server" in one.cmdline()]
    return []


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
