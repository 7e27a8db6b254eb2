"""The parts of a step, one on the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import clean, listed
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import caption, figure, told
from gpubench.plot.subject import Subject
from gpubench.plot.table import label
from gpubench.schema.row import TableRow

PARTS = {
    "copy_ms": "copy",
    "forward_ms": "forward",
    "backward_ms": "backward",
    "comm_ms": "waiting for gradients",
    "optimizer_ms": "optimizer",
}
"""In the order of a step. What is communicated behind the backward pass is in that one already."""
SEEN = 0.005
"""Share of a step from which a part can be seen."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """A bar for each row whose steps were timed in parts."""
    table = subject.table
    rows = [row for row in table.alone if row.status == "ok" and row.forward_ms is not None]
    if not rows:
        return ()
    steps = {id(row): sum(max(0.0, row.value(part) or 0) for part in PARTS) for row in rows}
    there = [part for part in PARTS if any((row.value(part) or 0) > 0 for row in rows)]
    shown = [part for part in there if any((row.value(part) or 0) >= SEEN * steps[id(row)] for row in rows)]
    unseen = [PARTS[part] for part in there if part not in shown]
    left_out = (
        f" Below {SEEN:.1%} of each step, and left out: {listed(unseen)}.".replace("%", " %")
        if unseen
        else ""
    )
    series = tuple(
        PlottedSeries(
            name=PARTS[part],
            look=list(PARTS).index(part),
            points=tuple(_point(subject, row, place, part) for place, row in enumerate(rows)),
        )
        for part in shown
    )
    most = max(
        sum(p.y or 0 for one in series for p in one.points if p.x == place) for place in range(len(rows))
    )
    return (
        Picture(
            name="breakdown",
            experiment=table.name,
            of=table.title,
            shows="parts of a step",
            panels=(
                Panel(
                    kind="stacked",
                    x=PlottedAxis(title="", from_zero=False),
                    y=PlottedAxis(title="time of a step (ms)", top=most),
                    series=series,
                    places=tuple(clean(label(row, table.varied)) or table.name for row in rows),
                ),
            ),
            caption=caption(
                table,
                f"Parts of a step. Communication behind the backward pass lies within it.{left_out}",
                rows,
                intervals=False,
            ),
        ),
    )


def _point(subject: Subject, row: TableRow, place: int, part: str) -> PlottedPoint:
    value = row.value(part)
    share = max(0.0, value) if value is not None else None
    return PlottedPoint(
        name=clean(label(row, subject.table.varied)),
        x=float(place),
        y=share,
        doubtful=bool(row.doubts),
        told=told(subject, row, also=[f"{PARTS[part]} {figure(share)} ms"] if share is not None else []),
    )
