"""Signals: the first stops after writing, the second Ctrl-C ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from gpubench.basics.stopping import AT_ONCE, SIGNALS, listen_for_stop_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_to_stop(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with listen_for_stop_signals([lambda: pytest.fail("ended at once")]) as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        assert stop.signal == number
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("second", "code"), [("SIGINT", AT_ONCE), ("SIGTERM", 128 + signal.SIGTERM)])
def test_a_second_signal_ends_at_once(second: str, code: int) -> None:
    program = (
        "import signal; from gpubench.basics.stopping import listen_for_stop_signals\n"
        "with listen_for_stop_signals([lambda: print('tidied', flush=True)]) as stop:\n"
        "    signal.raise_signal(signal.SIGTERM); print(stop(), flush=True)\n"
        f"    signal.raise_signal(signal.{second}); print('not reached')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (code, "True\ntidied\n")


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with listen_for_stop_signals([]) as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_ends_at_once_whatever_fails_on_the_way_and_says_so_where_it_can() -> None:
    """What tidies breaks, and then a pipe that nobody empties has no room for the line."""
    program = (
        "import os, signal\n"
        "from gpubench.basics.stopping import listen_for_stop_signals, write_unbuffered_stderr_line\n"
        "def full():\n"
        "    read, write = os.pipe(); os.set_blocking(write, False); os.write(write, bytes(1 << 20))\n"
        "    os.set_blocking(write, True); os.dup2(write, 2)\n"
        "say = write_unbuffered_stderr_line\n"
        "steps = [lambda: 1 / 0, lambda: say('kept'), full, lambda: say('no room')]\n"
        "with listen_for_stop_signals(steps):\n"
        "    signal.raise_signal(signal.SIGINT); signal.raise_signal(signal.SIGINT); print('not reached')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (AT_ONCE, "", "kept\n")
