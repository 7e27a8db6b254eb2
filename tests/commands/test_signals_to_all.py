"""Batch systems signal all processes of a job at once: the trial's and the server's ends are none of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from place import HELD, LIMIT_S, SMALL, Place, until
from warm_command import Started

SWEEP = ("sweep", *SMALL, "--model", "nets.py:net", "--batch-size")
AGAIN = "to continue, run the same command again\n"
TURNS = "another sweep measures on these CPUs: the two of them take turns"
STOPPING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)

AnySweep = Started | subprocess.Popen[str]


@pytest.fixture(autouse=True)
def hold(place: Place) -> Path:
    """A model waits for as long as this file is there."""
    file = place.home / "hold"
    file.touch()
    (place.home / "nets.py").write_text(HELD.format(hold=str(file)))
    return file


@pytest.mark.slow
def test_a_sweep_whose_trial_hears_it_first_and_those_that_wait_can_be_gone_on_with(place: Place) -> None:
    """The others wait for the CPUs, and each of them hears another signal."""
    first = place.start(*SWEEP, "8")
    _wait_for_training(first)
    waiting = [place.start(*SWEEP, batch) for batch in ("4", "16", "32", "64")]
    for sweep, number in zip(waiting, STOPPING, strict=True):
        _read_until(sweep, TURNS)
        sweep.send_signal(number)
    for sweep in waiting:
        _, err = sweep.communicate(timeout=LIMIT_S)
        assert sweep.returncode == 75
        assert err.endswith(f"stopped; {AGAIN}")
    assert len(list((place.home / "results" / "batch-size").glob("logs/*/*.log"))) == 1

    _signal(psutil.Process(first.pid).children(recursive=True)[::-1], signal.SIGUSR1)
    time.sleep(0.1)
    first.send_signal(signal.SIGUSR1)
    out, err = first.communicate(timeout=LIMIT_S)
    assert first.returncode == 75, err
    assert err.endswith(AGAIN)
    assert "x interrupted: the sweep was" in out


@pytest.mark.slow
def test_a_server_that_is_only_starting_ends_no_sweep_and_is_as_those_of_warm_commands(place: Place) -> None:
    """Threads, open files, whether it leads a session, signals that it ignores: else other tests would show nothing."""
    cold = place.start_cold(*SWEEP, "8", "--out", "cold")
    until(lambda: bool(_list_servers(cold)), "the fork server to start")
    _signal(_list_servers(cold), signal.SIGTERM)
    warm = place.start(*SWEEP, "8", "--out", "warm")
    seen = []
    for sweep in (cold, warm):
        _wait_for_training(sweep)
        (server,) = psutil.Process(sweep.pid).children()
        ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{server.pid}/status").read_text())
        assert ignored is not None
        files = min(
            _count_files(server) for _ in range(20)
        )  # one more is open for the moment in which it forks
        is_leader = os.getsid(server.pid) == server.pid
        seen.append((server.num_threads(), files, is_leader, ignored[1], server.cwd()))
        sweep.kill()
        sweep.communicate()
    assert seen[0] == seen[1]


def _count_files(process: psutil.Process) -> int:
    time.sleep(0.05)
    return process.num_fds()


def _read_until(sweep: AnySweep, words: str) -> None:
    """Reads what it says up to a line with these words."""
    assert sweep.stderr is not None
    assert any(words in line for line in sweep.stderr), "it ended before"


def _wait_for_training(sweep: AnySweep) -> None:
    """Returns once its trial has a leader and a rank."""
    _read_until(sweep, "started")
    process = psutil.Process(sweep.pid)
    until(lambda: len(process.children(recursive=True)) >= 3, "server, leader and rank")
    time.sleep(0.3)  # the leader has made the signals its own by now


def _list_servers(sweep: AnySweep) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        children = psutil.Process(sweep.pid).children()
        return [child for child in children if "gpubench.node.launch.server" in child.cmdline()]
    return []


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
