"""Signals: the first one stops after writing everything down, the second at once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
AT_ONCE = 130


class Stop:
    """Call it to ask whether to stop."""

    def __init__(self, before_exit: Callable[[], None]) -> None:
        self.signal: int | None = None
        self._before_exit = before_exit

    def __call__(self) -> bool:
        return self.signal is not None

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.signal is None:
            self.signal = number
        elif number == signal.SIGINT:
            # The fork server dies with this process, and all trials with it.
            self._before_exit()
            os._exit(AT_ONCE)


@contextlib.contextmanager
def stop_on_signals(before_exit: Callable[[], None]) -> Iterator[Stop]:
    """A Stop that listens to SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 inside the block.

    `before_exit` is called before a second SIGINT ends the process at once: it gives the terminal back.
    """
    stop = Stop(before_exit)
    before = {number: signal.signal(number, stop._handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
