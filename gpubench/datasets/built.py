"""Folders that are there whole or not at all: a lock, a folder beside the place, a rename when it is done."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpubench.datasets import marker
from gpubench.datasets.home import ensure_writable
from gpubench.datasets.marker import Marker
from gpubench.errors import UnusableError, UsageError


def build(
    place: Path,
    wanted: Marker,
    *,
    need_bytes: int,
    complete: Callable[[Path], bool],
    fill: Callable[[Path], None],
) -> None:
    """Sees to it that the folder `place` is there as `wanted`; `fill` is given an empty folder to write into.

    Any number of processes may call it at once: one builds, the others wait and find it done. `complete` says
    whether a marked folder still has all its files, `need_bytes` about how much they take. Nothing half-built
    is left behind. Raises UsageError where something else lies at `place`, UnusableError where it can't be
    written or has changed since it was made.
    """
    if is_done(place, wanted, complete):
        return
    ensure_writable(place.parent)
    with _locked(place):
        if is_done(place, wanted, complete):
            return
        _clear_leftovers(place)
        _check_room(place, need_bytes)
        partial = place.parent / f"{_partial_prefix(place)}{os.getpid()}"
        try:
            partial.mkdir()
            fill(partial)
            wanted.write(partial)
            _into_place(partial, place, wanted)
        except OSError as error:
            advice = "free some room, or set GPUBENCH_DATA to a larger disk"
            raise UnusableError(f"can't write {place}: {error.strerror or error}; {advice}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_done(place: Path, wanted: Marker, complete: Callable[[Path], bool]) -> bool:
    """Whether `place` is as wanted. Raises as `build` does where something else, or only a part, is there."""
    found = marker.read(place)
    if found is not None and found.fingerprint == wanted.fingerprint:
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


def _partial_prefix(place: Path) -> str:
    # With the host in its name: locks do not always reach across the nodes of a shared file system.
    return f".{place.name}.partial-{os.uname().nodename}-"


def _clear_leftovers(place: Path) -> None:
    """Removes what a build that was killed has left. The lock says that nobody on this host is at it."""
    for left in place.parent.iterdir():
        if left.name.startswith(_partial_prefix(place)):
            shutil.rmtree(left, ignore_errors=True)


def _check_room(place: Path, need_bytes: int) -> None:
    free = shutil.disk_usage(place.parent).free
    if free < need_bytes:
        raise UnusableError(
            f"{place} takes about {amount(need_bytes)}, {amount(free)} are free: "
            "free some room, or set GPUBENCH_DATA to a larger disk"
        )


def amount(size: int) -> str:
    """Bytes in words: 1.1 GB."""
    return f"{size / 1e9:.1f} GB" if size >= 95_000_000 else f"{max(size / 1e6, 0.1):.1f} MB"


def _into_place(partial: Path, place: Path, wanted: Marker) -> None:
    try:
        partial.rename(place)
    except OSError:
        # Another node may have been first.
        found = marker.read(place)
        if found is None or found.fingerprint != wanted.fingerprint:
            raise


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    # The file stays: removing it would let two processes lock two files of one name.
    path = place.parent / f".{place.name}.lock"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UnusableError(f"can't lock {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise UnusableError(
                f"can't lock {path}: {error.strerror}; set GPUBENCH_DATA to another disk"
            ) from error
        yield
    finally:
        os.close(descriptor)
