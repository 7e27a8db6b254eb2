"""Where in a results folder the files of an attempt lie, and whose a file is by its name."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from gpubench.results.stored_record import MOST_ATTEMPTS

KINDS = ("records", "samples", "logs", "plans", "left-out", "plots")
"""The folders in a results folder."""


def part_name(kind: str, unit_id: str, attempt: int, ending: str) -> str:
    """Where one lies in a results folder."""
    return f"{kind}/{unit_id[1:3]}/{unit_id}-{attempt}.{ending}"


def log_name(unit_id: str, attempt: int) -> str:
    """Where a log lies in a results folder."""
    return part_name("logs", unit_id, attempt, "log")


Numbered = tuple[str, int]
"""The id of a trial, a job or a group, and the number of an attempt at it."""


_NAME = re.compile(r"(\w[\w-]*)-([1-9][0-9]{0,9})", re.ASCII)


def numbered(path: Path) -> Numbered | None:
    """Whose file this is, by its name and folder: `xx/ID-NUMBER.json`; None where no attempt lies there so called."""
    match = _NAME.fullmatch(path.stem)
    if match is None or path.parent.name != match[1][1:3]:
        return None
    return (match[1], int(match[2])) if int(match[2]) <= MOST_ATTEMPTS else None


def is_plain(path: Path) -> bool:
    """Whether it is a file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def find_link(folder: Path) -> Path | None:
    """A link to a folder where gpubench would read or write through it; None where there is none."""
    for kind in KINDS:
        place = folder / kind
        if place.is_symlink():
            return place
        try:
            with os.scandir(place) as entries:
                link = next((entry.path for entry in entries if entry.is_symlink() and entry.is_dir()), None)
        except OSError:  # there is no such folder, or whoever reads it is told why it can't be read
            continue
        if link is not None:
            return Path(link)
    return None
