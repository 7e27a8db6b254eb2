"""Where in a results folder the files of an attempt lie, and whose a file is by its name."""

from __future__ import annotations

from pathlib import Path

from gpubench.results.stored_record import MOST_ATTEMPTS


def part_name(kind: str, unit_id: str, attempt: int, ending: str) -> str:
    """Where one lies in a results folder."""
    return f"{kind}/{unit_id[1:3]}/{unit_id}-{attempt}.{ending}"


def log_name(unit_id: str, attempt: int) -> str:
    """Where a log lies in a results folder."""
    return part_name("logs", unit_id, attempt, "log")


Numbered = tuple[str, int]
"""The id of a trial, a job or a group, and the number of an attempt at it."""


def numbered(path: Path) -> Numbered | None:
    """Whose file this is, by its name: `ID-NUMBER.json`; None where no attempt has such a name."""
    own, dash, number = path.stem.rpartition("-")
    if not dash or path.name.startswith(".") or not number.isdecimal():
        return None
    return (own, int(number)) if 0 < int(number) <= MOST_ATTEMPTS else None
