"""Growth columns: memory and time per image against the row before along one ordered axis.

Only neighbours are compared. A row before without a figure (out of memory, failed, missing) gives an empty
growth: bridging the gap would print two steps as if they were one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

from gpubench.analysis.alike import fair_step, movable, telling, workloads
from gpubench.analysis.over_processes import growth_pct, unlike_shown
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.varied import (
    CANDIDATES,
    FOLLOWS,
    Axes,
    asked,
    determined,
    machine,
    same_in_all,
    solo,
    values,
    varied,
)
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import AnyRow, Row, TableRow, replace

# What the machine fills by itself along an axis. CPUs and loaders don't count: `alike` knows when they may differ.
IMPLIED = frozenset(CANDIDATES) - set(ALLOTTED)


def ordered_axis(axes: Axes, rows: Sequence[Row]) -> str | None:
    """The field that growth runs along: the batch size if it varies, else the GPUs, else the first number.

    Where the experiment's axes are known only they count, and jobs of groups never do. None if nothing numeric
    varies.
    """
    rows = solo(rows)
    fields = [f for f in varied(rows, axes) if not axes or f in asked(axes)]
    numeric = [f for f in fields if all(_is_number(v) for v in values(rows, f))]
    return next((f for f in ("batch_size", "gpus", *numeric) if f in numeric), None)


def moves_with(axis: str, axes: Axes, rows: Sequence[Row]) -> tuple[str, ...]:
    """The fields that change together with `axis`, and may: those zipped with it, and those that nobody asked for
    and that it determines (the strategy that a GPU count implies, say). Without known axes: none."""
    rows = solo(rows)
    zipped = {field for group in axes if axis in group for field in group}
    told = IMPLIED - same_in_all(rows) - {*asked(axes)} if axes else frozenset()
    implied = {f for f in told if len(values(rows, f)) > 1 and determined(rows, f, (axis,))}
    return tuple(sorted(movable(axis, zipped | implied)))


def growth(rows: Sequence[Row], axis: str | None, tied: Collection[str] = ()) -> list[TableRow]:
    """The rows (repeats merged, series by series, each ascending along `axis`) with both growth columns.

    Jobs of groups stand last, as they came: they ran at the same time as others, so nothing is compared with them.

    `gpu_mem_growth_pct` and `epoch_time_growth_pct` are in per cent of the row before in the same series: all
    trial fields equal but `axis` and those of `tied` that may move along it (`alike.MOVES`). The second compares time
    per image where both rows know their images, else epoch times. Both are None without such a row, where it or this
    one did not end ok, where it is not the only one at its place, and where more moved on the way than may
    (`alike.fair_step`). Memory figures of different sources are not compared.
    """
    return of_merged(merge_repeats(rows), axis, tied)


def of_merged(merged: Sequence[TableRow], axis: str | None, tied: Collection[str] = ()) -> list[TableRow]:
    """The same, of rows whose repeats are merged."""
    jobs = [row for row in merged if row.group]
    if axis is None:
        return [*solo(merged), *jobs]
    ordered: list[TableRow] = []
    for members in series(solo(merged), axis, tied).values():
        members.sort(key=lambda row: (row.value(axis) is None, row.value(axis) or 0))
        places: dict[Any, list[TableRow]] = {}
        grown: dict[int, TableRow] = {}
        for row in members:
            places.setdefault(row.value(axis), []).append(row)
        steps = list(places.values())
        for before, after in itertools.pairwise(steps):
            alone = len(before) == len(after) == 1 and after[0].value(axis) is not None
            if alone and fair_step(before[0], after[0]):
                grown[id(after[0])] = _grown(grown.get(id(before[0]), before[0]), after[0])
        ordered += [grown.get(id(row), row) for row in members]
    return [*ordered, *jobs]


def series(
    rows: Sequence[AnyRow], axis: str, tied: Collection[str] = ()
) -> dict[tuple[tuple[str, Any], ...], list[AnyRow]]:
    """Rows of one workload, each under the (field, value) pairs that tell its series from the others.

    They differ in `axis` alone, and in those of `tied` that may move along it. `rows`: of trials alone. Rows of
    different machines are never each other's neighbours.
    """
    free = {axis, *movable(axis, tied)}
    fields = telling(rows, free)
    machines = [machine(row) for row in rows]
    several = len({*machines} - {None}) > 1
    found: dict[Any, list[AnyRow]] = {}
    for row, where, told in zip(rows, machines, workloads(rows, fields, free), strict=True):
        found.setdefault((told, where if several else None), []).append(row)
    shown = {field for field in fields if not _told_by_others(rows, field, fields)}
    named: dict[tuple[tuple[str, Any], ...], list[AnyRow]] = {}
    for (pairs, name), members in found.items():
        key = [pair for pair in pairs if pair[0] in shown]
        # A planned row, which lacks what the machine settles, joins the series that it will be of.
        named.setdefault((*key, *([("machine", name)] if several else [])), []).extend(members)
    return named


def _told_by_others(rows: Sequence[Row], field: str, fields: Collection[str]) -> bool:
    """Whether a series need not be named by `field`: other ones of `fields` determine it."""
    others = [other for other in FOLLOWS.get(field, ()) if other in fields]
    return bool(others) and determined(rows, field, others)


def gpu_mem(row: Row) -> float | None:
    """GPU memory in MiB of a trial that ended ok; None where there is no such figure."""
    return row.gpu_mem_mib or None if row.status == "ok" else None


def epoch_time(row: Row) -> float | None:
    """Epoch time in s of a trial that ended ok; None where there is no such figure."""
    return row.epoch_time_s or None if row.status == "ok" else None


def time_growth_pct(before: Row, after: Row) -> float | None:
    """Change of time per image (of epoch time, where a row does not know its images), in per cent.

    Of rows that are compared by some of their rounds, over these: the figure that its interval belongs to.
    """
    old, new = epoch_time(before), epoch_time(after)
    if old is None or new is None:
        return None
    if ratio := unlike_shown(after, before):
        return growth_pct(ratio)[0]
    if before.images_per_epoch and after.images_per_epoch:
        old, new = old / before.images_per_epoch, new / after.images_per_epoch
    return percent(old, new)


def memory_growth_pct(before: Row, after: Row) -> float | None:
    """Change of GPU memory in per cent; None where the two figures come from different sources."""
    old, new = gpu_mem(before), gpu_mem(after)
    if old is None or new is None or before.gpu_mem_source != after.gpu_mem_source:
        return None
    return percent(old, new)


def percent(old: float, new: float) -> float:
    """Change from `old` (not 0) to `new` in per cent."""
    return 100 * (new / old - 1)


def _grown(before: Row, after: TableRow) -> TableRow:
    return replace(
        after,
        gpu_mem_growth_pct=memory_growth_pct(before, after),
        epoch_time_growth_pct=time_growth_pct(before, after),
        before=before,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
