"""The Pareto front: what nothing else beats in both of two figures, of which less is better. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each point whether it is on the front: no other is at most as large in both, and smaller in one."""
    return [not any(_beats(other, one) for other in points) for one in points]


def _beats(other: tuple[float, float], one: tuple[float, float]) -> bool:
    return other[0] <= one[0] and other[1] <= one[1] and other != one
