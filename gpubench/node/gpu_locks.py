"""Which sweep of this host has which GPUs: a lock for each, which the kernel lets go when its process ends.

Sweeps that start at the same moment find each other's GPUs idle; so a look at them is not enough.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path

SHARED = Path("/dev/shm")
"""In memory, and the same for all users of a host."""


class GpuLocks:
    """The GPUs that one sweep has for itself. `folder`: where locks lie; None: where all users of the host see them."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or (SHARED if SHARED.is_dir() else Path(tempfile.gettempdir()))
        self._held: dict[str, int] = {}

    def take(self, uuids: Sequence[str]) -> list[str]:
        """Takes those that no other sweep has; returns those that one has."""
        taken = []
        for uuid in uuids:
            if uuid in self._held:
                continue
            try:
                file = _open_lock_file(self._folder / f"gpubench-{uuid}.lock")
            except OSError:  # no room, or no right: then the look at the GPU alone must do
                continue
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                taken.append(uuid)
            except OSError:  # a file system that knows no locks
                os.close(file)
            else:
                self._held[uuid] = file
        return taken

    def release(self) -> None:
        """Gives all of them up. Their files stay: to remove one that another sweep is about to lock lets two in."""
        for file in self._held.values():
            with contextlib.suppress(OSError):
                os.close(file)
        self._held.clear()


def _open_lock_file(path: Path) -> int:
    """Whoever made it: in a folder of all users the kernel lets nobody open another's file as if to make it."""
    for _ in range(2):
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                return _create_lock_file(path)
    raise FileNotFoundError(path)


def _create_lock_file(path: Path) -> int:
    """It comes into being with its rights: under a strict umask other users could not lock it."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    file = os.open(aside, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(file, 0o644)
        os.link(aside, path)
    except OSError:
        os.close(file)
        raise
    finally:
        aside.unlink(missing_ok=True)
    return file
