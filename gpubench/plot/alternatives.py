"""Ways to do the same work side by side: epoch time, CPU use and top-1. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analyze.series import FOLLOWS
from gpubench.analyze.versus import FIELDS
from gpubench.basics.words import clean, listed
from gpubench.plot.description import Picture, PlottedSeries
from gpubench.plot.shared import bars, caption, heading, name_of, point, text_of
from gpubench.plot.subject import Subject
from gpubench.plot.table import different, label
from gpubench.schema.row import TableRow

COLUMNS = ("epoch_time_s", "cpu_util_pct", "top1_pct")


def pictures(subject: Subject) -> Sequence[Picture]:
    """One picture for each field whose values are ways to do the same work: a panel for each column that is known."""
    table = subject.table
    alone = [row for row in table.alone if row.status != "skipped"]
    found = []
    for field in FIELDS:
        if field not in table.varied or len(different(alone, field)) < 2:
            continue
        others = [
            name
            for name in table.varied
            if name != field and field not in FOLLOWS.get(name, ()) and name != "lr"
        ]
        places: dict[str, list[TableRow]] = {}
        for row in alone:
            places.setdefault(clean(label(row, others)), []).append(row)
        compared = {
            name: rows
            for name, rows in places.items()
            if len({text_of(row, field) for row in rows if row.status == "ok"}) > 1
        }
        if compared:
            found.append(_picture(subject, field, compared))
    return found


def _picture(subject: Subject, field: str, places: dict[str, list[TableRow]]) -> Picture:
    table = subject.table
    rows = [row for members in places.values() for row in members]
    ways = list(dict.fromkeys(text_of(row, field) for row in rows))
    shown = [column for column in COLUMNS if any(row.value(column) is not None for row in rows)]
    panels = []
    for column in shown:
        series = tuple(
            PlottedSeries(
                name=way,
                look=look,
                points=tuple(
                    point(subject, row, float(place), column)
                    for place, members in enumerate(places.values())
                    for row in members
                    if text_of(row, field) == way
                ),
            )
            for look, way in enumerate(ways)
        )
        panels.append(bars(column, series, tuple(places)))
    words = [name_of(column) for column in shown]
    return Picture(
        name="alternatives",
        part=field,
        experiment=table.name,
        of=table.title,
        shows=f"{heading(field)} by {listed(words)}",
        panels=tuple(panels),
        legend=heading(field),
        caption=caption(table, f"{listed(words)[:1].upper()}{listed(words)[1:]}, side by side.", rows),
    )
