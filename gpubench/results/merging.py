"""Several results folders as one: which attempt of which folder gets which number, and the files that follow.

An attempt is told by all that its record holds but for numbers of attempts, so that one that lies in several folders
is there once, and merging again adds nothing. Where two folders number different attempts at one unit alike, the later
ones get new numbers behind all others. Further rounds belong to the first round of their own folder, and so stay behind
it: a first round goes with its further ones, and is as late as the last of them. What lies in the target keeps its
numbers; an attempt that is older than one of the target on the same machine, and would count in its place for its
number alone, is left out.
"""

from __future__ import annotations

import contextlib
import filecmp
import hashlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from gpubench.basics.errors import UnusableError
from gpubench.results.plans import Stamp, stamp_in
from gpubench.results.store import Numbered, Results, numbered, write_whole
from gpubench.results.stored_record import bytes_of
from gpubench.schema.record import FINAL

Identity = tuple[str, int]
"""A digest of what an attempt holds, and which it is of those in its folder that hold the same."""
BESIDE: Mapping[str, str] = {"samples": "csv", "logs": "log"}
"""What lies beside records, a file for each job, and how its names end."""


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
    round: int = 1
    is_final: bool = False
    """Whether it counts whatever else is tried after it."""

    @property
    def trials(self) -> list[str]:
        """Ids of its jobs, by which samples and logs are named."""
        if self.told is None or "jobs" not in self.told:
            return [self.unit_id]
        return [str(job["trial_id"]) for job in self.told["jobs"]]


@dataclass(kw_only=True, slots=True)
class Merged:
    """What became of the attempts of each source, by its place among them."""

    there: Counter[int] = field(default_factory=Counter)
    """Source -> attempts that lay in the target, or in another source, too."""
    added: Counter[int] = field(default_factory=Counter)
    moved: list[tuple[FoundAttempt, int]] = field(default_factory=list)
    """Attempts whose number another one had, and the number that they got."""
    left_out: list[FoundAttempt] = field(default_factory=list)
    """Attempts that are older than what the target has, and would count in its place."""


def merge(sources: Sequence[Results], target: Results, tell: Callable[[str], None]) -> Merged:
    """Copies all that is in the sources into the target, which is locked by the caller.

    What lies in the target keeps its numbers. The record comes last of each attempt: an interrupted merge leaves whole
    attempts, and merging again adds the others. `tell`: of files that can't be read.
    """
    folders = [target, *(one for one in sources if not _same(one.folder, target.folder))]
    by_unit: dict[str, list[list[FoundAttempt]]] = {}
    for place, folder in enumerate(folders):
        mine: dict[str, list[FoundAttempt]] = {}
        for attempt in _attempts(place, folder, tell):
            mine.setdefault(attempt.unit_id, []).append(attempt)
        for unit_id, chain in mine.items():
            by_unit.setdefault(unit_id, []).append(sorted(chain, key=lambda one: one.number))
    merged = Merged()
    numbers: dict[tuple[int, str, int], int | None] = {}
    for unit_id, chains in by_unit.items():
        for chain, own in _placed(chains, lambda attempt, number: _is_free(folders, attempt, number)):
            for attempt, number in zip(chain, own, strict=True):
                for name in {unit_id, *attempt.trials}:
                    numbers[attempt.source, name, attempt.number] = number
    for unit_id in sorted(by_unit):
        there = {one.identity for chain in by_unit[unit_id] for one in chain if one.source == 0}
        for attempt in sorted(
            (one for chain in by_unit[unit_id] for one in chain if one.source),
            key=lambda one: numbers[one.source, unit_id, one.number] or 0,
        ):
            target.beat()
            number = numbers[attempt.source, unit_id, attempt.number]
            if number is None:
                merged.left_out.append(attempt)
                continue
            _copy_beside(folders[attempt.source], target, attempt, number)
            if attempt.identity in there:
                merged.there[attempt.source] += 1
                continue
            there.add(attempt.identity)
            merged.added[attempt.source] += 1
            if number != attempt.number:
                merged.moved.append((attempt, number))
            _write_record(target, attempt, number, numbers)
    for place, folder in enumerate(folders[1:], 1):
        _copy_traces(folder, target, {(name, number) for at, name, number in numbers if at == place})
        _copy_left_out(folder, target)
    _merge_plans(folders, target, tell)
    first = len(folders) - len(sources)  # who asks counts from the first of the sources
    return Merged(
        there=Counter({place - first: count for place, count in merged.there.items()}),
        added=Counter({place - first: count for place, count in merged.added.items()}),
        moved=merged.moved,
        left_out=merged.left_out,
    )


# ---- which number ----


