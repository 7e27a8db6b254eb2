"""What the page's script is given to draw: the descriptions of `gpubench.plot` as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.plot import limits, style
from gpubench.plot.description import ENDINGS, Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.limits import AxisEnds
from gpubench.plot.pictures import described as descriptions
from gpubench.plot.subject import Subject

MOST_ROWS = 5_000
"""A table of more has no pictures: they could not be read, and the page would grow without end."""
DIGITS = 5
"""Of figures of a time series, of which there are hundreds."""

Plain = dict[str, Any]


def pictures(subject: Subject) -> list[Picture]:
    """Those that a table's figures allow, the main ones first; none of a table that is too long for any."""
    return [] if len(subject.table.rows) > MOST_ROWS else descriptions(subject)


def described(picture: Picture) -> Plain:
    """A picture. What it, a series or a point lacks is left out."""
    return {
        "legend": picture.legend,
        "entries": [
            _series(one) | {"doubtful": picture.wholly_doubtful(one.name)} for one in picture.entries
        ],
        "panels": [_panel(picture, panel) for panel in picture.panels],
    }


def looks() -> Plain:
    """The shapes, dashes and hatches of series by the numbers of their looks. Their colours are in `colours`."""
    return {
        "colours": len(style.COLOURS),
        "shapes": [one.corners for one in style.SHAPES],
        "dashes": [one.page for one in style.DASHES],
        "hatches": [one.angles for one in style.HATCHES],
    }


def colours() -> str:
    """The colours of series as CSS, `--s0` and so on: light, and dark where the browser or the reader asks for it."""
    light = "".join(f"--s{at}:{one.light};" for at, one in enumerate(style.COLOURS))
    dark = "".join(f"--s{at}:{one.dark};" for at, one in enumerate(style.COLOURS))
    return (
        f":root{{{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
    )


def _panel(picture: Picture, panel: Panel) -> Plain:
    found: Plain = {"kind": panel.kind}
    if panel.kind == "lines":
        found |= {
            "x": _axis(panel.x, limits.across(panel)),
            "y": _axis(panel.y, limits.upward(panel)),
        }
    elif panel.kind == "cells":
        found |= {"x": _axis(panel.x), "y": _axis(panel.y), "cells": _cells(panel)}
    else:
        found |= {"y": _axis(panel.y, limits.along_bars(panel))}
    found |= {
        "series": [
            _series(one) | _points(one, marked=picture.marks_points(panel, one)) for one in panel.series
        ]
    }
    return found | _kept(
        places=panel.places,
        spans=[[span.low, span.high] for span in panel.spans],
        lineAt=panel.line_at,
        title=panel.title,
    )


def _axis(axis: PlottedAxis, ends: AxisEnds | None = None) -> Plain:
    found = {"title": axis.title, "measure": axis.measure, "unit": axis.unit, "steps": axis.steps}
    return found | _kept(ticks=axis.ticks, domain=[ends.low, ends.high] if ends else None)


def _series(one: PlottedSeries) -> Plain:
    return {"name": one.name, "look": one.look, "role": one.role} | _kept(
        loose=not one.joined,
        unmarked=not one.marked,
    )


def _points(one: PlottedSeries, *, marked: bool) -> Plain:
    """A series' points. Of a time series, which has hundreds, figures alone: the script says of them what there is."""
    if not one.marked:
        return {"xs": [_short(p.x) for p in one.points], "ys": [_short(p.y) for p in one.points]}
    return {"points": [_point(p, marked=marked) for p in one.points]}


def _point(p: PlottedPoint, *, marked: bool) -> Plain:
    return {"x": p.x, "y": p.y} | _kept(
        lo=p.low,
        hi=p.high,
        xlo=p.x_low,
        xhi=p.x_high,
        ended=ENDINGS.get(p.status) if p.y is None else None,
        doubtful=p.doubtful and marked and p.y is not None,
        label=p.label,
        best=p.best,
        written=p.written,
        told="\n".join(p.told),
    )


def _cells(panel: Panel) -> list[Plain]:
    ends = limits.of_cells(panel)
    return [
        {"row": cell.row, "column": cell.column, "text": cell.text}
        | _kept(share=None if cell.value is None else _short(ends.share(cell.value)))
        for cell in panel.cells
    ]


def _kept(**values: Any) -> Plain:
    """Those that are there. A figure of 0 is."""
    return {
        name: value
        for name, value in values.items()
        if value is not None and value is not False and not (isinstance(value, Sequence) and not value)
    }


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")
