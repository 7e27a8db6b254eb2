"""How much jobs that ran together slowed each other down, job by job. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.basics.words import clean
from gpubench.plot.description import Picture, PlottedPoint, PlottedSeries
from gpubench.plot.shared import bars, caption, point, short, told
from gpubench.plot.subject import Subject
from gpubench.schema.row import TableRow

ALONE = 1.0


def pictures(subject: Subject) -> Sequence[Picture]:
    """A bar for each job of each group, and a mark for what was predicted before the group ran."""
    table = subject.table
    jobs = [row for row in table.rows if row.group]
    if not any(row.slowdown is not None and row.status == "ok" for row in jobs):
        return ()
    places: list[str] = []
    measured: list[PlottedPoint] = []
    predicted: list[PlottedPoint] = []
    for name, members in table.groups:
        mine = [field for field in table.varied if len({str(row.value(field)) for row in members}) > 1]
        for row in members:
            job = ": ".join(part for part in (clean(row.job or ""), short(row, mine)) if part)
            place = float(len(places))
            places.append(job if row is not members[0] else f"{name}\n{job}")
            measured.append(_point(subject, row, place))
            if row.predicted_slowdown is not None:
                predicted.append(PlottedPoint(name=measured[-1].name, x=place, y=row.predicted_slowdown))
    series = [PlottedSeries(name="measured", points=tuple(measured))]
    if predicted:
        series.append(
            PlottedSeries(name="predicted before they ran", points=tuple(predicted), role="predicted", look=1)
        )
    return (
        Picture(
            name="slowdowns",
            experiment=table.name,
            of=table.title,
            shows="slowdowns of jobs that ran together",
            panels=(bars("slowdown", series, places, line_at=ALONE),),
            caption=caption(table, "Epoch time together over epoch time alone; 1: as fast as alone.", jobs),
        ),
    )


def _point(subject: Subject, row: TableRow, place: float) -> PlottedPoint:
    said = told(subject, row, "slowdown", "predicted_slowdown", "epoch_time_s")
    return replace(point(subject, row, place, "slowdown"), told=said)
