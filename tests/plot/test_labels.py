"""Where words of points stand: whose they are can't be mistaken, none covers another, what has no room is left out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpubench.plot.labels import Box, Place, Spot, placed

ROOM = Box(0.0, 0.0, 100.0, 60.0)
RADIUS = 2.0
WIDE, HIGH = 7.0, 3.0

across, up = st.integers(30, 70), st.integers(20, 40)
spots = st.lists(st.tuples(across, up, st.sampled_from([0.0, 2.0, WIDE, 2 * WIDE])), min_size=1, max_size=20)
strokes = st.lists(st.tuples(st.tuples(across, up), st.tuples(across, up)), max_size=5)


def of(points: list[tuple[float, float, float]]) -> list[Spot]:
    return [Spot(x=x, y=y, wide=wide, high=HIGH if wide else 0.0) for x, y, wide in points]


def touches(box: Box, stroke: tuple[tuple[float, float], tuple[float, float]]) -> bool:
    """Looked at point by point, a little inside of the box."""
    (x, y), (to_x, to_y) = stroke
    steps = [n / 500 for n in range(501)]
    return any(
        box.left + 0.3 < x + s * (to_x - x) < box.right - 0.3
        and box.low + 0.3 < y + s * (to_y - y) < box.high - 0.3
        for s in steps
    )


def meet(
    one: tuple[tuple[float, float], tuple[float, float]],
    other: tuple[tuple[float, float], tuple[float, float]],
) -> bool:
    """Solved as equations: where both are at the same place, how far along each that is."""
    (ax, ay), (bx, by) = one
    (cx, cy), (dx, dy) = other
    turn = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    if turn == 0:
        return False
    along = ((cx - ax) * (dy - cy) - (cy - ay) * (dx - cx)) / turn
    beside = ((cx - ax) * (by - ay) - (cy - ay) * (bx - ax)) / turn
    return 0.01 < along < 0.99 and 0.01 < beside < 0.99


def gap(box: Box, x: float, y: float) -> float:
    return math.hypot(max(box.left - x, 0, x - box.right), max(box.low - y, 0, y - box.high))


@given(spots, strokes)
@settings(max_examples=200, deadline=None)
@example([(50.0, 30.0, WIDE)] * 2, [])
@example([(50.0 + n, 30.0, WIDE) for n in range(6)], [])
@example([(47, 32, 2.0), (50, 32, 2.0), (45, 31, 2.0), (52, 33, 2.0)], [])
def test_no_words_can_be_taken_for_those_of_another_point(
    points: list[tuple[float, float, float]],
    lines: list[tuple[tuple[float, float], tuple[float, float]]],
) -> None:
    found = placed(of(points), lines, ROOM, RADIUS)
    assert len(found) == len(points)
    there: list[Place] = [place for place in found if place]
    for a, b in itertools.combinations(there, 2):
        assert min(a.box.right, b.box.right) <= max(a.box.left, b.box.left) or (
            min(a.box.high, b.box.high) <= max(a.box.low, b.box.low)
        ), "words upon words"
        for one, other in ((a, b), (b, a)):
            assert not (one.leader and touches(other.box, one.leader)), "a line through words"
        if a.leader and b.leader:
            assert not meet(a.leader, b.leader), "a line through a line"
    for (x, y, wide), place in zip(points, found, strict=True):
        if place is None:
            continue
        assert wide, "a place for nothing"
        box = place.box
        assert (box.right - box.left, box.high - box.low) == pytest.approx((wide, HIGH))
        assert 0 <= box.left <= box.right <= 100
        assert 0 <= box.low <= box.high <= 60
        assert not any(touches(box, line) for line in lines), "a line through words"
        others = [(a, b) for a, b, _ in points if (a, b) != (x, y)]
        assert all(gap(box, a, b) >= RADIUS for a, b in (*others, (x, y))), "words upon a marker"
        if place.leader is None:
            assert all(gap(box, a, b) >= 1.4 * gap(box, x, y) for a, b in others), "nearer to another one"
            middle = ((box.left + box.right) / 2, (box.low + box.high) / 2)
            assert all(math.dist(middle, one) > math.dist(middle, (x, y)) for one in others)
        else:
            begins, ends = place.leader
            assert math.dist(begins, (x, y)) == pytest.approx(RADIUS)
            assert all(math.dist(begins, one) > RADIUS for one in others), "begins at another one"
            assert gap(box, *ends) < 1e-6, "a line that does not reach its words"
            assert math.dist(begins, ends) < 8 * RADIUS, "it is short"


def test_a_point_by_itself_has_its_words_beside_it() -> None:
    (place,) = placed(of([(50, 30, WIDE)]), [], ROOM, RADIUS)
    assert place is not None
    assert place.leader is None


def test_points_that_nearly_coincide_get_lines_that_leave_on_their_own_sides() -> None:
    left, right = placed(of([(49.5, 30, WIDE), (50.5, 30, WIDE)]), [], ROOM, RADIUS)
    assert left is not None
    assert right is not None
    assert left.leader is not None
    assert right.leader is not None
    assert left.leader[0][0] < 49.5
    assert right.leader[0][0] > 50.5


def test_of_points_that_do_coincide_no_words_are_shown() -> None:
    assert placed(of([(50, 30, WIDE)] * 2), [], ROOM, RADIUS) == [None, None]


def test_the_points_that_count_most_get_the_room_that_there_is() -> None:
    """In a room for one word."""
    small = Box(45, 28, 55, 36)
    spots = of([(49.5, 30, WIDE), (50.5, 30, WIDE)])
    for first in (0, 1):
        asked = [replace(spot, first=at == first) for at, spot in enumerate(spots)]
        found = placed(asked, [], small, RADIUS / 4)
        assert [place is not None for place in found] == [at == first for at in (0, 1)]
