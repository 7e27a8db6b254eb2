"""Signals: the first one stops after everything is written down or cleared away, the second at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from gpubench.basics.errors import ResumableStopError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
WITHOUT_CTRL_C = tuple(number for number in SIGNALS if number != signal.SIGINT)
AT_ONCE = 130
_FRESH_LINE = "\r\x1b[2K\x1b[?25h"
"""On a terminal: what is left of a bar goes, and the cursor comes back."""


class StopListener:
    """Call it to ask whether to stop."""

    def __init__(self, before_exit: Sequence[Callable[[], None]], first: Callable[[], None]) -> None:
        self.signal: int | None = None
        self._before_exit = before_exit
        self._first = first

    def __call__(self) -> bool:
        return self.signal is not None

    def _handle_signal(self, number: int, _: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            self._first()
            return
        last, self._before_exit = self._before_exit, ()  # a third signal waits for none of them
        for tidy in last:
            with contextlib.suppress(Exception):  # whatever fails, it ends at once
                tidy()
        # The fork server dies with this process, and all trials with it.
        os._exit(AT_ONCE if number == signal.SIGINT else 128 + number)


@contextlib.contextmanager
def listen_for_stop_signals(
    before_exit: Sequence[Callable[[], None]],
    first: Callable[[], None] = lambda: None,
    numbers: Sequence[int] = SIGNALS,
) -> Iterator[StopListener]:
    """A Stop that listens to SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2, or to `numbers`, inside the block.

    Signals that were ignored stay so: that is what nohup means. `before_exit` is called, one after the other,
    before a second signal ends the process at once; `first` at the first one.
    """
    stop = StopListener(before_exit, first)
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop._handle_signal) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def block_signals(numbers: Sequence[int]) -> Iterator[None]:
    """These signals wait until the block is left; in processes that are started inside, until they let them through."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _SignalReceived(BaseException):
    """The first signal. No Exception, so that nothing takes it for an error of its own."""


@contextlib.contextmanager
def unwind_on_signals(done: str, at_once: str, numbers: Sequence[int] = SIGNALS) -> Iterator[None]:
    """For work that asks nobody whether to stop: the first signal leaves the block, tidying on the way out.

    Then it raises ResumableStopError with the words of `done`; a second one ends at once, with the line `at_once`.
    """

    def leave() -> None:
        raise _SignalReceived

    try:
        with listen_for_stop_signals([lambda: write_unbuffered_stderr_line(at_once)], leave, numbers):
            yield
    except _SignalReceived:
        raise ResumableStopError(done) from None


def write_unbuffered_stderr_line(text: str) -> None:
    """One line on stderr, past the stream's buffer, which the signal may have caught half-way; never waits for it."""
    writable = select.poll()
    writable.register(2, select.POLLOUT)
    if writable.poll(0):  # a terminal that was halted (Ctrl-S) or a full pipe would hold up the end
        clears = os.isatty(2) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        os.write(2, f"{_FRESH_LINE if clears else ''}{text}\n".encode(errors="backslashreplace"))


def ignore_stop_signals() -> None:
    """For a process that has told all and is about to end: a late signal would only take its exit code away."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def name_signal(number: int) -> str:
    """`SIGTERM`; `signal 99` for one that has no name."""
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")
