"""The Pareto front: what nothing else beats in both of two figures, of which less is better. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Of each point whether it is on the front: no other is at most as large in both, and smaller in one.

    Each point is looked at once, along the first figure: a table may have series of a thousand rows.
    """
    best: dict[float, float] = {}
    for first, second in points:
        best[first] = min(second, best.get(first, inf))
    before = inf
    on_front = set()
    for first, second in sorted(best.items()):
        if second < before:
            on_front.add((first, second))
            before = second
    return [point in on_front for point in points]
