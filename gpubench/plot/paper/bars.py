"""Bars: one beside the other for each place, or one on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.plot import limits
from gpubench.plot.description import DOUBTED, ENDINGS, Panel, Picture
from gpubench.plot.paper import axes
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.looks import PREDICTED, fill_of
from gpubench.plot.paper.sheet import FINE, SMALL, WIDTH, inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAR = 0.11
"""Inches that a bar is thick."""
FEW = 8
"""Bars with more places have smaller letters."""
LABELS = 1.15
"""Inches that the names of places may be wide; a little more beside a single panel."""


def draw(figure: Figure, picture: Picture, ink: Ink) -> float:
    """Draws the panels beside each other, and says how many inches they take from top to bottom."""
    first, count = picture.panels[0], len(picture.panels)
    found = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    room = LABELS + (0.25 if count == 1 else 0)
    size = FINE if len(first.places) > FEW else SMALL
    names = [ink.wrapped(place, size, room) or [""] for place in first.places]
    side = 1 if first.kind == "stacked" else sum(one.role == "measured" for one in first.series)
    steps = [max(side * BAR + 0.07, len(lines) * inches(size) + 0.03) for lines in names]
    centres = [sum(steps[:place]) + step / 2 for place, step in enumerate(steps)]
    for ax, panel in zip(found, picture.panels, strict=True):
        axes.scale_bars(ax, panel)
        _bars(ax, picture, panel, centres, side)
        axes.title_x(ax, panel.y, ink, (WIDTH - room) / count)
        ax.set_yticks(centres, ["\n".join(lines) for lines in names], fontsize=size, linespacing=1.0)
        ax.set_ylim(sum(steps), 0)
    return sum(steps) + 0.55


def _bars(ax: Axes, picture: Picture, panel: Panel, centres: Sequence[float], side: int) -> None:
    """`centres`: how many inches below the top each place lies; `side`: bars of a place."""
    stacked = panel.kind == "stacked"
    ends = [0.0] * len(centres)
    most, edge = limits.longest(panel), limits.along_bars(panel).high
    for one in panel.series:
        doubts = picture.marks_points(panel, one)
        for p in one.points:
            place = int(p.x)
            if one.role == "predicted":
                ax.plot([p.y or 0], [centres[place]], clip_on=False, **PREDICTED)
                continue
            at = centres[place] + (0 if stacked else (one.look - (side - 1) / 2) * BAR)
            if p.y is None:
                if p.status != "ok":
                    _beside(ax, most * 0.01, at, ENDINGS.get(p.status, p.status))
                continue
            ax.barh(at, p.y, height=BAR, left=ends[place] if stacked else 0, **fill_of(one))
            end = p.y
            if p.low is not None and p.high is not None:
                ax.plot([p.low, p.high], [at, at], color="black", linewidth=0.8, marker="|", markersize=3.5)
                end = max(p.y, min(p.high, edge))
            ends[place] += p.y
            if p.doubtful and doubts and not stacked:
                _beside(ax, end + most * 0.015, at, DOUBTED)
    if stacked:
        doubted = (one for one in panel.series if picture.marks_points(panel, one))
        for place in {int(p.x) for one in doubted for p in one.points if p.doubtful}:
            _beside(ax, ends[place] + most * 0.015, centres[place], DOUBTED)
    if panel.line_at is not None:
        ax.axvline(panel.line_at, color="black", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.5)


def _beside(ax: Axes, x: float, y: float, words: str) -> None:
    ax.text(x, y, words, fontsize=FINE, va="center", ha="left", zorder=6).set_in_layout(False)