def _attempts(place: int, folder: Results, tell: Callable[[str], None]) -> list[FoundAttempt]:
    found = []
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
        digest = hashlib.sha256(text if told is None else _content(told)).hexdigest()
        key = f"{name[0]} {digest}"
        seen[key] += 1
        found.append(
            FoundAttempt(
                source=place,
                unit_id=name[0],
                number=name[1],
                path=path,
                told=told,
                identity=(digest, seen[key]),
                started_at=_started(told),
                machines=tuple(sorted(str(job.get("machine_key") or "") for job in _jobs(told))),
                round=next((n for job in _jobs(told) if isinstance(n := job.get("round"), int)), 1),
                is_final=bool(_jobs(told)) and all(str(job.get("status")) in FINAL for job in _jobs(told)),
            )
        )
    return found


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
    return json.dumps(_with(told, None, lambda _: None), sort_keys=True).encode()


def _with(
    told: Mapping[str, Any], number: int | None, of_solo: Callable[[Mapping[str, Any]], int | None]
) -> dict[str, Any]:
    """A record, or the records of a group, with other numbers of attempts."""
    made = dict(told)
    if number is not None or "attempt" in made:
        made["attempt"] = number
    if "jobs" in made:
        made["jobs"] = [_with(job, number, of_solo) for job in made["jobs"]]
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


def _placed(
    chains: Sequence[list[FoundAttempt]], is_free: Callable[[FoundAttempt, int], bool]
) -> list[tuple[list[FoundAttempt], list[int | None]]]:
    """The number of each attempt at one unit, chain by chain: one for each folder, in its order. None: left out.

    Whichever order the folders are given in, the numbers are the same, but that the target's stay. `is_free`: whether
    no files of another attempt, which left no record, lie under a number.
    """
    order = sorted(
        chains,
        key=lambda chain: (chain[0].source != 0, chain[0].started_at, [one.identity for one in chain]),
    )
    leaders = _leaders(order)
    late = _lateness(order, leaders)
    first = {
        one.identity: (late[one.identity], -rank, -one.number, one)
        for rank, chain in reversed(list(enumerate(order)))
        for one in chain
    }
    in_order = sorted(first, key=lambda own: (first[own][0], -first[own][1], -first[own][2]))
    place = {own: index for index, own in enumerate(in_order)}
    known: dict[Identity, int | None] = {
        one.identity: one.number for chain in chains for one in chain if one.source == 0
    }
    taken = {number for number in known.values() if number is not None}
    for own in in_order:
        if own in known:
            continue
        one = first[own][3]
        rivals = [
            (place[other], number)
            for other, number in known.items()
            if number is not None and _may_displace(one, first[other][3], leaders)
        ]
        low = max((number for index, number in rivals if index < place[own]), default=0)
        high = min((number for index, number in rivals if index > place[own]), default=None)
        behind = max(taken, default=0) + 1
        if high is None:
            wanted = [one.number, *range(behind, behind + MOST_TRACES)]
        else:
            wanted = [one.number, *range(low + 1, high)]
        known[own] = next(
            (
                number
                for number in wanted
                if low < number
                and (high is None or number < high)
                and number not in taken
                and is_free(one, number)
            ),
            None,
        )
        if (number := known[own]) is not None:
            taken.add(number)
    return [(chain, [known[one.identity] for one in chain]) for chain in chains]


MOST_TRACES = 100_000
"""More attempts in a row that left no record no folder holds."""


def _leaders(chains: Iterable[Sequence[FoundAttempt]]) -> dict[Identity, Identity]:
    """The attempt of the first round to which each attempt belongs; its own for one of the first round."""
    found: dict[Identity, Identity] = {}
    for chain in chains:
        last: dict[tuple[str, ...], Identity] = {}
        for one in chain:
            if one.round == 1:
                if one.is_final:
                    last[one.machines] = one.identity
                found.setdefault(one.identity, one.identity)
            else:
                found.setdefault(one.identity, last.setdefault(one.machines, one.identity))
    return found


def _lateness(
    chains: Sequence[Sequence[FoundAttempt]], leaders: Mapping[Identity, Identity]
) -> dict[Identity, str]:
    """How late each attempt is: as the last final one of its first round, and never earlier than those before it."""
    last: dict[Identity, str] = {}
    for one in (one for chain in chains for one in chain):
        if one.is_final or leaders[one.identity] == one.identity:
            leader = leaders[one.identity]
            last[leader] = max(last.get(leader, ""), one.started_at)
    found: dict[Identity, str] = {}
    for chain in chains:
        until = ""  # clocks may be set back; numbers only go up
        for one in chain:
            until = max(until, last.get(leaders[one.identity], one.started_at))
            found[one.identity] = max(found.get(one.identity, ""), until)
    return found


def _may_displace(one: FoundAttempt, other: FoundAttempt, leaders: Mapping[Identity, Identity]) -> bool:
    """Whether one of the two doesn't count any more, or counts, for their order alone."""
    if not (one.is_final and other.is_final) or one.machines != other.machines:
        return False
    is_own = leaders[one.identity] == leaders[other.identity]
    return not is_own or 1 in (one.round, other.round) or one.round == other.round


# ---- files ----


