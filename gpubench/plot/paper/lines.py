"""Lines: series of points over an axis of numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from matplotlib.transforms import ScaledTranslation

from gpubench.plot.description import Panel, Picture, PlottedPoint, PlottedSeries
from gpubench.plot.paper import axes, marks
from gpubench.plot.paper.file import DPI
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.looks import line_of
from gpubench.plot.paper.sheet import SIZE, SMALL, inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HIGH, FLAT = 1.45, 0.85
"""Inches a panel is high: one of two, and one of more. A single one is higher by ALONE."""
ALONE = 0.55


def draw(figure: Figure, picture: Picture, ink: Ink) -> float:
    """Draws the panels below each other, and says how many inches they take from top to bottom."""
    count = len(picture.panels)
    found = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    one = FLAT if count > 2 else HIGH + (ALONE if count == 1 else 0)
    if picture.panels[0].title:
        one += inches(SMALL)
    for place, (ax, panel) in enumerate(zip(found, picture.panels, strict=True)):
        ax.set_ylabel("\n".join(ink.wrapped(panel.y.title, SIZE, one - 0.05)))
        if panel.title:
            ax.set_title(panel.title, loc="left", fontsize=SMALL, pad=2)
        _lines(ax, panel, bottom=place == count - 1, ink=ink)
        marks.endings(ax, panel)
    figure.align_ylabels(list(found))
    return count * one + 0.35


def label(figure: Figure, picture: Picture, ink: Ink) -> None:
    """Puts words beside points, where all is laid out."""
    if not any(said for panel in picture.panels for *_, said in marks.said(picture, panel)):
        return
    # At each resolution letters are a little wider or less so, and all moves, but for these words: so once it is laid
    # out, it stays.
    dpi = figure.dpi
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax, panel in zip(figure.axes, picture.panels, strict=True):
        marks.words(ax, picture, panel, ink)
    figure.set_dpi(dpi)


def _lines(ax: Axes, panel: Panel, ink: Ink, *, bottom: bool) -> None:
    for span in panel.spans:
        ax.axvspan(span.low, span.high, color="#000000", alpha=0.09, linewidth=0, zorder=0)
    axes.scale_x(ax, panel, ink)
    axes.scale_y(ax, panel)
    if bottom:
        ax.set_xlabel(panel.x.title)
    for one in panel.series:
        _line(ax, one, marks.shift_of(panel, one), hollow=panel.has_front)


def _line(ax: Axes, one: PlottedSeries, shift: float, *, hollow: bool) -> None:
    moved = ax.transData + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
    look = line_of(one)
    xs = [p.x for p in one.points]
    ys = [math.nan if p.y is None else p.y for p in one.points]
    if hollow:
        look["markerfacecolor"] = "white"
    ax.plot(xs, ys, transform=moved, clip_on=not one.marked, **look)
    best = [p for p in one.points if p.best and p.y is not None]
    if best:
        filled = look | {"markerfacecolor": look["color"]}
        ax.plot([p.x for p in best], [p.y or 0 for p in best], transform=moved, **filled)
    for p in one.points:
        _error(ax, p, moved, str(look["color"]))


def _error(ax: Axes, p: PlottedPoint, moved: Any, colour: str) -> None:
    if p.y is None:
        return
    drawn: dict[str, Any] = {
        "color": colour, "linewidth": 0.8, "transform": moved, "marker": "_", "markersize": 4, "zorder": 1.8,
    }  # fmt: skip
    if p.low is not None and p.high is not None:
        ax.plot([p.x, p.x], [p.low, p.high], **drawn)
    if p.x_low is not None and p.x_high is not None:
        ax.plot([p.x_low, p.x_high], [p.y, p.y], **(drawn | {"marker": "|"}))
