"""Several results folders as one: which attempt of which folder gets which number, and the files that follow.

An attempt is told by all that its record holds but for numbers of attempts (`attempts.py`), so that one that lies in
several folders is there once, and merging again adds nothing. `numbers.py` says which number each gets.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.results.counting import counting, run_of
from gpubench.results.merging.attempts import FoundAttempt, found_in
from gpubench.results.merging.copies import Copy, copies
from gpubench.results.merging.files import copy_beside, copy_left_out, copy_traces, is_free, write_record
from gpubench.results.merging.numbers import placed
from gpubench.results.merging.plans import merge_plans
from gpubench.results.store import Results
from gpubench.schema.record import Record

FurtherRound = tuple[int, str, str, str, str]
"""Round, unit, when it began, host and machine of an attempt."""


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
    completed: list[Copy] = field(default_factory=list)
    """Attempts whose record can't be read in one folder and was taken from another that has it whole."""
    further: set[FurtherRound] = field(default_factory=set)
    """Attempts of further rounds that counted in their own folders."""


def merge(sources: Sequence[Results], target: Results, tell: Callable[[str], None]) -> Merged:
    """Copies all that is in the sources into the target, which is locked by the caller.

    What lies in the target keeps its numbers. The record comes last of each attempt: an interrupted merge leaves whole
    attempts, and merging again adds the others. `tell`: of files that can't be read.
    """
    folders = [target, *(one for one in sources if one.folder.resolve() != target.folder.resolve())]
    for folder in folders:
        folder.check_links()
    first = len(folders) - len(sources)  # who asks counts from the first of the sources
    merged = Merged()
    units = _units(folders, merged, tell)
    numbers = _numbers(folders, units)
    for one in merged.completed:
        _take_beside(folders, one, numbers)
    for unit_id in sorted(units):
        there = {one.identity for one in units[unit_id] if one.source == 0}
        new = [one for one in units[unit_id] if one.source]
        for attempt in sorted(new, key=lambda one: numbers[one.source, one.unit_id, one.number] or 0):
            target.beat()
            number = numbers[attempt.source, unit_id, attempt.number]
            if number is None:
                merged.left_out.append(attempt)
                continue
            copy_beside(folders[attempt.source], target, attempt, number)
            if attempt.identity in there:
                merged.there[attempt.source - first] += 1
                continue
            there.add(attempt.identity)
            merged.added[attempt.source - first] += 1
            if number != attempt.number:
                merged.moved.append((attempt, number))
            write_record(target, attempt, number, numbers)
    for place, folder in enumerate(folders[1:], 1):
        copy_traces(folder, target, {(name, number) for at, name, number in numbers if at == place})
        copy_left_out(folder, target)
    merge_plans(folders, target, tell)
    return merged


def _units(
    folders: Sequence[Results], merged: Merged, tell: Callable[[str], None]
) -> dict[str, list[FoundAttempt]]:
    """The attempts at each unit: those of one folder together, in the order of their numbers."""
    found: dict[str, list[FoundAttempt]] = {}
    for place, folder in enumerate(folders):
        here = found_in(folder, place, tell)
        merged.further |= further_rounds(here.records)
        for attempt in sorted(here.attempts, key=lambda one: one.number):
            found.setdefault(attempt.unit_id, []).append(attempt)
    for unit_id, attempts in found.items():
        if made := copies(folders, attempts):
            merged.completed += made
            left = {id(one.damaged) for one in made}
            found[unit_id] = [one for one in attempts if id(one) not in left]
    return found


def _take_beside(
    folders: Sequence[Results], one: Copy, numbers: dict[tuple[int, str, int], int | None]
) -> None:
    """What lies beside a damaged record goes with the whole one that stands in its place."""
    for name in {one.whole.unit_id, *one.whole.trials}:
        numbers[one.damaged.source, name, one.damaged.number] = numbers[
            one.whole.source, name, one.whole.number
        ]
    number = numbers[one.whole.source, one.whole.unit_id, one.whole.number]
    if number is not None and one.damaged.source:
        copy_beside(folders[one.damaged.source], folders[0], one.whole, number)


def _numbers(
    folders: Sequence[Results], units: Mapping[str, Sequence[FoundAttempt]]
) -> dict[tuple[int, str, int], int | None]:
    """Folder, id of a unit or of a job in it, and number there -> the number in the target; None: left out."""
    numbers: dict[tuple[int, str, int], int | None] = {}
    for unit_id, attempts in units.items():
        chains = [list(chain) for _, chain in itertools.groupby(attempts, key=lambda one: one.source)]
        for chain, own in placed(chains, lambda attempt, number: is_free(folders, attempt, number)):
            for attempt, number in zip(chain, own, strict=True):
                for name in {unit_id, *attempt.trials}:
                    numbers[attempt.source, name, attempt.number] = number
    return numbers


def further_rounds(records: Sequence[Record]) -> set[FurtherRound]:
    """The attempts of further rounds that count, without their numbers."""
    found = set()
    for record in counting(records).values():
        if record.round > 1:
            unit_id, _, started_at, host, machine = run_of(record)
            found.add((record.round, unit_id, started_at, host, machine))
    return found