def _write_record(
    target: Results, attempt: FoundAttempt, number: int, numbers: Mapping[tuple[int, str, int], int | None]
) -> None:
    """The record under its number, byte by byte as it was where no number in it changes."""
    path = target.part("records", attempt.unit_id, number, "json")
    if attempt.told is not None:

        def of_solo(solo: Mapping[str, Any]) -> int | None:
            own = solo.get("attempt")
            return numbers.get((attempt.source, str(solo.get("trial_id")), own), own)  # type: ignore[arg-type]

        made = _with(
            attempt.told, number if number != attempt.number else attempt.told.get("attempt"), of_solo
        )
        if made != attempt.told:
            write_whole(path, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
            return
    copy_whole(attempt.path, path)


def _is_free(folders: Sequence[Results], attempt: FoundAttempt, number: int) -> bool:
    """Whether what lies beside the records under a number is the attempt's own, as an interrupted merge left it."""
    target, source = folders[0], folders[attempt.source]
    pairs = [
        (source.part(kind, own, attempt.number, ending), target.part(kind, own, number, ending))
        for own in {attempt.unit_id, *attempt.trials}
        for kind, ending in BESIDE.items()
    ]
    try:
        return all(
            mine.is_file() and filecmp.cmp(mine, other, shallow=False)
            for mine, other in pairs
            if other.exists()
        )
    except OSError:
        return False


def _copy_beside(source: Results, target: Results, attempt: FoundAttempt, number: int) -> None:
    """Samples and logs of an attempt, where the target has none of it."""
    for trial_id in attempt.trials:
        for kind, ending in BESIDE.items():
            mine = source.part(kind, trial_id, attempt.number, ending)
            other = target.part(kind, trial_id, number, ending)
            if mine.is_file() and not other.exists():
                copy_whole(mine, other)


def _copy_traces(source: Results, target: Results, known: set[Numbered]) -> None:
    """Logs and samples of attempts that left no record: they show that there was one."""
    traces: dict[Numbered, list[tuple[str, Path]]] = {}
    for kind in BESIDE:
        for path in sorted((source.folder / kind).glob("*/*-*.*")):
            name = numbered(path)
            if name is not None and name not in known and path.is_file():
                traces.setdefault(name, []).append((kind, path))
    for (trial_id, number), files in sorted(traces.items()):
        if all(_is_there(target, kind, trial_id, path) for kind, path in files):
            continue
        free = number
        taken = [target.part("records", trial_id, number, "json")]
        taken += [target.part(kind, trial_id, number, ending) for kind, ending in BESIDE.items()]
        if any(path.exists() for path in taken):
            free = target.next_attempt(trial_id)
        for kind, path in files:
            copy_whole(path, target.part(kind, trial_id, free, BESIDE[kind]))


def _is_there(target: Results, kind: str, trial_id: str, path: Path) -> bool:
    """Whether the target has such a file under whatever number."""
    there = (target.folder / kind / trial_id[1:3]).glob(f"{trial_id}-*{path.suffix}")
    return any(filecmp.cmp(path, other, shallow=False) for other in there)


def _copy_left_out(source: Results, target: Results) -> None:
    """The names of images that were left out, by the fingerprint of their data."""
    for path in sorted((source.folder / "left-out").glob("*.txt")):
        other = target.folder / "left-out" / path.name
        if not other.exists():
            copy_whole(path, other)


_NUMBER = re.compile(r"(?m)(?<=^number = )\d+$")


def _merge_plans(folders: Sequence[Results], target: Results, tell: Callable[[str], None]) -> None:
    """Each plan once, as it was stored last, numbered in the order in which they were stored."""
    found: dict[str, tuple[Stamp, Path]] = {}
    for folder in folders:
        for path in folder.plans():
            there = target.folder / "plans" / path.name
            if not path.is_file() or (there.exists() and not there.is_file()):
                what = path if not path.is_file() else there
                tell(f"{path} is left out: {what} is no file; rename it, and merge again")
                continue
            stamp = stamp_in(path)
            if path.name not in found or _later(stamp, found[path.name][0]):
                found[path.name] = stamp, path
    in_order = sorted(found.items(), key=lambda item: (item[1][0].stored_at, item[1][0].number, item[0]))
    number = 0
    for name, (stamp, path) in in_order:
        other = target.folder / "plans" / name
        if not stamp.number:  # of a version that knew none: it stays older than all others
            if path != other and not other.exists():
                copy_whole(path, other)
            continue
        number += 1
        text = path.read_text(encoding="utf-8")
        head, mark, tail = text.partition("\n[plan]\n")
        made = head + mark + _NUMBER.sub(str(number), tail, count=1)
        if path != other or made != text:
            write_whole(other, made)


def _later(stamp: Stamp, than: Stamp) -> bool:
    return (stamp.stored_at, stamp.number) > (than.stored_at, than.number)


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file so that a reader sees all of it or none. Raises UnusableError where that can't be done."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise UnusableError(f"{source} can't be copied to {target}: {error.strerror}") from None


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
