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
from gpubench.datasets import folder, marker
from gpubench.datasets.marker import FolderMarker
from gpubench.datasets.pool import LOOK_S, Progress


def ensure_folder_built(
    place: Path, wanted: FolderMarker, fill: Callable[[Path], None], progress: Progress | None = None
) -> None:
    """Sees to it that the folder `place` is there as `wanted`; `fill` is given an empty folder to write into.

    Any number of processes may call it at once: one builds, the others wait and find it done. `progress` is called
    while it waits, too. Nothing half-built is left behind, and what a killed process of this host has left of `place`
    goes. Raises UsageError where something else lies at `place`, UnusableError where it can't be written or has changed
    since it was made.
    """
    if is_folder_built(place, wanted):
        return
    marker.ensure_writable_folder(place.parent)
    # With the host in its name: locks do not always reach across the nodes of a shared file system.
    prefix = f".{place.name}.partial-{os.uname().nodename}-"
    partial = place.parent / f"{prefix}{os.getpid()}"
    with _hold_lock(place, lambda: progress and progress(0, sum(wanted.counts.values()))):
        if is_folder_built(place, wanted):
            return
        for path in place.parent.iterdir():
            if path.name.startswith(prefix):  # of a build that was killed: nobody else on this host is at it
                shutil.rmtree(path, ignore_errors=True)
        try:
            partial.mkdir()
            fill(partial)
            wanted.write(partial)
            try:
                partial.rename(place)
            except OSError:
                if not _is_marked(place, wanted):  # another node may have been first
                    raise
        except OSError as error:
            advice = "free some room, or set GPUBENCH_DATA to a larger disk"
            raise UnusableError(f"can't write {place}: {error.strerror or error}; {advice}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_folder_built(place: Path, wanted: FolderMarker) -> bool:
    """Whether `place` is as wanted. Raises as `ensure_folder_built` where something else, or a part, is there."""
    if _is_marked(place, wanted):
        if is_complete(place):
            return True
        raise UnusableError(
            f"{place} has lost or gained files since it was made: remove it, or name another folder"
        )
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return False
    raise UsageError(f"{place} is there already and holds something else: remove it, or name another folder")


def _is_marked(place: Path, wanted: FolderMarker) -> bool:
    present = marker.read_marker(place)
    return present is not None and present.fingerprint == wanted.fingerprint


def is_complete(place: Path) -> bool:
    """Whether a folder that gpubench made has all that its marker says: its images, or its arrays in full length."""
    made = marker.read_marker(place)
    if made is None:
        return False
    if made.recipe != "decoded":
        return folder.count_images(folder.list_images_by_split(place)) == made.counts
    if made.size is None:
        return False
    lengths = {place / f"{split}.u8": count * 3 * made.size**2 for split, count in made.counts.items()}
    return all(file.is_file() and file.stat().st_size == length for file, length in lengths.items()) and all(
        (place / f"{split}-labels.npy").is_file() for split in made.counts
    )


def format_bytes(size: int) -> str:
    """Bytes in words: 1.1 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 95_000_000 else f"{max(size / 1e6, 0.1):.1f} MB"


@contextlib.contextmanager
def _hold_lock(place: Path, wait: Callable[[], object]) -> Iterator[None]:
    """Holds the lock of `place`, a file beside it, which stays. `wait` is called while another has it."""
    path = place.parent / f".{place.name}.lock"
    descriptor = _open_lock(path)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                wait()
                time.sleep(LOOK_S)
            except OSError as error:
                raise UnusableError(
                    f"can't lock {path}: {error.strerror}; set GPUBENCH_DATA to another disk"
                ) from error
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
