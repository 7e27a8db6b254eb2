"""What was found after an attack: plain values that the verdicts go by."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kinds import Attack
from room import Room

_OF_TORCH = re.compile(r"torch_(\d+)_")
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """One start of the sweep, from its beginning to its end."""

    code: int | None
    """The exit code, -9 where it was killed; None: it did not end in time, and the attacker killed it."""
    seconds: float
    out: str
    """A JSON line for each row."""
    err: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """A results folder at one moment."""

    records: Mapping[str, bytes] = field(default_factory=dict)
    """Path below it -> content."""
    logs: Collection[str] = ()
    """Their names without the ending: ID-ATTEMPT."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One attack, and what came of it."""

    attack: Attack
    struck: bool
    """False where the sweep had ended before the moment came."""
    first: Start
    """The start that was attacked."""
    second: Start
    """The start after it, of the same sweep, once the fault was lifted."""
    before: Folder
    """The folder as the attack came, …"""
    middle: Folder
    """… after the first start's end …"""
    last: Folder
    """… and after the second's."""
    processes: Collection[str] = ()
    """Left by the first start, in words."""
    late_processes: Collection[str] = ()
    """Left by the second."""
    files: Collection[str] = ()
    """Left beside the results when both had ended."""
    shared_memory: Collection[str] = ()
    gpus: Collection[str] = ()
    """What the driver still shows: processes, memory."""


def folder(results: Path) -> Folder:
    """The folder as it is now. Files that go meanwhile are left out."""
    records = {}
    for path in sorted(results.glob("records/*/*.json")):
        if not path.name.startswith("."):
            records[str(path.relative_to(results))] = path.read_bytes()
    return Folder(records=records, logs=[path.stem for path in results.glob("logs/*/*.log")])


def litter(room: Room) -> list[str]:
    """Files that belong to nobody once a sweep has ended: temporary ones, hidden ones, half-made images."""
    temporary = [f"TMPDIR/{path.name}" for path in room.seen("tmp").iterdir()]
    hidden = [f"results/{path.name}" for path in room.seen("results").rglob(".*")]
    partial = [f"images/{path.name}" for path in room.seen("images").glob(".*.partial-*")]
    return sorted([*temporary, *hidden, *partial])


def shared_memory() -> set[str]:
    """Names of this user's segments."""
    found = set()
    for entry in os.scandir(SHARED_MEMORY):
        try:
            if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                found.add(entry.name)
        except FileNotFoundError:
            continue
    return found


def own_segments(new: Collection[str], pids: Collection[int]) -> list[str]:
    """Those of the new segments that may be the attack's: torch's that name another process are not."""
    return sorted(name for name in new if (match := _OF_TORCH.match(name)) is None or int(match[1]) in pids)
