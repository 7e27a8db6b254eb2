"""The legend: what each series looks like, and what it is called."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpubench.plot.description import DOUBTED, Picture, PlottedSeries
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.looks import PREDICTED, fill_of, line_of
from gpubench.plot.paper.sheet import SMALL, WIDTH


def handles(picture: Picture, ink: Ink) -> list[Any]:
    """Its entries; none where there is only one series to be told."""
    bars = picture.panels[0].kind != "lines"
    found = []
    for one in picture.entries:
        name = f"{one.name} {DOUBTED}" if picture.wholly_doubtful(one.name) else one.name
        found.append(_handle(one, "\n".join(ink.wrapped(name, SMALL, WIDTH - 0.6)), bars=bars))
    return found


def _handle(one: PlottedSeries, name: str, *, bars: bool) -> Any:
    if one.role == "predicted":
        return Line2D([], [], label=name, **PREDICTED)
    if bars and one.role == "measured":
        return Patch(label=name, **fill_of(one))
    return Line2D([], [], label=name, **line_of(one))


def put(figure: Figure, entries: list[Any], title: str, top: float, columns: int) -> None:
    """Puts the legend below `top`, a share of the figure's height."""
    legend = figure.legend(
        handles=entries,
        title=title or None,
        loc="upper left",
        bbox_to_anchor=(0, top),
        ncols=columns,
        alignment="left",
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=2.2,
        columnspacing=1.0,
        labelspacing=0.25,
        handletextpad=0.5,
    )
    legend.set_in_layout(False)
