"""The processes below one of ours, and their end. No signal ever reaches a process that has got a dead one's number.

A process is known by its number and its beginning, never by its number alone, and is held by a pidfd while it is looked
at: what the signal meets is what was looked at.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator

import psutil

_PROCESS_GROUP = 1 << 2
"""PIDFD_SIGNAL_PROCESS_GROUP of pidfd_send_signal(2): since Linux 6.9."""


def process(pid: int) -> psutil.Process | None:
    """The process with this number now; None where there is none."""
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def descendants(root: psutil.Process | None) -> list[psutil.Process]:
    """Every live process below `root`; none where that is gone and another may have its number."""
    if root is None:
        return []
    try:
        processes = root.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    family = {root.pid, *(process.pid for process in processes)}
    return [process for process in processes if _parent(process) in family]


def _parent(process: psutil.Process) -> int | None:
    """Its parent's number, asked when it is known by its beginning: its own number may be another's by now."""
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return None


def kill(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each that still lives."""
    for process in processes:
        # One that has become another user's is not ours to end any more.
        gone = (ProcessLookupError, PermissionError, psutil.NoSuchProcess, psutil.AccessDenied)
        with contextlib.suppress(*gone), _open_pidfd(process) as pidfd:
            if pidfd is None:
                process.kill()
            else:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def kill_group(leader: psutil.Process | None) -> None:
    """SIGKILL to the process group that `leader` leads; it may be a zombie, which keeps its number."""
    if leader is None:
        return
    with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess), _open_pidfd(leader) as pidfd:
        if pidfd is not None:
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL, None, _PROCESS_GROUP)
            except OSError as error:
                if isinstance(error, ProcessLookupError):
                    raise
            else:
                return
        os.killpg(leader.pid, signal.SIGKILL)  # an older kernel


@contextlib.contextmanager
def _open_pidfd(process: psutil.Process) -> Iterator[int | None]:
    """A pidfd of it; None where the kernel, or this build of Python, gives none.

    Raises NoSuchProcess or ProcessLookupError where it is gone.
    """
    pidfd = None
    try:
        if hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal"):
            pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, a sandbox, no file left
        pass
    try:
        if not process.is_running():
            raise psutil.NoSuchProcess(process.pid)
        yield pidfd
    finally:
        if pidfd is not None:
            os.close(pidfd)
