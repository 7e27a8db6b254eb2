"""Signals: the first stops after writing, the second Ctrl-C ends at once."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from gpubench.runner.stopping import AT_ONCE, SIGNALS, stop_on_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_to_stop(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals(lambda: pytest.fail("ended at once")) as stop:
        assert not stop()
        signal.raise_signal(number)
        assert stop()
        assert stop.signal == number
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_ends_at_once() -> None:
    code = (
        "import signal; from gpubench.runner.stopping import stop_on_signals\n"
        "with stop_on_signals(lambda: print('tidied', flush=True)) as stop:\n"
        "    signal.raise_signal(signal.SIGTERM); print(stop(), flush=True)\n"
        "    signal.raise_signal(signal.SIGINT); print('not reached')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (AT_ONCE, "True\ntidied\n")
