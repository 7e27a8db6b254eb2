"""Repeats and rounds of one configuration become one row: its figures, of how many processes, and how far apart."""

from __future__ import annotations

import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from gpubench.analysis.certainty.outliers import outliers
from gpubench.analysis.doubted import codes
from gpubench.analysis.slowdown import gain_over_processes, group_verdict, overlap_gain, slowdown
from gpubench.analysis.varied import machine, unit, where
from gpubench.schema.columns import CPU_SPEED, MEASURED, TRIAL, Column
from gpubench.schema.doubts import SPREAD_PCT
from gpubench.schema.epoch_times import Kind
from gpubench.schema.row import Row, TableRow, replace

Hardware = tuple[str, ...]
"""Its machine; of a job of a group those of all its jobs, for a job on a CPU may run beside one on a GPU."""
Allocation = tuple[Hardware, Any, Any, Any]
"""What a row was measured on: hardware, CPUs, loaders; what the jobs beside it got."""

REPEATS = Column(
    "repeats",
    "",
    "processes that ended ok: each repeat in each round; the row shows what they tell together",
    "n",
    holds=int,
)

SPREAD = (
    f"epoch times of its processes lie more than {SPREAD_PCT:g} % of their median apart; "
    "measure more --rounds, on a quiet machine, before two such rows are compared"
)

FIGURES: tuple[str, ...] = tuple(
    c.name for c in (*TRIAL[-2:], *MEASURED, *CPU_SPEED) if c.name not in ("group_id", "doubts")
)
"""Columns of which the repeats of a row have one value together; its id and its doubts are put together otherwise."""


EVERY_ROUND = frozenset(column.name for column in MEASURED if column.every_round)

_figures = operator.attrgetter(*FIGURES)


def _of_all(found: Sequence[Any]) -> Any:
    """The median, where every repeat has one: that of the lucky ones alone would flatter."""
    return None if None in found else _middle(found)


def _mean(found: Sequence[Any]) -> Any:
    """The geometric mean of the known times, about which their interval lies."""
    there = [value for value in found if value is not None]
    return statistics.geometric_mean(there) if there else None


def _same(found: Sequence[Any]) -> Any:
    """The value that all repeats agree in, else None: ranks have no median."""
    return found[0] if len(set(found)) == 1 else None


def _first(found: Sequence[Any]) -> Any:
    """The first known value: where no two repeats share one, any will do."""
    return next((value for value in found if value is not None), None)


def _often(found: Sequence[Any]) -> Any:
    """The words, joined by +, that at least half of the repeats have."""
    counts = Counter(word for value in found if value is not None for word in str(value).split("+"))
    return "+".join(word for word, number in counts.items() if 2 * number >= len(found)) or None


SPECIAL: dict[str, Callable[[Sequence[Any]], Any]] = {
    "epoch_time_s": _mean,
    "solo_epoch_time_s": _mean,
    "slowest_rank": _same,
    "epochs_to_top1": _of_all,
    "time_to_top1_s": _of_all,
    "energy_to_top1_j": _of_all,
    "full_together": _often,
    "solo_id": _first,
}
"""Figures of which a median over repeats would mislead, or make no sense."""


def merge_repeats(rows: Sequence[Row]) -> list[TableRow]:
    """One row a configuration, in order of first appearance.

    Rows are repeats of each other if they agree in config_id, group, job and machine (jobs of a group in those of all
    its jobs), and in the CPUs and loaders that they got there. Figures are medians over those that ended ok. Adds
    `runs` (the rows that ended ok), `not_ok` (the others), `repeats` (how many ended ok), `reached` (how many of them
    a top-1 to reach), `endings` ("ok", or "2 ok, 1 failed"), and the doubt `spread` where epoch times lie far apart.
    `doubt_texts` holds the sentences of all repeats, a tuple a code, and `epoch_times_s` the times that the median is
    of. Jobs of one group agree in `group_id` (the least of their repeats'), and what was found out about it,
    `together`, is the first ok repeat's. Their `verdict` is that of the merged rows, or, where these don't tell how
    far they spread, of all repeats.
    Medians of quotients are no quotients of medians, so slowdowns are worked out from the merged times, and the
    overlap gain of a group from the merged slowdowns of its jobs. Where nothing is repeated, all stays as stored.
    """
    each = [(place, _merge(same)) for place, same in _alike(rows)]
    alone = {(run.trial_id, machine(run)): row for _, row in each if not row.group for run in row.runs}
    merged = [(place, _against(row, alone)) for place, row in each]
    found = [row for _, row in merged]
    for numbers in _groups(merged):
        for number, row in zip(numbers, _compared([found[one] for one in numbers]), strict=True):
            found[number] = row
    return found


def with_spread(rows: Sequence[Row]) -> list[Row]:
    """All of these rows, each repeat by itself; those whose repeats lie far apart carry the doubt `spread`, too."""
    wide = {
        id(row)
        for _, same in _alike(rows)
        if same[0].kind != "steady rate" and apart(_times(same))
        for row in same
        if row.status == "ok"
    }
    return [_spread(row) if id(row) in wide else row for row in rows]


