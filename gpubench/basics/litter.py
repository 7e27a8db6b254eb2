"""Files that a killed process has left half-written, by their names: whose they are, and whether it lives.

Process ids mean something only in one boot of a host and one pid namespace, so names tell these, too. Of what processes
elsewhere have begun only what is old is removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from gpubench.basics.linux import boot, pid_namespace

_RESULT_PATTERNS = (".*.tmp", "*/.*.tmp", "*/*/.*.tmp")
_OWNER = re.compile(r"\..+?(?:\.([0-9a-f]{8})-[0-9a-f]{6})?[.-](\d+)\.tmp")
OLD_S = 300.0
"""Files live for a moment that name no process, or one of whatever pid namespace: as old as this, they are nobody's."""


def remove_from_results(folder: Path, now: float) -> None:
    """Removes what killed processes have left in a results folder, where others may be at work.

    `now`: by the clock of its file system, in seconds of the epoch.
    """
    abandoned = (path for pattern in _RESULT_PATTERNS for path in folder.glob(pattern) if _is_abandoned(path))
    remove(path for path in abandoned if _is_of_this_namespace(path) or _age_s(path, now) > OLD_S)


def name_temporary(path: Path) -> Path:
    """Where a file is written before it is renamed to `path`: beside it, under a name that no other process uses."""
    return path.with_name(f".{path.name}.{_namespace_id()}-{secrets.token_hex(3)}-{os.getpid()}.tmp")


@functools.cache
def _namespace_id() -> str:
    """8 signs for this boot and this pid namespace, inside which process ids mean something."""
    return hashlib.sha256(f"{boot()} {pid_namespace()}".encode()).hexdigest()[:8]


def _is_of_this_namespace(path: Path) -> bool:
    match = _OWNER.fullmatch(path.name)
    return match is not None and match[1] == _namespace_id()


def remove_from_home(folder: Path, prefix: str) -> None:
    """Removes what killed processes of this host have left in a folder that several may write into at once."""
    now = time.time()
    mine = f"{prefix}*.{os.uname().nodename}-*.tmp"
    remove(path for path in folder.glob(mine) if _is_abandoned(path) and _age_s(path, now) > OLD_S)


def remove(paths: Iterable[Path]) -> None:
    """Removes those that are this user's own plain files."""
    for path in paths:
        with contextlib.suppress(OSError):  # gone meanwhile, or it may not be removed: litter does no harm
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid():
                path.unlink()


def _is_abandoned(path: Path) -> bool:
    """Whether the process that the name tells is gone. One of this process's own number was: it begins only now."""
    match = _OWNER.fullmatch(path.name)
    if match is None:
        return False
    pid = int(match[2])
    return pid == os.getpid() or not psutil.pid_exists(pid)


def _age_s(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0
