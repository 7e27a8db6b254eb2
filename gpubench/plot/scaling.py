"""Throughput over GPUs, with what it would be if each GPU brought as much as the first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from gpubench.analysis.alike import DEVICES, devices
from gpubench.analysis.network_size import network
from gpubench.analysis.scaling import Comparison, comparisons, named
from gpubench.analysis.varied import label, together
from gpubench.basics.words import clean
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import caption, fields_without, figure, point, rows_of, title_of, told, y_axis
from gpubench.plot.subject import Subject
from gpubench.report.table import Table
from gpubench.schema.row import TableRow


def pictures(subject: Subject) -> Sequence[Picture]:
    """One panel with a line for each baseline, and for strong and weak scaling of it."""
    table = subject.table
    found = compared(table)
    if not found:
        return ()
    alone = rows_of(table)
    rows = {id(row): row for row in alone}
    one_network = len({network(one.row) for one in found}) == 1  # images of several don't stand on one axis
    column = "images_per_s" if one_network and all(one.row.images_per_s for one in found) else "speedup"
    device = "rank" if all(row.device == "cpu" for row in alone) else "GPU"
    lines: list[PlottedSeries] = []
    ideals: dict[tuple[float, ...], PlottedSeries] = {}
    others = fields_without(table, *DEVICES, "batch_size", "strategy", "gpu_ids", "workers", "cpus", "lr")
    most = max(devices(one.row) for one in found)
    for one in _lines(found):
        first = one[0].baseline
        points = tuple(
            compared_point(subject, rows[id(each.row)], each, float(devices(each.row)), column)
            for each in sorted(one, key=_count)
        )
        lines.append(PlottedSeries(name=_name(one, device, others), look=len(lines), points=points))
        start = next((p.y for p in points if p.x == devices(first)), None)
        if start:
            reach = (devices(first), start, most)
            ideals.setdefault(
                reach,
                PlottedSeries(
                    name="ideal: as much from each",
                    role="ideal",
                    points=tuple(
                        PlottedPoint(name="ideal", x=n, y=start * n / devices(first))
                        for n in (devices(first), most)
                    ),
                ),
            )
    series = (*lines, *ideals.values())
    counts = sorted({float(devices(one.row)) for one in found})
    x = PlottedAxis(title=f"{device}s", from_zero=False, ticks=tuple(counts))
    return (
        Picture(
            name="scaling",
            experiment=table.name,
            of=table.title,
            shows=f"{'throughput' if column == 'images_per_s' else column} over {device}s",
            panels=(
                Panel(kind="lines", x=x, y=y_axis(title_of(column), series, logarithm=False), series=series),
            ),
            caption=caption(
                table,
                f"{'Throughput' if column == 'images_per_s' else 'Speedup'} over {device}s; dashed: ideal, as much "
                f"from each {device} as in the baseline. Strong: the same global batch; weak: the same batch a "
                f"{device}.",
                list(
                    {
                        id(r): r for each in found for r in (rows[id(each.row)], rows[id(each.baseline)])
                    }.values()
                ),
            ),
        ),
    )


def compared(table: Table) -> Sequence[Comparison]:
    """The rows on more devices beside those on fewer, and these themselves; none where all have equally many."""
    if "speedup" not in {column.name for column in table.columns}:
        return ()  # rows that are there because jobs are compared with them, not with each other
    found = comparisons(rows_of(table), together(table.axes, *DEVICES), together(table.axes, "batch_size"))
    return found if len({devices(one.row) for one in found}) > 1 else ()


def _lines(found: Sequence[Comparison]) -> list[list[Comparison]]:
    """Comparisons of one kind with one baseline and one way to share the work."""

    def of(one: Comparison) -> tuple[str, int, str]:
        return (one.kind, id(one.baseline), str(one.row.strategy))

    order = {id(one): number for number, one in enumerate(found)}
    lines = []
    by_base: dict[tuple[str, int], list[Comparison]] = {}
    for one in found:
        by_base.setdefault((one.kind, id(one.baseline)), []).append(one)
    for members in by_base.values():
        own = [one for one in members if one.row is one.baseline]
        others = sorted((one for one in members if one.row is not one.baseline), key=of)
        lines += [[*own, *group] for _, group in groupby(others, key=of)]
    return sorted(lines, key=lambda line: order[id(line[-1])])


def _count(one: Comparison) -> int:
    return devices(one.row)


def _name(line: Sequence[Comparison], device: str, fields: Sequence[str]) -> str:
    """`weak, ddp, 128 a GPU, against single on 1 GPU`."""
    last = line[-1]
    batch = last.row.batch_size or 0
    share = f"{batch // devices(last.row)} a {device}" if last.kind == "weak" else f"batch {batch}"
    others = [f"{last.row.strategy}"] if last.row.strategy else []
    more = [label(last.row, fields)] if fields else []
    return clean(", ".join([last.kind, *others, *more, share, f"against {named(last.baseline, device)}"]))


def compared_point(
    subject: Subject, row: TableRow, one: Comparison, x: float, column: str = "speedup"
) -> PlottedPoint:
    """A row's figure at `x`, its speedup that of this comparison."""
    made = point(subject, row, x, column)
    if column != "speedup" or one.speedup == row.speedup:
        return made
    # The table tells the row's speed-up over another baseline, and the interval is of that one.
    said = told(subject, row, also=[f"speedup {figure(one.speedup)}"])
    return replace(made, y=one.speedup, low=None, high=None, written="", told=said)