def _spread(row: Row) -> Row:
    """The row with the doubt about its repeats; one about its own epochs says more of it."""
    texts = {"spread": (SPREAD,), **row.doubt_texts}
    return replace(row, doubts=_codes([row], "spread"), doubt_texts=texts)


def _alike(rows: Sequence[Row]) -> list[tuple[Allocation | None, list[Row]]]:
    """Rows that are repeats of each other, together, and where they were measured."""
    found: dict[Any, dict[Allocation | None, list[Row]]] = {}
    beside = _hardware_of_groups(rows)
    for number, row in enumerate(rows):
        allocations = found.setdefault((row.config_id or number, row.group, row.job), {})
        allocations.setdefault(_allocation(row, beside), []).append(row)
    return [same for allocations in found.values() for same in _adopt(allocations)]


def _hardware_of_groups(rows: Sequence[Row]) -> dict[Any, Hardware]:
    """The machines of the jobs that ran together, by unit and host."""
    found: dict[Any, set[str]] = {}
    for row in rows:
        if unit(row) is not None and (name := machine(row)) is not None:
            found.setdefault((unit(row), where(row)), set()).add(name)
    return {key: tuple(sorted(names)) for key, names in found.items()}


def _allocation(row: Row, beside: Mapping[Any, Hardware]) -> Allocation | None:
    """Where a row was measured: its hardware, and what it got of that. None of one that was not measured yet."""
    name = machine(row)
    if name is None:
        return None
    hardware = beside.get((unit(row), where(row)), (name,))
    return hardware, row.cpus, row.workers, row.allowance


def _adopt(allocations: dict[Allocation | None, list[Row]]) -> list[tuple[Allocation | None, list[Row]]]:
    """Rows by place; a planned one, which has none yet, joins the first."""
    homeless = allocations.pop(None, [])
    groups = list(allocations.items()) or [(None, [])]
    groups[0][1].extend(homeless)
    return groups


def _against(row: TableRow, alone: Mapping[tuple[str, str | None], TableRow]) -> TableRow:
    """A job of a group against the same trial alone, as all its processes tell; as it is where that is not there.

    `alone`: the merged row that an attempt at a trial alone went into, by the trial's id and machine.
    """
    if row.repeats < 2 or not row.group:
        return row
    found = {id(one): one for run in row.runs if (one := alone.get((run.solo_id or "", machine(run))))}
    if len(found) != 1:
        return row
    (solo,) = found.values()
    slowed = slowdown(row.epoch_time_s, solo.epoch_time_s)
    return replace(row, baseline=solo, solo_epoch_time_s=solo.epoch_time_s, slowdown=slowed)


def _merge(same: Sequence[Row]) -> TableRow:
    if len(same) == 1:
        return _alone(same[0])
    good = [row for row in same if row.status == "ok"]
    bad = [row for row in same if row.status != "ok"]
    counts = Counter(row.status for row in (*good, *bad))
    merged = replace(
        TableRow.of((good or bad)[0]),
        repeats=len(good),
        endings=_endings(counts),
        reached=sum(row.time_to_top1_s is not None for row in good),
        reason=next((row.reason for row in bad if row.reason), None),
        doubts=_codes(same),
        doubt_texts=_doubt_texts(same),
        runs=tuple(good),
        not_ok=tuple(bad),
        group_id=min((row.group_id for row in same if row.group_id), default=None),
    )
    return _median(merged, good, same) if len(good) > 1 else merged


def _alone(row: Row) -> TableRow:
    """The line of a row without repeats, as most are: what `_merge` makes of it, in half of the time."""
    ok = row.status == "ok"
    return TableRow.of(
        row,
        repeats=int(ok),
        endings=row.status,
        reached=int(ok and row.time_to_top1_s is not None),
        reason=None if ok else row.reason or None,
        doubts=_codes([row]) if row.doubts else None,
        doubt_texts=_doubt_texts([row]) if row.doubt_texts else row.doubt_texts,
        runs=(row,) if ok else (),
        not_ok=() if ok else (row,),
        group_id=row.group_id or None,
    )


def _median(merged: TableRow, good: Sequence[Row], same: Sequence[Row]) -> TableRow:
    """The row with the figures that these repeats have together."""
    first = [row for row in good if row.has_all_figures]
    figures = _together(first or good)
    if len(first) < len(good):
        figures |= {name: value for name, value in _together(good).items() if name in EVERY_ROUND}
    merged = replace(merged, **figures)
    times = _times(good)
    slowed = slowdown(merged.epoch_time_s, merged.solo_epoch_time_s)
    merged = replace(
        merged,
        # The median of the slowdowns where one of the times is not known.
        slowdown=merged.slowdown if slowed is None else slowed,
        epoch_times_s=times,
        epoch_time_iqr_s=iqr(times),
    )
    if merged.group:
        (merged,) = _with_verdict([merged], merged.overlap_gain)
    if merged.images_per_epoch and merged.epoch_time_s:
        # Medians of both sides would break images_per_s * epoch_time_s = images_per_epoch.
        merged = replace(merged, images_per_s=merged.images_per_epoch / merged.epoch_time_s)
    if more := _of_processes(times, merged.kind):
        merged = replace(merged, doubts=_codes(same, *more), doubt_texts=_doubt_texts(same, more))
    return merged


