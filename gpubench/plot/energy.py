"""Energy against time, with the Pareto front: the rows that no other beats in both. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import (
    along,
    caption,
    interval_of,
    known,
    name_of,
    names_of,
    point,
    rows_of,
    short,
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
    rows = [row for row in rows_of(table) if row.status == "ok" and row.energy_j and row.epoch_time_s]
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
        axis, by_name = found
        legend, names = names_of(by_name)
        groups = [[row for row in members if row in rows] for members in by_name.values()]
        own = axis
    works = {id(row): tuple(known(row, field) for field in WORK) for row in rows}
    if len(set(works.values())) == len(rows):
        return ()  # each does other work: nobody chooses between them
    front = {
        id(row)
        for row in rows
        if not any(_beats(other, row) for other in rows if works[id(other)] == works[id(row)])
    }
    series = [
        PlottedSeries(
            name=name or "measured",
            look=look,
            joined=False,
            points=tuple(_point(subject, row, own, best=id(row) in front) for row in members),
        )
        for look, (name, members) in enumerate(zip(names, groups, strict=True))
        if members
    ]
    fronts: dict[Any, list[TableRow]] = {}
    for row in rows:
        if id(row) in front:
            fronts.setdefault(works[id(row)], []).append(row)
    for members in fronts.values():
        best = [_point(subject, row, own, best=False) for row in members]
        if len(best) > 1:
            points = tuple(PlottedPoint(name=p.name, x=p.x, y=p.y) for p in sorted(best, key=lambda p: p.x))
            series.append(PlottedSeries(name="Pareto front", role="ideal", points=points))
    x = max(p.x for one in series for p in one.points)
    return (
        Picture(
            name="energy",
            experiment=table.name,
            of=table.title,
            shows="energy against epoch time",
            panels=(
                Panel(
                    kind="lines",
                    x=PlottedAxis(title=title_of("epoch_time_s"), top=x),
                    y=y_axis(title_of("energy_j"), series, logarithm=False),
                    series=tuple(series),
                ),
            ),
            legend=legend,
            caption=caption(
                table,
                "Energy and time of an epoch. Filled: on the Pareto front, beaten in both by no other point."
                + (f" Numbers: {name_of(own)}." if own else ""),
                rows,
            ),
        ),
    )


def _beats(other: TableRow, row: TableRow) -> bool:
    """Whether `other` is as good in both, and better in one."""
    mine, theirs = (row.energy_j, row.epoch_time_s), (other.energy_j, other.epoch_time_s)
    return mine != theirs and all(
        t is not None and m is not None and t <= m for t, m in zip(theirs, mine, strict=True)
    )


def _point(subject: Subject, row: TableRow, own: str, *, best: bool) -> PlottedPoint:
    x_low, x_high = interval_of(row, "epoch_time_s")
    made = point(
        subject, row, float(row.epoch_time_s or 0), "energy_j", best=best, x_low=x_low, x_high=x_high
    )
    return replace(
        made,
        label=known(row, own) if own else "",
        told=told(subject, row, "energy_j", "epoch_time_s"),
    )
