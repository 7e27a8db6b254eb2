"""Attempts as they lie in a folder, told by all that their records hold but for numbers of attempts."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from gpubench.basics.collector import collector_paused
from gpubench.results.counting import Allowance, allowance_of
from gpubench.results.file_names import Numbered, numbered
from gpubench.results.store import Results
from gpubench.results.stored_record import DamagedError, KnownParts, bytes_of, parsed
from gpubench.schema.record import FINAL, Record

Identity = tuple[str, int]
"""A digest of what an attempt holds, and which it is of those in its folder that hold the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundAttempt:
    """One attempt at one unit, as it lies in a folder."""

    source: int
    """Of which folder."""
    unit_id: str
    number: int
    path: Path
    told: Mapping[str, Any] | None
    """Its record; None where it can't be read: then it is copied as it is."""
    identity: Identity
    started_at: str
    machines: tuple[str, ...] = ()
    """The machine of each job: attempts on other machines never count in place of one another."""
    allowance: Allowance = frozenset()
    """What the machine gave its jobs of what they left to it: under another one it is another configuration."""
    round: int = 1
    is_reference: bool = False
    """Whether it counts nowhere, as `Record.reference` says."""
    is_final: bool = False
    """Whether it counts whatever else is tried after it."""

    @property
    def begins(self) -> bool:
        """Whether all others of its folder belong to it: it is the measurement of the first round."""
        return self.round == 1 and not self.is_reference

    @property
    def trials(self) -> list[str]:
        """Ids of its jobs, by which samples and logs are named."""
        if self.told is None or "jobs" not in self.told:
            return [self.unit_id]
        return [str(job["trial_id"]) for job in self.told["jobs"]]


@dataclass(kw_only=True, slots=True)
class FoundFolder:
    """What lies in a folder, each file read once."""

    attempts: list[FoundAttempt] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    """Of the attempts whose records are whole."""


def found_in(folder: Results, place: int, tell: Callable[[str], None]) -> FoundFolder:
    """All of a folder. `place`: its own among the sources. `tell`: of files that can't be read."""
    with collector_paused():
        return _found_in(folder, place, tell)


def _found_in(folder: Results, place: int, tell: Callable[[str], None]) -> FoundFolder:
    found, known = FoundFolder(), KnownParts()
    seen: Counter[str] = Counter()
    for path in folder.record_files(tell):
        name = numbered(path)
        if name is None:
            tell(f"{path} is left out: no attempt has such a name")
            continue
        try:
            text = bytes_of(path)
        except OSError as error:
            tell(f"{path} is left out: it can't be read ({error.strerror})")
            continue
        told = _told(text, name)
        jobs = _records(path.name, text, known)
        found.records += jobs
        digest = hashlib.sha256(text if told is None else _content(told)).hexdigest()
        key = f"{name[0]} {digest}"
        seen[key] += 1
        found.attempts.append(
            FoundAttempt(
                source=place,
                unit_id=name[0],
                number=name[1],
                path=path,
                told=told,
                identity=(digest, seen[key]),
                started_at=_started(told),
                machines=tuple(sorted(str(job.get("machine_key") or "") for job in _jobs(told))),
                allowance=allowance_of(jobs),
                round=next((n for job in _jobs(told) if isinstance(n := job.get("round"), int)), 1),
                is_reference=any(job.reference for job in jobs),
                is_final=bool(_jobs(told)) and all(str(job.get("status")) in FINAL for job in _jobs(told)),
            )
        )
    return found


def _records(name: str, text: bytes, known: KnownParts) -> list[Record]:
    """The records of an attempt; none of one that no table would show."""
    try:
        return parsed(name, text, known)
    except DamagedError:
        return []


_ID = re.compile(r"\w[\w-]*")
"""What an id may be: files are named by it."""


def _told(text: bytes, name: Numbered) -> Mapping[str, Any] | None:
    """A record whose number can be changed; None for one that is damaged."""
    try:
        told = from_json(text)
        ids = [job["trial_id"] for job in told.get("jobs", [told])]
        whole = bool(ids) and all(isinstance(one, str) and _ID.fullmatch(one) for one in ids)
        is_its_own = (told.get("group_id") or told["trial_id"], told.get("attempt", 1)) == name
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return told if whole and is_its_own else None


def _content(told: Mapping[str, Any]) -> bytes:
    """All that a record holds but for numbers of attempts."""
    return json.dumps(with_numbers(told, None, lambda _: None), sort_keys=True).encode()


def with_numbers(
    told: Mapping[str, Any], number: int | None, of_solo: Callable[[Mapping[str, Any]], int | None]
) -> dict[str, Any]:
    """A record, or the records of a group, with other numbers of attempts."""
    made = dict(told)
    if number is not None or "attempt" in made:
        made["attempt"] = number
    if "jobs" in made:
        made["jobs"] = [with_numbers(job, number, of_solo) for job in made["jobs"]]
    together = made.get("together")
    if isinstance(together, Mapping) and isinstance(together.get("solos"), list):
        solos = [
            {**solo, "attempt": of_solo(solo)} if isinstance(solo, Mapping) else solo
            for solo in together["solos"]
        ]
        made["together"] = {**together, "solos": solos}
    return made


def _jobs(told: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return [] if told is None else told.get("jobs", [told])


def _started(told: Mapping[str, Any] | None) -> str:
    found = [str(job.get("started_at") or "") for job in _jobs(told)]
    return min(found, default="")
