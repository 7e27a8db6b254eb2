"""Folders that are there whole or not at all: a lock, a folder beside the place, a rename when it is done."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import marker
from gpubench.datasets.home import ensure_writable_folder
from gpubench.datasets.marker import FolderMarker
from gpubench.datasets.pool import LOOK_S, Progress


def ensure_folder_built(
    place: Path,
    wanted: FolderMarker,
    *,
    complete: Callable[[Path], bool],
    fill: Callable[[Path], None],
    progress: Progress | None = None,
) -> None:
    """Sees to it that the folder `place` is there as `wanted`; `fill` is given an empty folder to write into.

    Any number of processes may call it at once: one builds, the others wait and find it done. `complete` says whether a
    marked folder still has all its files. `progress` is called while it waits, too. Nothing half-built is left behind,
    and what a killed process of this host has left of `place` goes. Raises UsageError where something else lies at
    `place`, UnusableError where it can't be written or has changed since it was made.
    """
    if is_folder_built(place, wanted, complete):
        return
    ensure_writable_folder(place.parent)

    def waiting() -> None:
        if progress is not None:
            progress(0, wanted.train_images + wanted.val_images)

    with _hold_lock(place, waiting):
        if is_folder_built(place, wanted, complete):
            return
        _remove_partial_builds(place)
        partial = place.parent / f"{_make_partial_prefix(place)}{os.getpid()}"
        try:
            partial.mkdir()
            fill(partial)
            wanted.write(partial)
            _move_into_place(partial, place, wanted)
        except OSError as error:
            advice = "free some room, or set GPUBENCH_DATA to a larger disk"
            raise UnusableError(f"can't write {place}: {error.strerror or error}; {advice}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_folder_built(place: Path, wanted: FolderMarker, complete: Callable[[Path], bool]) -> bool:
    """Whether `place` is as wanted. Raises as `ensure_folder_built` where something else, or a part, is there."""
    present = marker.read_marker(place)
    if present is not None and present.fingerprint == wanted.fingerprint:
        if complete(place):
            return True
        raise UnusableError(
            f"{place} has lost or gained files since it was made: remove it, or name another folder"
        )
    if place.is_dir() and not any(place.iterdir()):
        return False
    if place.exists():
        raise UsageError(
            f"{place} is there already and holds something else: remove it, or name another folder"
        )
    return False


def _make_partial_prefix(place: Path) -> str:
    # With the host in its name: locks do not always reach across the nodes of a shared file system.
    return f".{place.name}.partial-{os.uname().nodename}-"


def _remove_partial_builds(place: Path) -> None:
    """Removes what a build of `place` that was killed has left. The lock says that nobody on this host is at it."""
    for path in place.parent.iterdir():
        if path.name.startswith(_make_partial_prefix(place)):
            shutil.rmtree(path, ignore_errors=True)


def format_bytes(size: int) -> str:
    """Bytes in words: 1.1 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 95_000_000 else f"{max(size / 1e6, 0.1):.1f} MB"


def _move_into_place(partial: Path, place: Path, wanted: FolderMarker) -> None:
    try:
        partial.rename(place)
    except OSError:
        # Another node may have been first.
        present = marker.read_marker(place)
        if present is None or present.fingerprint != wanted.fingerprint:
            raise


@contextlib.contextmanager
def _hold_lock(place: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of `place`, a file beside it, which stays. `waiting` is called while another has it."""
    path = place.parent / f".{place.name}.lock"
    descriptor = _open_lock(path)
    try:
        while not _try_lock(path, descriptor):
            waiting()
            time.sleep(LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    """Over NFS whoever locks it must be able to write; elsewhere another user's, too, is locked by reading it."""
    try:
        with contextlib.suppress(PermissionError):
            return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise UnusableError(
            f"can't lock {path}: {error.strerror}; or set GPUBENCH_DATA to a folder of your own"
        ) from error


def _try_lock(path: Path, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise UnusableError(
            f"can't lock {path}: {error.strerror}; set GPUBENCH_DATA to another disk"
        ) from error
    return True
