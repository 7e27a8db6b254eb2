"""Top-1 of a table's rows over their seeds: which are compared, what may be said, when a target was crossed. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.accuracy import (
    SEEDS,
    AccuracyDecision,
    SeedPair,
    decide_top1,
    resolution_of,
)
from gpubench.analysis.certainty.interval import interval
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.certainty.power import settling_seeds
from gpubench.analysis.varied import (
    CANDIDATES,
    Axes,
    asked,
    determined,
    differing,
    known,
    machine,
    same_in_all,
    solo,
    together,
    values,
)
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import Row, TableRow, replace
from gpubench.schema.top1_crossing import CONFIRMED, UNCONFIRMED

ANOTHER_TASK = ("data", "num_classes", "until_top1")
"""Fields whose values have no top-1 in common: other images, or a training that ends at one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Top1Comparison:
    """A row's top-1 over seeds against that of another."""

    row: TableRow
    against: TableRow
    decision: AccuracyDecision
    settles: int | None
    """Of an open one: seeds on each side that would settle it, if the truth is what was seen. None: too many."""


def top1_of_seeds(row: Row) -> tuple[float, ...]:
    """The top-1 of each of a line's repeats, which differ in their seed; without those that have none."""
    # A trial of which there are several records counts once: by that of the plan, where there is one.
    told = sorted(row.runs, key=lambda run: run.is_whole)
    return tuple({run.repeat: float(run.top1_pct) for run in told if run.top1_pct is not None}.values())


def seed_pair(row: Row, against: Row) -> SeedPair:
    """Their seeds, and how finely their held-out images tell a top-1."""
    images = [n for one in (row, against) if one.images and (n := one.images.val_images)]
    return SeedPair(
        one=top1_of_seeds(row),
        other=top1_of_seeds(against),
        resolution=resolution_of(min(images)) if images else 0.0,
    )


def comparisons(rows: Sequence[TableRow], axes: Axes, fields: Sequence[str]) -> list[Top1Comparison]:
    """What may be said of rows that differ along one of `fields`; of those with SEEDS seeds or more, corrected for all.

    Along numbers each row is compared with the next smaller one, along words (variants, strategies) with the first.
    Rows that trained until a top-1, and jobs of groups, are compared with none.
    """
    there = [row for row in solo(rows) if row.status == "ok" and not row.until_top1]
    if not any(len(row.runs) >= SEEDS and len(top1_of_seeds(row)) >= SEEDS for row in there):
        return []
    each = (pair for field in fields for pair in _along(there, field, axes))
    pairs = list({frozenset(map(id, pair)): pair for pair in each}.values())
    found = [seed_pair(row, against) for row, against in pairs]
    tested = sum(pair.testable for pair in found)
    return [
        Top1Comparison(
            row=row,
            against=against,
            decision=decision,
            settles=_settles(pair, LEVEL / tested) if decision.word == "open" else None,
        )
        for (row, against), pair, decision in zip(pairs, found, decide_top1(found), strict=True)
        if decision is not None
    ]


def with_crossing(row: TableRow) -> TableRow:
    """The row with when its seeds crossed a top-1: the geometric mean, and the ends of its 95 % interval.

    As it is where it is of one seed. Empty where not every seed did: those that did are the quick ones. Confirmed only
    where each was.
    """
    whole = [run for run in row.runs if run.is_whole]
    if len(whole) < 2:
        return row
    times = [time for run in whole if (time := run.top1_crossing_s) is not None]
    known = interval(times) if len(times) == len(whole) else None
    if known is None:
        return replace(row, top1_crossing_s=None, top1_crossing=None)
    words = {run.top1_crossing for run in whole}
    return replace(
        row,
        top1_crossing_s=known.value,
        top1_crossing=CONFIRMED if words == {CONFIRMED} else UNCONFIRMED,
        top1_crossing_low_s=known.low,
        top1_crossing_high_s=known.high,
    )


def _settles(pair: SeedPair, level: float) -> int | None:
    """More seeds than there are, whatever their own noise foretells: as many have not settled it."""
    fewest = settling_seeds(pair, level=level).fewest
    return None if fewest is None else max(fewest, 1 + max(len(pair.one), len(pair.other)))


def _along(rows: Sequence[TableRow], field: str, axes: Axes) -> list[tuple[TableRow, TableRow]]:
    """Pairs of rows that differ in `field`, and in what moves with it, alone."""
    if field in (*ANOTHER_TASK, *ALLOTTED):
        return []
    fixed = same_in_all(rows)
    implied = [
        f
        for f in CANDIDATES
        if axes and f not in asked(axes) and (f in fixed or determined(rows, f, (field,)))
    ]
    free = {field, *together(axes, field), *implied, *ALLOTTED}
    alike: dict[tuple[object, ...], list[TableRow]] = {}
    apart = differing(rows, (name for name in CANDIDATES if name not in free and name not in fixed))
    for row in rows:
        place = (machine(row), *(known(row, name) for name in apart))
        alike.setdefault(place, []).append(row)
    found = []
    for same in alike.values():
        if not all(isinstance(value, (int, float)) for value in values(same, field)):
            found += [(row, same[0]) for row in same[1:]]
            continue
        there = sorted(
            (row for row in same if known(row, field) is not None), key=lambda row: known(row, field)
        )
        found += [(after, before) for before, after in itertools.pairwise(there)]
    return [
        (row, against)
        for row, against in found
        if known(row, field) != known(against, field) and _same_images(row, against)
    ]


def _same_images(*rows: Row) -> bool:
    """Whether they were judged by equally many held-out images, as far as records tell."""
    return len({row.images.val_images for row in rows if row.images} - {None}) <= 1
