"""Throughput over GPUs, with what it would be if each GPU brought as much as the first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from gpubench.analyze.series import DEVICES
from gpubench.basics.words import clean
from gpubench.plot.description import (
    ALL_IN_TABLE,
    Panel,
    Picture,
    PlottedAxis,
    PlottedPoint,
    PlottedSeries,
)
from gpubench.plot.shared import (
    caption,
    fields_without,
    figure,
    point,
    short,
    title_of,
    told,
    y_axis,
)
from gpubench.plot.style import COLOURS
from gpubench.plot.subject import Subject
from gpubench.plot.table import DevicesCompared, count_devices, name_device, name_devices

MOST = len(COLOURS)
"""Lines that can be told apart in one panel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """One line of the picture."""

    of: Sequence[DevicesCompared]
    """By ascending devices, the baseline first."""
    ways: tuple[str, ...]
    """How its work is shared: `weak`, `ddp`."""
    names: tuple[str, ...]
    """What else it is."""
    points: tuple[PlottedPoint, ...]


def pictures(subject: Subject) -> Sequence[Picture]:
    """A line for each baseline, and for strong and weak scaling of it; where these are many, a panel for each way to
    share the work."""
    table = subject.table
    found = table.compared
    if not found:
        return ()
    column = _column(found)
    measure = "Throughput" if column == "images_per_s" else "Speedup"
    device = name_device(table.alone)
    others = fields_without(table, *DEVICES, "batch_size", "strategy", "gpu_ids", "workers", "cpus", "lr")
    lines = _drawn(subject, found, column, device, others)
    apart = len(lines) > MOST
    parts = [list(same) for _, same in groupby(sorted(lines, key=_ways), key=_ways)] if apart else [lines]
    shown = [_spread(part) for part in parts]
    legend, named = _named([line for part in shown for line in part], apart=apart)
    looks = {name: look for look, name in enumerate(dict.fromkeys(named.values()))}
    series = [
        (
            *(
                PlottedSeries(name=named[id(line)], look=looks[named[id(line)]], points=line.points)
                for line in part
            ),
            *_ideals(part, float(max(count_devices(one.row) for one in found))),
        )
        for part in shown
    ]
    counts = sorted({float(count_devices(one.row)) for one in found})
    x = PlottedAxis(title=f"{device}s", from_zero=False, ticks=tuple(counts))
    y = y_axis(title_of(column), [one for part in series for one in part], logarithm=False)
    left_out = len(lines) - sum(map(len, shown))
    few = (
        f"Drawn: {len(lines) - left_out} of {len(lines)} lines, evenly chosen; {ALL_IN_TABLE} "
        if left_out
        else ""
    )
    return (
        Picture(
            name="scaling",
            experiment=table.name,
            of=table.title,
            shows=f"{measure.lower()} over {device}s",
            panels=tuple(
                Panel(kind="lines", x=x, y=y, series=of_part, title=", ".join(part[0].ways) if apart else "")
                for part, of_part in zip(shown, series, strict=True)
            ),
            legend=legend,
            caption=caption(
                table,
                f"{few}{measure} over {device}s; dashed: ideal, as much from each {device} as in the baseline. Strong: "
                f"the same global batch; weak: the same batch a {device}.",
                list({id(row): row for each in found for row in (each.row, each.baseline)}.values()),
            ),
        ),
    )


def _column(found: Sequence[DevicesCompared]) -> str:
    """Images a second of one baseline; else what each baseline is multiplied by, for which one ideal line will do."""
    baselines = {id(one.baseline) for one in found}
    return "images_per_s" if len(baselines) == 1 and all(one.row.images_per_s for one in found) else "speedup"


