"""Who looks on, and who has gone: the pipe behind stderr or stdout is closed, or the terminal hung up."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpubench.results.store import Results
from gpubench.schema.record import Record

SWEEP = (
    "sweep", "--device", "cpu", "--variant", "synthetic", "--model", "lenet", "--set", "input_size=28",
    "--set", "num_classes=4", "--set", "train_images=512", "--epochs", "2", "--rounds", "1",
)  # fmt: skip


def command(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "gpubench", *SWEEP, "--out", str(folder), *more]


def records(folder: Path) -> list[Record]:
    return Results(folder).records()


@pytest.mark.parametrize("lost", ["stderr", "stdout"])
@pytest.mark.parametrize("form", [(), ("--json",), ("-q",)])
def test_a_closed_pipe_ends_no_sweep(tmp_path: Path, lost: str, form: tuple[str, ...]) -> None:
    if lost == "stderr" and form:
        pytest.skip("what stdout carries plays no part there")
    read_end, write_end = os.pipe()
    os.close(read_end)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, lost: write_end}
    done = subprocess.run(command(tmp_path / "out", "--batch-size", "32,64", *form), **streams, check=False)
    os.close(write_end)
    assert done.returncode == 0
    assert [record.status for record in records(tmp_path / "out")] == ["ok", "ok"]
    assert (tmp_path / "out" / "table.csv").exists()


def test_a_terminal_that_hangs_up_stops_the_sweep_resumably(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        words = command(tmp_path / "out", "--batch-size", "32,64", "--epochs", "5000")
        words.remove("2")
        words.remove("--epochs")
        os.execv(words[0], words)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("out/logs/*/*.log")) and time.monotonic() < deadline:
        os.read(terminal, 10_000)
    os.close(terminal)  # the kernel sends SIGHUP, and every later write to the terminal fails
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 75
    assert [record.status for record in records(tmp_path / "out")] == ["interrupted"]
    assert not (tmp_path / "out" / ".lock").exists()


def test_two_quick_signals_end_it_at_once_and_the_terminal_says_what_is_kept(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        words = command(tmp_path / "out", "--batch-size", "32")
        words[words.index("2")] = "2,5000"  # epochs: one trial that ends, one that does not
        os.environ["TERM"] = "xterm"
        os.execv(words[0], words)
    shown = b""
    while len(list(tmp_path.glob("out/logs/*/*.log"))) < 2:
        shown += os.read(terminal, 10_000)
    # Both are there before the process goes on, and Python's handlers run in the order of the signals' numbers.
    for number in (signal.SIGSTOP, signal.SIGHUP, signal.SIGINT, signal.SIGCONT):
        os.kill(pid, number)
    with contextlib.suppress(OSError):  # the last one has closed the terminal
        while some := os.read(terminal, 10_000):
            shown += some
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    lines = shown.decode().rstrip().splitlines()
    assert lines[-1].endswith(
        "ended at once; all that was stored is kept (1 trial of this sweep), what was under way is lost; "
        "to continue, run the same command again"
    )
    assert "Traceback" not in shown.decode()
    hides, shows = shown.rfind(b"\x1b[?25l"), shown.rfind(b"\x1b[?25h")
    assert 0 < hides < shows, "the live view hid the cursor, and it is back"
    assert [record.status for record in records(tmp_path / "out")] == ["ok"]
    assert not (tmp_path / "out" / ".lock").exists()
