"""Pictures as files: how they are called, and which file that is there may be written over."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.safe_name import safe_name
from gpubench.plot.description import Picture
from gpubench.results.whole_file import write_whole

CREATOR = "gpubench plot"
"""Stands in each file that is written, so that it may be written over."""
LOOKED_AT = 4096
"""Bytes at either end of a file in which that stands."""


def named(pictures: Iterable[tuple[str, Picture]]) -> list[tuple[str, Picture]]:
    """A safe name for each, without an ending, and no two alike. Each comes with what is put before its own name."""
    taken: set[str] = set()
    found = []
    for before, picture in pictures:
        name = first = safe("-".join(part for part in (before, picture.file_name) if part))
        number = 2
        while name.casefold() in taken:  # some file systems take A for a
            name = f"{first}-{number}"
            number += 1
        taken.add(name.casefold())
        found.append((name, picture))
    return found


def safe(name: str) -> str:
    """The name with nothing in it that a file system or a shell minds."""
    return safe_name(name, "picture")


def write(path: Path, made: bytes) -> None:
    """Writes a picture. Raises UnusableError where that can't be done, or would destroy what is not ours."""
    try:
        if path.is_symlink() or (path.exists() and not _ours(path)):
            raise UnusableError(
                f"{path} is there, and no picture of gpubench; name another folder with --out"
            )
    except OSError as error:
        raise UnusableError(
            f"{path} can't be written: {error.strerror}; name another folder with --out"
        ) from error
    try:
        write_whole(path, made)
    except UnusableError as error:
        raise UnusableError(f"{error}; name another folder with --out") from None


def _ours(path: Path) -> bool:
    """Whether it is a picture that gpubench wrote, or a file with nothing in it."""
    if not path.is_file():
        return False
    found = path.read_bytes()
    return not found or CREATOR.encode() in found[:LOOKED_AT] or CREATOR.encode() in found[-LOOKED_AT:]
