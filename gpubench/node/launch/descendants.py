"""The processes below one of ours, and their end.

psutil knows a process by its number and its beginning, and looks at both before it sends a signal: none reaches a
process that has got a dead one's number.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable

import psutil


def find_process(pid: int) -> psutil.Process | None:
    """The process with this number now; None where there is none."""
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def list_descendants(root: psutil.Process | None) -> list[psutil.Process]:
    """Every live process below `root`; none where that is gone and another may have its number."""
    try:
        return root.children(recursive=True) if root else []
    except psutil.NoSuchProcess:
        return []


def kill_processes(processes: Iterable[psutil.Process]) -> None:
    """SIGKILL to each that still lives."""
    for process in processes:
        with contextlib.suppress(
            psutil.NoSuchProcess, psutil.AccessDenied
        ):  # it may be another user's by now
            process.kill()


def kill_process_group(leader: psutil.Process | None) -> None:
    """SIGKILL to the process group that `leader` leads; it may be a zombie, which keeps its number."""
    if leader is not None and leader.is_running():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader.pid, signal.SIGKILL)
