"""Signals: the first one stops after everything is written down or cleared away, the second at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
AT_ONCE = 130


class Stop:
    """Call it to ask whether to stop."""

    def __init__(self, before_exit: Sequence[Callable[[], None]]) -> None:
        self.signal: int | None = None
        self._before_exit = before_exit

    def __call__(self) -> bool:
        return self.signal is not None

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
            return
        last, self._before_exit = self._before_exit, ()  # a third signal waits for none of them
        for tidy in last:
            with contextlib.suppress(Exception):  # whatever fails, it ends at once
                tidy()
        # The fork server dies with this process, and all trials with it.
        os._exit(AT_ONCE if number == signal.SIGINT else 128 + number)


@contextlib.contextmanager
def stop_on_signals(before_exit: Sequence[Callable[[], None]]) -> Iterator[Stop]:
    """A Stop that listens to SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 inside the block.

    Signals that were ignored stay so: that is what nohup means. `before_exit` is called, one after the other,
    before a second signal ends the process at once.
    """
    stop = Stop(before_exit)
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop._handle) for number in heard}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def say_at_once(text: str) -> None:
    """One line on stderr, past the stream's buffer, which the signal may have caught half-way; never waits for it."""
    writable = select.poll()
    writable.register(2, select.POLLOUT)
    if writable.poll(0):  # a terminal that was halted (Ctrl-S) or a full pipe would hold up the end
        os.write(2, f"{text}\n".encode(errors="backslashreplace"))


def hear_no_more() -> None:
    """For a process that has told all and is about to end: a late signal would only take its exit code away."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
