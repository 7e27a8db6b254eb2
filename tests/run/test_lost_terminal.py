"""Who looks on, and who has gone: the pipe behind stderr or stdout is closed, or the terminal hung up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from warm_command import Started, WarmCommand

from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.store.work_claims import list_workers

SWEEP = (
    "sweep", "--device", "cpu", "--variant", "synthetic", "--model", "lenet", "--set", "input_size=28",
    "--set", "num_classes=4", "--set", "train_images=512", "--epochs", "2", "--rounds", "1",
)  # fmt: skip


def sweep(folder: Path, *more: str) -> tuple[str, ...]:
    return (*SWEEP, "--out", str(folder), *more)


def on_a_terminal(warm: WarmCommand, words: Sequence[str], home: Path) -> tuple[Started, int]:
    """The command with a terminal of its own, and the other end of that."""
    ours, terminal = os.openpty()
    started = warm.start(
        words, cwd=home, env={**os.environ, "TERM": "xterm"}, stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    return started, ours


def records(folder: Path) -> list[Record]:
    return Results(folder).read_records()


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "form"), [("stderr", ()), ("stdout", ("--json",))])
def test_a_closed_pipe_ends_no_sweep(
    tmp_path: Path, warm_command: WarmCommand, lost: str, form: tuple[str, ...]
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, lost: write_end}
    words = sweep(tmp_path / "out", "--batch-size", "32,64", *form)
    started = warm_command.start(words, cwd=tmp_path, env=os.environ, **streams)
    os.close(write_end)
    assert started.wait(60) == 0
    assert [record.status for record in records(tmp_path / "out")] == ["ok", "ok"]
    assert (tmp_path / "out" / "table.csv").exists()


@pytest.mark.slow
def test_a_terminal_that_hangs_up_stops_the_sweep_resumably(
    tmp_path: Path, warm_command: WarmCommand
) -> None:
    words = list(sweep(tmp_path / "out", "--batch-size", "32,64"))
    words[words.index("2")] = "5000"  # epochs
    started, terminal = on_a_terminal(warm_command, words, tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out/logs/*/*.log")) and time.monotonic() < deadline:
        os.read(terminal, 10_000)
    os.close(terminal)  # the kernel sends SIGHUP, and every later write to the terminal fails
    assert started.wait(60) == 75
    assert [record.status for record in records(tmp_path / "out")] == ["interrupted"]
    assert list_workers(tmp_path / "out") == [], "its claim is given back"


def test_two_quick_signals_end_it_at_once_and_the_terminal_says_what_is_kept(
    tmp_path: Path, warm_command: WarmCommand
) -> None:
    words = list(sweep(tmp_path / "out", "--batch-size", "32"))
    words[words.index("2")] = "2,5000"  # epochs: one trial that ends, one that does not
    started, terminal = on_a_terminal(warm_command, words, tmp_path)
    shown = b""
    while len(list(tmp_path.glob("out/logs/*/*.log"))) < 2:
        shown += os.read(terminal, 10_000)
    # Both are there before the process goes on, and Python's handlers run in the order of the signals' numbers.
    for number in (signal.SIGSTOP, signal.SIGHUP, signal.SIGINT, signal.SIGCONT):
        started.send_signal(number)
    with contextlib.suppress(OSError):  # the last one has closed the terminal
        while some := os.read(terminal, 10_000):
            shown += some
    os.close(terminal)
    assert started.wait(60) == 130
    lines = shown.decode().rstrip().splitlines()
    assert lines[-1].endswith(
        "ended at once; all that was stored is kept (1 trial of this sweep), what was under way is lost; "
        "to continue, run the same command again"
    )
    assert "Traceback" not in shown.decode()
    hides, shows = shown.rfind(b"\x1b[?25l"), shown.rfind(b"\x1b[?25h")
    # The live view hid the cursor, and it is back.
    assert 0 < hides < shows
    assert [record.status for record in records(tmp_path / "out")] == ["ok"]
    assert list_workers(tmp_path / "out") == [], "its claim is given back"
