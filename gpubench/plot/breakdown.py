"""The parts of a step, one on the other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.varied import label
from gpubench.basics.words import clean, listed
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import caption, rows_of
from gpubench.plot.subject import Subject

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
    rows = [row for row in rows_of(table) if row.status == "ok" and row.forward_ms is not None]
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
            points=tuple(
                PlottedPoint(
                    name=clean(label(row, table.varied)),
                    x=float(place),
                    y=max(0.0, row.value(part)) if row.value(part) is not None else None,
                    doubtful=bool(row.doubts),
                )
                for place, row in enumerate(rows)
            ),
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
            title=f"{table.title}: parts of a step",
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