def _drawn(
    subject: Subject,
    found: Sequence[DevicesCompared],
    column: str,
    device: str,
    others: Sequence[str],
) -> list[_Line]:
    """All lines with their names, in no more fields than tell them apart."""
    grouped = [sorted(line, key=_count) for line in _lines(found)]
    apart = len(grouped) > MOST

    def names(fields: Sequence[str]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        return [_names(line, device, fields, of_baseline=apart) for line in grouped]

    fields = list(others)
    for field in reversed(others):
        without = [one for one in fields if one != field]
        if len(set(names(without))) == len(set(names(fields))):
            fields = without
    return [
        _Line(
            of=line,
            ways=ways,
            names=told,
            points=tuple(
                compared_point(subject, each, float(count_devices(each.row)), column) for each in line
            ),
        )
        for line, (ways, told) in zip(grouped, names(fields), strict=True)
    ]


def _names(
    line: Sequence[DevicesCompared], device: str, fields: Sequence[str], *, of_baseline: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`weak`, `ddp`; and `128 a GPU`, `against single on 1 GPU`. `of_baseline`: by the batch size of the baseline,
    which lines of strong and of weak scaling have in common."""
    last = line[-1]
    batch = last.row.batch_size or 0
    share = f"{batch // count_devices(last.row)} a {device}" if last.kind == "weak" else f"batch {batch}"
    against = clean(f"against {name_devices(last.baseline, device)}")
    more = [clean(short(last.row, fields))] if short(last.row, fields) else []
    ways = (str(last.kind), *([clean(str(last.row.strategy))] if last.row.strategy else []))
    return ways, (*more, against, f"batch {last.baseline.batch_size}") if of_baseline else (
        *more,
        share,
        against,
    )


def _ways(line: _Line) -> tuple[str, ...]:
    return line.ways


def _spread(lines: Sequence[_Line]) -> list[_Line]:
    """No more than can be told apart, the first and the last among them."""
    if len(lines) <= MOST:
        return list(lines)
    return [lines[round(at * (len(lines) - 1) / (MOST - 1))] for at in range(MOST)]


def _named(lines: Sequence[_Line], *, apart: bool) -> tuple[str, dict[int, str]]:
    """What all lines have in common, as the legend's title, and a name for each. `apart`: their ways stand above their
    panels."""
    parts = {id(line): line.names if apart else (*line.ways, *line.names) for line in lines}
    first, *rest = parts.values()
    common = [part for part in first if all(part in other for other in rest)] if rest else []
    told = {key: ", ".join(part for part in mine if part not in common) for key, mine in parts.items()}
    return ", ".join(common), told


def _ideals(lines: Sequence[_Line], most: float) -> list[PlottedSeries]:
    """As much from each device as in the baseline: a line for each height at which baselines lie."""
    starts = {
        (p.x, p.y) for line in lines for p in line.points if p.y and p.x == count_devices(line.of[0].baseline)
    }
    return [
        PlottedSeries(
            name="ideal: as much from each",
            role="ideal",
            points=tuple(PlottedPoint(name="ideal", x=n, y=y * n / x) for n in (x, most)),
        )
        for x, y in sorted(starts)
    ]


def _lines(found: Sequence[DevicesCompared]) -> list[list[DevicesCompared]]:
    """DevicesCompareds of one kind with one baseline and one way to share the work."""

    def of(one: DevicesCompared) -> tuple[str, int, str]:
        return (one.kind, id(one.baseline), str(one.row.strategy))

    order = {id(one): number for number, one in enumerate(found)}
    lines = []
    by_base: dict[tuple[str, int], list[DevicesCompared]] = {}
    for one in found:
        by_base.setdefault((one.kind, id(one.baseline)), []).append(one)
    for members in by_base.values():
        own = [one for one in members if one.row is one.baseline]
        others = sorted((one for one in members if one.row is not one.baseline), key=of)
        lines += [[*own, *group] for _, group in groupby(others, key=of)]
    return sorted(lines, key=lambda line: order[id(line[-1])])


def _count(one: DevicesCompared) -> int:
    return count_devices(one.row)


def compared_point(subject: Subject, one: DevicesCompared, x: float, column: str = "speedup") -> PlottedPoint:
    """A row's figure at `x`, its speedup that of this comparison."""
    made = point(subject, one.row, x, column)
    if column != "speedup" or one.speedup == one.row.speedup:
        return made
    # The table tells the row's speed-up over another baseline, and its interval is of that one.
    within = (
        "" if one.low is None or one.high is None else f" (95 %: {figure(one.low)} to {figure(one.high)})"
    )
    said = told(subject, one.row, also=[f"speedup {figure(one.speedup)}{within}"])
    return replace(made, y=one.speedup, low=one.low, high=one.high, written="", told=said)
