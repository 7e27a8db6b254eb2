"""How much jobs that ran together slowed each other down, job by job. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import clean
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import caption, point, short, title_of, y_axis
from gpubench.plot.subject import Subject
from gpubench.report.groups import gathered

ALONE = 1.0


def pictures(subject: Subject) -> Sequence[Picture]:
    """A bar for each job of each group, and a mark for what was predicted before the group ran."""
    table = subject.table
    jobs = [row for row in table.rows if row.group]
    if not any(row.slowdown is not None and row.status == "ok" for row in jobs):
        return ()
    groups = gathered(jobs, table.axes)
    rows = {id(row): row for row in jobs}
    places: list[str] = []
    measured: list[PlottedPoint] = []
    predicted: list[PlottedPoint] = []
    for group in groups:
        for one in group.rows:
            row = rows[id(one)]
            mine = [field for field in table.varied if len({str(r.value(field)) for r in group.rows}) > 1]
            job = ": ".join(part for part in (clean(row.job or ""), short(row, mine)) if part)
            place = float(len(places))
            places.append(job if one is not group.rows[0] else f"{clean(group.label)}\n{job}")
            measured.append(point(row, place, "slowdown", table.varied))
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
            title=f"{table.title}: slowdowns of jobs that ran together",
            panels=(
                Panel(
                    kind="bars",
                    x=PlottedAxis(title="", from_zero=False),
                    y=y_axis(title_of("slowdown"), series, logarithm=False),
                    series=tuple(series),
                    places=tuple(places),
                    line_at=ALONE,
                ),
            ),
            caption=caption(table, "Epoch time together over epoch time alone; 1: as fast as alone.", jobs),
        ),
    )
