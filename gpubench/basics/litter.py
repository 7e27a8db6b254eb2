"""Files that a killed process has left half-written, by their names: whose they are, and whether it lives.

Process ids mean something only on this host and in this pid namespace. Other hosts' processes may be at work, so that
only what is old is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

_OF_RESULTS = (".probe-*", ".*.tmp", "*/.*.tmp", "*/*/.*.tmp")
_OWNER = re.compile(r"\.probe-(\d+)|\..+?[.-](\d+)\.tmp")
LONG_S = 300.0
"""Files live for a moment that name no process, or one of whatever pid namespace: as old as this, they are nobody's."""


def remove_from_results(folder: Path, now: float) -> None:
    """Removes what killed sweeps have left in a results folder: what is old, for others may be at work there.

    `now`: by the clock of its file system, in seconds of the epoch.
    """
    left = (path for pattern in _OF_RESULTS for path in folder.glob(pattern) if _is_abandoned(path))
    remove(path for path in left if _age_s(path, now) > LONG_S)


def remove_from_home(folder: Path, prefix: str) -> None:
    """Removes what killed processes of this host have left in a folder that several may write into at once."""
    now = time.time()
    mine = f"{prefix}*.{os.uname().nodename}-*.tmp"
    remove(path for path in folder.glob(mine) if _is_abandoned(path) and _age_s(path, now) > LONG_S)


def remove(paths: Iterable[Path]) -> None:
    """Removes those that are this user's own plain files."""
    for path in paths:
        with contextlib.suppress(OSError):  # gone meanwhile, or it may not be removed: litter does no harm
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
                path.unlink()


def _is_abandoned(path: Path) -> bool:
    """Whether the process that the name tells is gone. One of this process's own number was: it begins only now."""
    match = _OWNER.fullmatch(path.name)
    if match is None:
        return False
    pid = int(match[1] or match[2])
    return pid == os.getpid() or not psutil.pid_exists(pid)


def _age_s(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0
