"""Energy against time, with the Pareto front: the rows that no other beats in both. Pure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from gpubench.plot.description import (
    FILLED,
    NUMBERS,
    Panel,
    Picture,
    PlottedAxis,
    PlottedPoint,
    PlottedSeries,
)
from gpubench.plot.shared import (
    along,
    caption,
    far_apart,
    interval_of,
    log_axis,
    name_of,
    names_of,
    point,
    short,
    text_of,
    title_of,
    told,
    y_axis,
)
from gpubench.plot.subject import Subject
from gpubench.schema.row import TableRow

FEWEST = 2
WORK = ("model", "input_size", "num_classes", "data")
"""What two rows must have in common for a reader to choose between them."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """One panel: a point for each row, the front joined by a line."""
    table = subject.table
    rows = [row for row in table.alone if row.status == "ok" and row.energy_j and row.epoch_time_s]
    if len(rows) < FEWEST or len({row.images_per_epoch for row in rows}) > 1:
        return ()
    found = along(table)
    if found is None:
        legend, names, groups, own = (
            "",
            [short(row, table.varied) for row in rows],
            [[row] for row in rows],
            "",
        )
    else:
        own, keys, lines = found
        legend, names = names_of(keys)
        there = {id(row) for row in rows}
        groups = [[row for row in members if id(row) in there] for members in lines]
    works = {id(row): tuple(text_of(row, field) for field in WORK) for row in rows}
    if len(set(works.values())) == len(rows):
        return ()  # each does other work: nobody chooses between them
    by_work: dict[tuple[str, ...], list[TableRow]] = {}
    for row in rows:
        by_work.setdefault(works[id(row)], []).append(row)
    fronts = [_front(members) for members in by_work.values()]
    best = {id(row) for members in fronts for row in members}
    series = [
        PlottedSeries(
            name=name or "measured",
            look=look,
            joined=False,
            points=tuple(_point(subject, row, own, best=id(row) in best) for row in members),
        )
        for look, (name, members) in enumerate(zip(names, groups, strict=True))
        if members
    ]
    for members in fronts:
        if len(members) > 1:
            points = (_point(subject, row, own, best=False) for row in members)
            bare = tuple(PlottedPoint(name=p.name, x=p.x, y=p.y) for p in points)
            series.append(PlottedSeries(name="Pareto front", role="ideal", points=bare))
    x, y = _axes(series)
    return (
        Picture(
            name="energy",
            experiment=table.name,
            of=table.title,
            shows="energy against epoch time",
            panels=(
                Panel(
                    kind="lines",
                    x=x,
                    y=y,
                    series=tuple(series),
                ),
            ),
            legend=legend,
            caption=caption(
                table,
                f"Energy and time of an epoch. {FILLED}on the Pareto front, beaten in both by no other point."
                + (f" {NUMBERS}{name_of(own)}, where there is room." if own else ""),
                rows,
            ),
        ),
    )


def _axes(series: Sequence[PlottedSeries]) -> tuple[PlottedAxis, PlottedAxis]:
    """Both from 0 or both by a logarithm: either way equal power lies on a straight line."""
    points = [p for one in series for p in one.points]
    x = PlottedAxis(title=title_of("epoch_time_s"), top=max(p.x for p in points))
    y = y_axis(title_of("energy_j"), series, logarithm=False)
    if far_apart([p.x for p in points]) or far_apart([p.y for p in points if p.y is not None]):
        return log_axis(x.title), log_axis(y.title, y.top)
    return x, y


def _front(rows: Sequence[TableRow]) -> list[TableRow]:
    """Those that no other beats: by being as good in both, and better in one. The quickest first."""

    def figures(row: TableRow) -> tuple[float, float]:
        return row.epoch_time_s or math.inf, row.energy_j or math.inf

    found: list[TableRow] = []
    least = math.inf
    for (_, energy), same in itertools.groupby(sorted(rows, key=figures), key=figures):
        if energy < least:
            found += same
            least = energy
    return found


def _point(subject: Subject, row: TableRow, own: str, *, best: bool) -> PlottedPoint:
    x_low, x_high = interval_of(row, "epoch_time_s")
    made = point(
        subject, row, float(row.epoch_time_s or 0), "energy_j", best=best, x_low=x_low, x_high=x_high
    )
    return replace(
        made,
        label=text_of(row, own) if own else "",
        told=told(subject, row, "energy_j", "epoch_time_s"),
    )
