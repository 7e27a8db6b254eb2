"""Which sweep of this host measures on which CPUs: locks on parts of a file in shared memory.

Several sweeps may work through one plan on one host; on the same CPUs they do so in turns, or they would slow each
other. The kernel lets a lock go when its process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Collection
from pathlib import Path

from gpubench.node.gpu_hold import SHARED


class CpuHold:
    """The CPUs on which one sweep measures now."""

    def __init__(self, folder: Path = SHARED) -> None:
        self._folder = folder
        self._file: int | None = None

    def take(self, folder_id: str, cpus: Collection[int]) -> bool:
        """Whether these CPUs are this sweep's now: False while another one measures on any of them.

        `folder_id`: of the results folder; sweeps into others are not asked after. True, too, where nothing can be
        locked: then nobody can be kept apart.
        """
        self.release()
        path = self._folder / f"gpubench-{folder_id}.cpus"
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        except OSError:  # no room, or a file of another user
            return True
        try:
            for cpu in cpus:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, cpu)
            is_same = os.fstat(file).st_ino == path.stat().st_ino  # else its last owner has just removed it
        except OSError:
            is_same = False
        if not is_same:
            os.close(file)
            return False
        self._file, self._path = file, path
        return True

    def release(self) -> None:
        """Gives them up. Nobody holds the file any more where all of it can be locked: then it is removed."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path.unlink()
        os.close(self._file)
        self._file = None
