"""Where in a results folder the files of an attempt lie, and whose a file is by its name."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from gpubench.schema.attempt_ids import parse_folder_id
from gpubench.schema.record import MOST_ATTEMPTS

KINDS = ("records", "samples", "logs", "plans", "left-out", "plots")
"""The folders in a results folder."""


def format_attempt_file_path(kind: str, unit_id: str, attempt_name: str, ending: str) -> str:
    """Where one lies in a results folder. `attempt_name`: as `Record.attempt_name` has it."""
    return f"{kind}/{unit_id[1:3]}/{unit_id}-{attempt_name}.{ending}"


def format_log_path(unit_id: str, attempt_name: str) -> str:
    """Where a log lies in a results folder."""
    return format_attempt_file_path("logs", unit_id, attempt_name, "log")


class AttemptFile(NamedTuple):
    """What the name of a file says of the attempt that it belongs to."""

    unit_id: str
    """Id of a trial, of a job or of a group."""
    attempt_name: str
    """As `Record.attempt_name` has it: `3`, or the attempt's id."""

    @property
    def number(self) -> int:
        return int(self.attempt_name.partition("-")[0])

    @property
    def folder_id(self) -> str:
        """Of the results folder where it was measured; empty of an earlier version's."""
        return parse_folder_id(self.attempt_name)


_NAME = re.compile(r"(\w[\w-]*?)-([1-9][0-9]{0,9}(?:-[0-9a-f]{16})?)", re.ASCII)


def parse_file_name(path: Path) -> AttemptFile | None:
    """Whose file this is, by its name and folder: `xx/UNIT-ATTEMPT.json`; None where it is no attempt's."""
    match = _NAME.fullmatch(path.stem)
    if match is None or path.parent.name != match[1][1:3]:
        return None
    file = AttemptFile(match[1], match[2])
    return file if file.number <= MOST_ATTEMPTS else None


def is_plain_file(path: Path) -> bool:
    """Whether it is a file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def find_linked_subfolder(folder: Path) -> Path | None:
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
