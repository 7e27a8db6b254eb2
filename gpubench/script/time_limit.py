"""A bound on the CPU time of a block, for what a user's pattern may make endless."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


class CpuTimeError(Exception):
    """A block has used up its CPU time."""


@contextlib.contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Raises CpuTimeError in the block once this process has worked for so long. In its main thread only.

    Python's regular expressions look for signals while they search, so that one which would take years ends, too.
    """
    signal.signal(signal.SIGVTALRM, _raise_cpu_time_error)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _raise_cpu_time_error(*_: object) -> None:
    raise CpuTimeError