def _of_processes(times: Sequence[float], kind: Kind) -> dict[str, str]:
    """The doubts that processes raise together, with their sentences. How far rates lie apart their interval says."""
    found = {"spread": SPREAD} if kind != "steady rate" and apart(times) else {}
    if places := outliers(times):
        usual = statistics.median(times)
        farthest = max((times[place] for place in places), key=lambda time: abs(math.log(time / usual)))
        is_more = farthest > usual
        found["outlier"] = (
            f"{len(places)} of its {len(times)} processes lie{'s' * (len(places) == 1)} further from the others than "
            f"chance explains, {'up to ' * (len(places) > 1)}{100 * abs(farthest / usual - 1):.0f} % "
            f"{'above' if is_more else 'below'} the median; nothing was left out: look what else ran then"
        )
    return found


def _together(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures that these rows have together, by column."""
    each = zip(*map(_figures, rows), strict=True)
    return {name: SPECIAL.get(name, _middle)(found) for name, found in zip(FIGURES, each, strict=True)}


def _doubt_texts(
    rows: Sequence[Row], more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[str, ...]]:
    """Code -> every sentence that one of these rows has for it, each once: their figures may differ.

    `more`: further ones, by their codes.
    """
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        for code, texts in row.doubt_texts.items():
            found.setdefault(code, {}).update(dict.fromkeys(texts))
    for code, text in more.items():
        found.setdefault(code, {})[text] = None
    return {code: tuple(texts) for code, texts in found.items()}


def _groups(merged: Sequence[tuple[Allocation | None, TableRow]]) -> list[list[int]]:
    """The jobs of each group, by their numbers among these. One without an id can't be told from others of its name,
    so it is left out."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for number, (place, row) in enumerate(merged):
        if (own := unit(row)) is not None:
            found.setdefault((row.group, *own, place and place[0]), []).append(number)
    return list(found.values())


def _compared(jobs: Sequence[TableRow]) -> Sequence[TableRow]:
    """The jobs of a group with one overlap gain, that of their slowdowns, if any of them was repeated.

    Where not all of its jobs have a slowdown, the gain stays the median of the repeats that had one.
    """
    if all(row.repeats < 2 for row in jobs):
        return jobs
    size = max((row.together.jobs if row.together else None) or 0 for row in jobs)
    gain = overlap_gain([row.slowdown for row in jobs])
    if len({row.repeats for row in jobs}) > 1 and (
        over := gain_over_processes([alone_of(row) for row in jobs], jobs)
    ):
        gain = over.value  # of the runs that all jobs have, as its interval is
    return jobs if gain is None or len(jobs) < size else _with_verdict(jobs, gain)


def _with_verdict(jobs: Sequence[TableRow], gain: float | None) -> list[TableRow]:
    """These jobs with one overlap gain and one verdict. Of a part of a group's jobs, by what their repeats say."""
    before = [one for row in jobs for run in row.runs if (one := run.verdict)]
    found = group_verdict(gain, [alone_of(row) for row in jobs] if len(jobs) > 1 else (), jobs, before)
    return [replace(row, overlap_gain=gain, sharing=found.cell, verdict=found) for row in jobs]


def alone_of(row: Row) -> Row:
    """What a job with repeats is compared with: its baseline, or the times alone that its repeats were told of."""
    if isinstance(row, TableRow) and row.baseline is not None:
        return row.baseline
    times = [run.solo_epoch_time_s for run in row.runs if run.solo_epoch_time_s is not None]
    return Row(
        epoch_time_s=row.solo_epoch_time_s,
        epoch_times_s=times,
        epoch_time_iqr_s=iqr(times),
        repeats=len(times),
    )


def _codes(rows: Sequence[Row], *more: str) -> str | None:
    """The doubts of all these rows, and more, as one cell."""
    return "+".join(sorted({*more, *(code for row in rows for code in codes(row))})) or None


def _times(rows: Sequence[Row]) -> list[float]:
    good = [row for row in rows if row.status == "ok"]
    return [row.epoch_time_s for row in good if row.epoch_time_s is not None]


def _endings(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{number} {status}" for status, number in counts.items())


def _middle(found: Sequence[Any]) -> Any:
    """The median of the known numbers; of text, what all agree in."""
    there = [value for value in found if value is not None]
    if not there:
        return None
    if all(isinstance(value, (int, float)) for value in there):
        return statistics.median(there)
    return there[0] if len(set(map(str, there))) == 1 else "mixed"


def apart(times: Sequence[float]) -> bool:
    """Whether epoch times of repeats differ by more than SPREAD_PCT of their median.

    From three on their interquartile range counts; of two, their difference.
    """
    if len(times) < 2:
        return False
    wide = iqr(times) if len(times) > 2 else max(times) - min(times)
    return wide is not None and wide > SPREAD_PCT / 100 * statistics.median(times)


def iqr(numbers: Sequence[float]) -> float | None:
    """Interquartile range; None for fewer than two numbers."""
    if len(numbers) < 2:
        return None
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return high - low
