"""Time and energy until a top-1 was reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.varied import label
from gpubench.basics.words import clean
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedSeries
from gpubench.plot.shared import along, caption, names_of, point, rows_of, title_of, x_axis, y_axis
from gpubench.plot.subject import Subject
from gpubench.schema.row import TableRow

COLUMNS = ("time_to_top1_s", "energy_to_top1_j")


def pictures(subject: Subject) -> Sequence[Picture]:
    """Over the ordered axis, a panel each for time and energy; without an axis, bars."""
    table = subject.table
    asked = [row for row in rows_of(table) if row.until_top1]
    shown = [column for column in COLUMNS if any(row.value(column) is not None for row in asked)]
    if not shown:
        return ()
    targets = dict.fromkeys(f"{row.until_top1:g}\u00a0%" for row in asked if row.until_top1)
    found = along(table)
    if found is None:
        panels, legend = _bars(asked, shown, table.varied), ""
    else:
        axis, by_name = found
        legend, names = names_of(by_name)
        x = x_axis(axis, (float(row.value(axis)) for row in asked))
        panels = []
        for column in shown:
            series = tuple(
                PlottedSeries(
                    name=name,
                    look=look,
                    points=tuple(point(row, float(row.value(axis)), column, table.varied) for row in rows),
                )
                for look, (name, rows) in enumerate(zip(names, by_name.values(), strict=True))
            )
            panels.append(Panel(kind="lines", x=x, y=y_axis(title_of(column), series), series=series))
    late = [
        clean(label(row, table.varied)) for row in asked if row.status == "ok" and row.time_to_top1_s is None
    ]
    never = f" Never reached: {', '.join(late)}." if late else ""
    return (
        Picture(
            name="to-top1",
            experiment=table.name,
            title=f"{table.title}: training until top-1 of {' or '.join(targets)}",
            panels=tuple(panels),
            legend=legend,
            caption=caption(
                table,
                f"Training until {' or '.join(targets)} top-1: first epoch included, evaluation not.{never}",
                asked,
                intervals=False,
            ),
        ),
    )


def _bars(rows: Sequence[TableRow], shown: Sequence[str], fields: Sequence[str]) -> list[Panel]:
    places = tuple(clean(label(row, fields)) for row in rows)
    panels = []
    for column in shown:
        points = tuple(point(row, float(place), column, fields) for place, row in enumerate(rows))
        series = (PlottedSeries(name="measured", points=points),)
        axis = y_axis(title_of(column), series, logarithm=False)
        panels.append(
            Panel(kind="bars", x=PlottedAxis(title="", from_zero=False), y=axis, series=series, places=places)
        )
    return panels
