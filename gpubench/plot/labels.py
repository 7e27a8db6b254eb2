"""Where words stand that belong to a point: beside it, or at the end of a short line from it, or nowhere. Pure.

A reader takes a word for that of the nearest point, so a place will do only where that is its own. All lengths are in
one unit, say inches; y goes up or down alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Pair = tuple[float, float]
"""x and y."""
Stroke = tuple[Pair, Pair]
"""Both ends of a line."""
UNMISTAKABLE = 1.5
"""So many times as far as from its own point is a word from any other one."""
REACHES = (3.5, 5.5, 8.0)
"""How long a line from a point to its words may be, in radii of a marker: the shortest first."""
ALONE = 1.15
"""So many radii of a marker is such a line away from any other point."""
WAYS = 16
"""Directions into which such a line may go."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: Box) -> bool:
        """Whether both have room in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )

    def holds(self, other: Box) -> bool:
        """Whether the other one lies in it."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.low <= other.low
            and other.high <= self.high
        )

    def gap(self, point: Pair) -> float:
        """How far a point lies outside."""
        across = max(self.left - point[0], 0.0, point[0] - self.right)
        return math.hypot(across, max(self.low - point[1], 0.0, point[1] - self.high))

    @property
    def middle(self) -> Pair:
        """Its centre."""
        return (self.left + self.right) / 2, (self.low + self.high) / 2

    def is_crossed(self, stroke: Stroke) -> bool:
        """Whether a line has a part in it."""
        (x, y), (to_x, to_y) = stroke
        begin, end = 0.0, 1.0
        for step, low, high in (
            (to_x - x, self.left - x, self.right - x),
            (to_y - y, self.low - y, self.high - y),
        ):
            if step == 0:
                if low >= 0 or high <= 0:
                    return False
                continue
            begin = max(begin, min(low / step, high / step))
            end = min(end, max(low / step, high / step))
        return begin < end


@dataclass(frozen=True, slots=True)
class Spot:
    """A point, and the room that its words take."""

    x: float
    y: float
    wide: float = 0.0
    """0: it has no words."""
    high: float = 0.0
    first: bool = False
    """Whether its words go before those of others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a point's words stand."""

    box: Box
    leader: Stroke | None = None
    """The line from its marker to them; None where they stand beside it."""


def placed(spots: Sequence[Spot], strokes: Sequence[Stroke], room: Box, radius: float) -> list[Place | None]:
    """A place for the words of each point, in their order; None where it has none, or no place will do.

    `strokes`: what is drawn beside markers, which no words may lie upon. `room`: outside of which none may stand.
    `radius`: of a marker.
    """
    found: list[Place | None] = [None] * len(spots)
    taken: list[Place] = []
    around = {at: _around(at, spots, strokes, radius) for at, one in enumerate(spots) if one.wide}
    own = {
        at: [
            one
            for one in _near(spots[at], radius)
            if _is_clear(one, near, room) and _is_its_own(one.box, near)
        ]
        for at, near in around.items()
    }
    # Who has the least choice goes first, for others get out of the way.
    for at in sorted(around, key=lambda at: (not spots[at].first, len(own[at]))):
        led = (
            one
            for one in _led(spots[at], radius)
            if _is_clear(one, around[at], room) and _leads(one, around[at], radius)
        )
        for place in itertools.chain(own[at], led):
            if not any(_bars(place, other) for other in taken):
                found[at] = place
                taken.append(place)
                break
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Around:
    """What lies so near to a point that its words may meet it."""

    point: Pair
    others: Sequence[Pair]
    strokes: Sequence[Stroke]


def _around(at: int, spots: Sequence[Spot], strokes: Sequence[Stroke], radius: float) -> _Around:
    one = spots[at]
    far = (REACHES[-1] + 3) * radius + one.wide + one.high
    square = Box(one.x - far, one.y - far, one.x + far, one.y + far)
    return _Around(
        point=(one.x, one.y),
        others=[
            (other.x, other.y)
            for number, other in enumerate(spots)
            if number != at and abs(other.x - one.x) < far and abs(other.y - one.y) < far
        ],
        strokes=[stroke for stroke in strokes if square.is_crossed(stroke)],
    )


