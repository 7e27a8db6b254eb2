"""What stands beside points: labels, doubts, and how rows without figures ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from gpubench.plot.description import DOUBTED, ENDINGS, Panel, Picture, PlottedPoint, PlottedSeries
from gpubench.plot.labels import Box, Pair, Place, Spot, Stroke, placed
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.looks import colour_of
from gpubench.plot.paper.sheet import FINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CROWDED = 16
"""Points from which marks stand at the edge of a panel, for there is no room beside each."""
RADIUS = 2.3 / 72
"""Inches: of a marker, with its edge."""


def said(picture: Picture, panel: Panel) -> list[tuple[PlottedPoint, PlottedSeries, str]]:
    """Each point that is shown, with its series and what is to stand beside it: its label, and `!` for doubts."""
    return [
        (p, one, f"{p.label} {_mark(picture, panel, one, p)}".strip())
        for one in panel.series
        if one.role == "measured" and one.marked
        for p in one.points
        if p.y is not None
    ]


def words(ax: Axes, picture: Picture, panel: Panel, ink: Ink) -> None:
    """What stands beside points. Only when all is laid out: before, nobody knows how large the panel will be."""
    shown = said(picture, panel)
    measured = [one for one in panel.series if one.role == "measured" and one.marked]
    if len(shown) > CROWDED and not any(p.label for p, *_ in shown):
        for p, one, text in shown:
            if text:
                _at_edge(ax, p, one, measured)
        return
    at = _inches_of(ax)
    spots = [
        Spot(
            *at(p.x, p.y or 0, shift_of(panel, one)),
            wide=ink.width(text, FINE) + 1 / 72 if text else 0.0,
            high=FINE / 72,
            first=p.best,
        )
        for p, one, text in shown
    ]
    inside = ax.get_window_extent()
    room = Box(*(end / ax.figure.dpi for end in (inside.x0, inside.y0, inside.x1 + FINE, inside.y1 + FINE)))
    places = placed(spots, list(_strokes(panel, at)), room, RADIUS)
    for (p, one, text), place in zip(shown, places, strict=True):
        if place:
            _write(ax, text, place)
        elif _mark(picture, panel, one, p):
            _at_edge(ax, p, one, measured)


def _mark(picture: Picture, panel: Panel, one: PlottedSeries, p: PlottedPoint) -> str:
    return DOUBTED if p.doubtful and picture.marks_points(panel, one) else ""


def _at_edge(ax: Axes, p: PlottedPoint, one: PlottedSeries, measured: Sequence[PlottedSeries]) -> None:
    """A doubt below its point, in the colour of its series: there is no room beside it."""
    over = blended_transform_factory(ax.transData, ax.transAxes)
    shift = (measured.index(one) - (len(measured) - 1) / 2) * 3
    ax.annotate(
        DOUBTED, (p.x, 0.02), xycoords=over, xytext=(shift, 0), textcoords="offset points", fontsize=FINE,
        ha="center", annotation_clip=False, zorder=6, color=colour_of(one),
    ).set_in_layout(False)  # fmt: skip


def _write(ax: Axes, text: str, place: Place) -> None:
    on_sheet = ax.figure.dpi_scale_trans
    if place.leader:
        (x, y), (to_x, to_y) = place.leader
        ax.plot(
            [x, to_x], [y, to_y], transform=on_sheet, color="#555555", linewidth=0.4, zorder=5, clip_on=False
        )
    ax.text(
        *place.box.middle,
        text,
        transform=on_sheet,
        fontsize=FINE,
        ha="center",
        va="center_baseline",
        zorder=6,
    ).set_in_layout(False)


def _inches_of(ax: Axes) -> Callable[[float, float, float], Pair]:
    """Where on the sheet a point lies that is moved to the right by so many points."""

    def at(x: float, y: float, shift: float) -> Pair:
        across, up = ax.transData.transform((x, y)) / ax.figure.dpi
        return float(across) + shift / 72, float(up)

    return at


def _strokes(panel: Panel, at: Callable[[float, float, float], Pair]) -> Iterator[Stroke]:
    """All lines of a panel."""
    for one in panel.series:
        shift = shift_of(panel, one)
        for p in one.points:
            if p.y is not None and p.low is not None and p.high is not None:
                yield at(p.x, p.low, shift), at(p.x, p.high, shift)
            if p.y is not None and p.x_low is not None and p.x_high is not None:
                yield at(p.x_low, p.y, shift), at(p.x_high, p.y, shift)
        for p, after in itertools.pairwise(one.points):
            if one.joined and p.y is not None and after.y is not None:
                yield at(p.x, p.y, shift), at(after.x, after.y, shift)


def shift_of(panel: Panel, one: PlottedSeries) -> float:
    """By how many points a series lies beside where it should: where intervals of several would cover each other."""
    measured = [each for each in panel.series if each.role == "measured"]
    intervals = any(p.low is not None for each in measured for p in each.points)
    if len(measured) < 2 or not intervals or one.role != "measured":
        return 0.0
    return (measured.index(one) - (len(measured) - 1) / 2) * min(2.5, 12 / len(measured))


def endings(ax: Axes, panel: Panel) -> None:
    """How rows without figures ended, at the top of the panel, where no figure is."""
    over = blended_transform_factory(ax.transData, ax.transAxes)
    places: dict[float, list[tuple[PlottedSeries, PlottedPoint]]] = {}
    for one in panel.series:
        for p in one.points:
            if one.role == "measured" and p.y is None and p.status in ENDINGS:
                places.setdefault(p.x, []).append((one, p))
    for x, found in places.items():
        for place, (one, _) in enumerate(found):
            shift = (place - (len(found) - 1) / 2) * 5
            moved = over + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
            ax.plot(
                [x], [0.97], transform=moved, marker="x", markersize=4.5, markeredgewidth=1.2, clip_on=False,
                color=colour_of(one), linestyle="none",
            )  # fmt: skip
        said = "/".join(dict.fromkeys(ENDINGS[p.status] for _, p in found))
        ax.annotate(
            said, (x, 0.97), xycoords=over, xytext=(0, -4), textcoords="offset points", fontsize=FINE, ha="center",
            va="top", zorder=6,
        ).set_in_layout(False)  # fmt: skip
