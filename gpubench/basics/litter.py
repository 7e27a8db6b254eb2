"""Files that a killed process has left half-written: their names tell whose they are.

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
from pathlib import Path

import psutil

from gpubench.basics.linux import read_boot_id, read_pid_namespace

_OWNER = re.compile(r"\..+\.([0-9a-f]{8})-[0-9a-f]{6}-(\d+)\.tmp")
OLD_S = 3600.0
"""As old as this, a half-written file is nobody's."""


def make_temporary_path(path: Path) -> Path:
    """Where a file is written before it is renamed to `path`: beside it, under a name that no other process uses."""
    return path.with_name(f".{path.name}.{_make_namespace_id()}-{secrets.token_hex(3)}-{os.getpid()}.tmp")


@functools.cache
def _make_namespace_id() -> str:
    """8 signs for this boot and this pid namespace, inside which process ids mean something."""
    return hashlib.sha256(f"{read_boot_id()} {read_pid_namespace()}".encode()).hexdigest()[:8]


def remove_abandoned_files(folder: Path, now: float) -> None:
    """Removes what killed processes of this user have left in a folder, and up to two folders down.

    `now`: by the clock of its file system, in seconds of the epoch.
    """
    for pattern in (".*.tmp", "*/.*.tmp", "*/*/.*.tmp"):
        for path in folder.glob(pattern):
            if (match := _OWNER.fullmatch(path.name)) is None:
                continue
            with contextlib.suppress(
                OSError
            ):  # gone meanwhile, or it may not be removed: litter does no harm
                status = path.lstat()
                is_dead = match[1] == _make_namespace_id() and not psutil.pid_exists(int(match[2]))
                is_own_file = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
                if is_own_file and (is_dead or now - status.st_mtime > OLD_S):
                    path.unlink()