def _near(spot: Spot, radius: float) -> Iterator[Place]:
    """Places beside a point, the first choice first. All are equally far from it."""
    apart = radius * 1.6
    for across, up in ((1, 1), (-1, 1), (1, -1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0)):
        far = apart / math.hypot(across, up)
        left = spot.x + across * far - spot.wide * (1 - across) / 2
        low = spot.y + up * far - spot.high * (1 - up) / 2
        yield Place(box=Box(left, low, left + spot.wide, low + spot.high))


def _led(spot: Spot, radius: float) -> Iterator[Place]:
    """Places at the end of a line from the edge of a point's marker."""
    for reach in REACHES:
        for way in range(WAYS):
            x, y = math.cos(math.tau * way / WAYS), math.sin(math.tau * way / WAYS)
            # The line goes to the middle of the words, and ends where they begin.
            inside = min(
                spot.wide / 2 / abs(x) if abs(x) > 1e-9 else math.inf,
                spot.high / 2 / abs(y) if abs(y) > 1e-9 else math.inf,
            )
            far = reach * radius
            left = spot.x + x * (far + inside) - spot.wide / 2
            low = spot.y + y * (far + inside) - spot.high / 2
            yield Place(
                box=Box(left, low, left + spot.wide, low + spot.high),
                leader=(
                    (spot.x + x * radius, spot.y + y * radius),
                    (spot.x + x * far, spot.y + y * far),
                ),
            )


def _is_clear(place: Place, around: _Around, room: Box) -> bool:
    """Whether words lie inside, and upon no line."""
    return room.holds(place.box) and not any(place.box.is_crossed(one) for one in around.strokes)


def _is_its_own(box: Box, around: _Around) -> bool:
    """Whether nobody takes words there for those of another point."""
    gap, far = box.gap(around.point), math.dist(box.middle, around.point)
    return all(
        box.gap(other) >= UNMISTAKABLE * gap and math.dist(box.middle, other) > far for other in around.others
    )


def _leads(place: Place, around: _Around, radius: float) -> bool:
    """Whether nobody takes its line for that of another point, for it leaves its own on the side where that is alone;
    and whether the words at its end lie upon no marker."""
    leader = place.leader
    return leader is not None and all(
        place.box.gap(other) > radius and _distance(other, leader) > ALONE * radius for other in around.others
    )


def _distance(point: Pair, stroke: Stroke) -> float:
    """Of a point from a line."""
    (x, y), (to_x, to_y) = stroke
    step_x, step_y = to_x - x, to_y - y
    length = step_x**2 + step_y**2
    share = 0.0 if not length else ((point[0] - x) * step_x + (point[1] - y) * step_y) / length
    share = max(0.0, min(1.0, share))
    return math.dist(point, (x + share * step_x, y + share * step_y))


def _bars(one: Place, other: Place) -> bool:
    """Whether both can't be there: words upon words, a line through words, or a line through a line."""
    if one.box.meets(other.box):
        return True
    if one.leader and other.box.is_crossed(one.leader):
        return True
    if other.leader and one.box.is_crossed(other.leader):
        return True
    return bool(one.leader and other.leader and _cross(one.leader, other.leader))


def _cross(one: Stroke, other: Stroke) -> bool:
    """Whether two lines cross."""

    def side(stroke: Stroke, point: Pair) -> float:
        (x, y), (to_x, to_y) = stroke
        return (to_x - x) * (point[1] - y) - (to_y - y) * (point[0] - x)

    return side(one, other[0]) * side(one, other[1]) <= 0 and side(other, one[0]) * side(other, one[1]) <= 0
