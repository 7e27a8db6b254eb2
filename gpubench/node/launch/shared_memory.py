"""Shared memory that a trial's processes have left: torch's segments, which are named after who made them.

torch takes the name away as soon as both sides have the segment open, and the memory goes with its last user. A process
that is killed in between leaves it for ever.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

import psutil

from gpubench.basics import linux
from gpubench.basics.regular_file import read_regular_file

NOTES = "processes"
"""In a job's scratch folder: a line for each of its processes: id, pid namespace, Unix time of its beginning."""
FOLDER = Path("/dev/shm")
_SEGMENT = re.compile(r"torch_(\d+)_\d+_\d+")
_COARSE_S = 1.0
"""Times of files may lie a little behind those that processes read."""


def note_future_forks(scratch: Path) -> None:
    """From now on every process that is forked by Python from this one, or below it, notes itself in `scratch`."""

    def note() -> None:
        line = f"{os.getpid()} {linux.read_pid_namespace()} {time.time():.3f}\n".encode()
        with contextlib.suppress(OSError):  # a disk is full: what it may leave stays, and the trial goes on
            file = os.open(scratch / NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)

    os.register_at_fork(after_in_child=note)


def remove_leftover_segments(scratch: Path, folder: Path = FOLDER) -> list[str]:
    """Removes the segments of processes that have noted themselves in `scratch` and are gone; returns their names.

    Whatever may be another's stays: of another user, of a process that lives, older than the process whose number it
    bears, or of another pid namespace.
    """
    began = _read_process_starts(scratch)
    removed = []
    with contextlib.suppress(OSError):  # no shared memory here, or not for us
        for entry in os.scandir(folder) if began else ():
            match = _SEGMENT.fullmatch(entry.name)
            if match is None or int(match[1]) not in began or psutil.pid_exists(int(match[1])):
                continue
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                since = began[int(match[1])] - _COARSE_S
                is_own_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
                if is_own_file and status.st_ctime >= since:
                    os.unlink(entry.path)  # noqa: PTH108
                    removed.append(entry.name)
    return removed


def _read_process_starts(scratch: Path) -> dict[int, float]:
    """Process id -> when the first process with it began, of this pid namespace."""
    began: dict[int, float] = {}
    try:
        lines = read_regular_file(scratch / NOTES).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    namespace_here = linux.read_pid_namespace()
    for line in lines:
        pid, namespace, at = [*line.split(), "", "", ""][:3]
        with contextlib.suppress(ValueError):  # cut short by a full disk
            if namespace_here and namespace == namespace_here:
                began.setdefault(int(pid), float(at))
    return began
