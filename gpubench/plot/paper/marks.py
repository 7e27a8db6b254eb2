"""What stands beside points: labels, doubts, and how rows without figures ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from gpubench.plot.description import ENDINGS, Panel, Picture, PlottedPoint, PlottedSeries
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.looks import colour_of
from gpubench.plot.paper.sheet import FINE, WIDTH
from gpubench.report.cells import DOUBTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CROWDED = 16
"""Points from which marks stand at the edge of a panel, for there is no room beside each."""
PLACES = (
    (3.5, 3.5),
    (-3.5, 3.5),
    (3.5, -3.5),
    (-3.5, -3.5),
    (0.0, 5.0),
    (0.0, -5.0),
    (12.0, 0.0),
    (-12.0, 0.0),
)
"""Where words may stand from their point, in points, the first choice first."""


def words(ax: Axes, picture: Picture, panel: Panel, ink: Ink, high: float) -> None:
    """Labels beside points, and `!` where their rows have doubts.

    `high`: about how many inches high the panel is.
    """
    measured = [one for one in panel.series if one.role == "measured" and one.marked]
    shown = [p for one in measured for p in one.points if p.y is not None]
    there = [_inches_of(ax, p.x, p.y or 0, high) for p in shown]
    taken = [(x - 0.03, x + 0.03, y - 0.03, y + 0.03) for x, y in there]
    crowded = len(shown) > CROWDED and not any(p.label for p in shown)
    over = blended_transform_factory(ax.transData, ax.transAxes)
    for place, one in enumerate(measured):
        doubts = picture.marks_points(panel, one)
        for p in one.points:
            mark = DOUBTED if p.doubtful and doubts else ""
            said = " ".join(part for part in (p.label, mark) if part)
            if p.y is None or not said:
                continue
            style_of: dict[str, Any] = {
                "textcoords": "offset points", "fontsize": FINE, "annotation_clip": False, "zorder": 6,
                "color": colour_of(one) if crowded else "black",
            }  # fmt: skip
            if crowded:
                shift = (place - (len(measured) - 1) / 2) * 3
                ax.annotate(
                    said, (p.x, 0.02), xycoords=over, xytext=(shift, 0), ha="center", **style_of
                ).set_in_layout(False)
                continue
            x, y = _inches_of(ax, p.x, p.y, high)
            box, (dx, dy) = _free(x, y, ink.width(said, FINE), taken)
            taken.append(box)
            side = "left" if dx > 0 else "right" if dx < 0 else "center"
            level = "bottom" if dy > 0 else "top" if dy < 0 else "center"
            ax.annotate(said, (p.x, p.y), xytext=(dx, dy), ha=side, va=level, **style_of).set_in_layout(False)


Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""


def _inches_of(ax: Axes, x: float, y: float, high: float) -> tuple[float, float]:
    """About where a point lies in its panel: how large that will be is known only when all is laid out."""
    across, up = (ax.transData + ax.transAxes.inverted()).transform((x, y))
    return float(across) * (WIDTH - 0.65), float(up) * high


def _free(x: float, y: float, wide: float, taken: Sequence[Box]) -> tuple[Box, tuple[float, float]]:
    """Where words that are so wide have room beside a point, and how far from it; the first choice if nowhere."""
    high, found = FINE / 72, []
    for dx, dy in PLACES:
        left = x + dx / 72 - (wide if dx < 0 else 0 if dx > 0 else wide / 2)
        low = y + dy / 72 - (high if dy < 0 else 0 if dy > 0 else high / 2)
        box = (left, left + wide, low, low + high)
        inside = left > 0 and left + wide < WIDTH - 0.6 and low > 0
        if inside and not any(_overlap(box, other) for other in taken):
            return box, (dx, dy)
        found.append(box)
    return found[0], PLACES[0]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


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
