"""Where names stand beside their points, so that they cover no other name and no point, if there is such a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

LETTER_PIXELS = 6.5
"""The width of a letter of FONT_SIZE, on average."""
FONT_SIZE = 11
POINT_PIXELS = 8
"""From the middle of a point to where its surroundings end."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, in pixels from the upper left of a panel."""

    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> bool:
        """Whether they have a part in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


@dataclass(frozen=True, slots=True)
class Anchor:
    """How a name stands beside its point."""

    align: str
    dx: float
    dy: float

    def place(self, left: float, top: float, width: float) -> Box:
        """What it covers."""
        begin = left + self.dx - {"left": 0.0, "center": width / 2, "right": width}[self.align]
        return Box(begin, top + self.dy - 7, begin + width, top + self.dy + 7)


ANCHORS = (
    Anchor("left", 10, 0),
    Anchor("right", -10, 0),
    Anchor("center", 0, -17),
    Anchor("center", 0, 17),
    Anchor("left", 8, -17),
    Anchor("right", -8, -17),
    Anchor("left", 8, 17),
    Anchor("right", -8, 17),
    Anchor("left", 8, -32),
    Anchor("right", -8, 32),
    Anchor("left", 8, 32),
    Anchor("right", -8, -32),
)
"""The best first."""


def label_points(
    points: Sequence[Mapping[str, Any]],
    places: Sequence[tuple[float, float]],
    encoding: Vega,
    *,
    unnamed: Sequence[tuple[float, float]] = (),
) -> list[Vega]:
    """A layer a point with its `name`.

    `places`: of the points, in pixels from the upper left of the panel; `unnamed`: of points without a name.
    `encoding`: of x, y and, where names have it, colour.
    """
    taken = [
        Box(left - POINT_PIXELS, top - POINT_PIXELS, left + POINT_PIXELS, top + POINT_PIXELS)
        for left, top in (*places, *unnamed)
    ]
    layers = []
    for point, (left, top) in zip(points, places, strict=True):
        width = LETTER_PIXELS * len(point["name"])
        boxes = {anchor: anchor.place(left, top, width) for anchor in ANCHORS}
        anchor = min(boxes, key=lambda anchor: (count_faults(boxes[anchor], taken), ANCHORS.index(anchor)))
        taken.append(boxes[anchor])
        color = {} if "color" in encoding else {"color": "#3A3F45"}
        layers.append(
            vega.layer(
                "text",
                {**encoding, "text": {"field": "name"}},
                [point],
                align=anchor.align,
                dx=anchor.dx,
                dy=anchor.dy,
                fontSize=FONT_SIZE,
                **color,
            )
        )
    return layers


def count_faults(box: Box, taken: Sequence[Box]) -> int:
    """How many boxes it covers. Nothing is worse than to leave the panel at the left, where the axis is."""
    return sum(box.covers(other) for other in taken) + len(taken) * (box.left < 0)
