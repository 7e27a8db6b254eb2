"""Top-1 over the time that training took, epoch by epoch: time to accuracy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import clean
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.shared import caption, figure
from gpubench.plot.subject import Subject
from gpubench.plot.table import PlotTable, label
from gpubench.schema.record import Record
from gpubench.schema.row import TableRow, replace

FEWEST = 2
"""Evaluations of a trial from which a curve can be drawn."""


def pictures(subject: Subject) -> Sequence[Picture]:
    """One panel with a curve for each trial that was evaluated after several epochs."""
    table = subject.table
    by_trial = {record.trial_id: record for record in subject.records if record.round == 1}
    rows: list[TableRow] = []
    series: list[PlottedSeries] = []
    for look, row in enumerate(table.alone):
        curves = [
            _curve(by_trial[trial], row, _name(table, row))
            for trial in table.trial_ids[id(row)]
            if trial in by_trial
        ]
        first = next((curve for curve in curves if curve), None)
        if first:
            rows.append(row)
            series.append(PlottedSeries(name=_name(table, row), look=look, points=first))
    if not series:
        return ()
    end = max(p.x for one in series for p in one.points)
    targets = dict.fromkeys(row.until_top1 for row in rows if row.until_top1)
    aims = tuple(
        PlottedSeries(
            name=f"asked for: {target:g} %",
            role="target",
            points=tuple(PlottedPoint(name="asked for", x=x, y=target) for x in (0.0, end)),
        )
        for target in targets
    )
    early = [f"{clean(label(row, table.varied))} ({row.status})" for row in rows if row.status != "ok"]
    cut = f" Ended before its time: {', '.join(early)}." if early else ""
    several = any(row.repeats > 1 for row in rows)
    most = max(p.y or 0 for one in (*series, *aims) for p in one.points)
    return (
        Picture(
            name="learning",
            experiment=table.name,
            of=table.title,
            shows="top-1 over training time",
            panels=(
                Panel(
                    kind="lines",
                    x=PlottedAxis(title="training (s)", top=end),
                    y=PlottedAxis(title="top-1 (%)", top=most),
                    series=(*series, *aims),
                ),
            ),
            caption=caption(
                table,
                "Top-1 on the validation split after each epoch, over the time of training: first epoch included, "
                f"evaluation not.{cut}{' Of repeats the first is drawn.' if several else ''}",
                [replace(row, status="ok") for row in rows],  # its figures are drawn, however it ended
                intervals=False,
            ),
        ),
    )


def _name(table: PlotTable, row: TableRow) -> str:
    return clean(label(row, table.varied)) or table.name


def _curve(record: Record, row: TableRow, name: str) -> tuple[PlottedPoint, ...]:
    """A point after each epoch of an attempt; a gap where an epoch was not evaluated."""
    trained, points = 0.0, []
    for epoch in record.epochs:
        seconds = epoch.get("epoch_time_s")
        if not isinstance(seconds, (int, float)):
            break
        trained += seconds
        top1 = epoch.get("top1_pct")
        y = float(top1) if isinstance(top1, (int, float)) else None
        at = f"epoch {epoch.get('epoch')}"
        points.append(
            PlottedPoint(
                name=at,
                x=trained,
                y=y,
                doubtful=bool(row.doubts),
                told=(
                    name,
                    at,
                    "not evaluated" if y is None else f"top-1 {figure(y)} %",
                    f"after {figure(trained)} s of training",
                ),
            )
        )
    return tuple(points) if sum(p.y is not None for p in points) >= FEWEST else ()
