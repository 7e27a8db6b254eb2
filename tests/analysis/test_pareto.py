"""The Pareto front, against its definition."""

from __future__ import annotations

import random

import pytest
from gpubench.analysis.front import front


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_nothing_beats(seed: int) -> None:
    dice = random.Random(seed)
    points = [(float(dice.randrange(8)), float(dice.randrange(8))) for _ in range(dice.randrange(1, 30))]
    wanted = [
        not any(a <= one and b <= other and (a, b) != (one, other) for a, b in points)
        for one, other in points
    ]
    assert front(points) == wanted
