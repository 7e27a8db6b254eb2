"""The two Linux process controls that Python does not wrap (prctl(2))."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when the thread that forked it ends. `parent` is that process's id.

    The parent may have died between the fork and this call, so it is looked at once more afterwards.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children, so that it can wait for them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
