"""What the step times of one process tell: their mean, its standard error, and where they begin to be steady. Pure.

Steps are not independent: each resembles the one before, or every eighth waits for a loader. Their plain standard error
is then too small by a factor of two to five, or too large by six. Means of eight to fifteen batches of steps don't
care, once a batch is long (Alexopoulos and Seila 1998). `tests/benchmarks/certainty.py` compares other ways.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.mean_estimate import mean, variance

FEWEST_STEPS = 40
BATCHES = 8
"""At least so many. Of fewer the standard error is known badly, of more each is too short to be independent."""
PERIOD = 8
"""Batches of at least so many steps have a multiple of it: loaders' rhythms of 2, 4 and 8 steps fit in whole."""
FEWEST_EFFECTIVE = 16
"""Independent steps that would tell as much as the window; below, batches resemble each other, too."""
MSER = 5
"""Steps to a batch of MSER-5 (White 1997)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMean:
    """The mean time of a step in one process."""

    seconds: float
    error: float
    """Standard error, as a share of the mean: 0.01 is 1 %."""
    steps: int
    """The last so many steps of the window, which the mean is of: whole batches."""
    batches: int

    def steps_for(self, error: float) -> int:
        """How many steps a window needs for this standard error (a share of the mean), whole batches of them."""
        if not error > 0:
            raise ValueError("a standard error to reach is above 0")
        wanted = self.steps * (self.error / error) ** 2
        return max(FEWEST_STEPS, PERIOD * math.ceil(wanted / PERIOD - 1e-9))


def step_mean(steps: Sequence[float]) -> StepMean | None:
    """Mean and standard error of step times, in their order, by batch means. The beginning must be steady.

    None where there are too few: under FEWEST_STEPS, or where neighbours resemble each other so much that they tell as
    little as FEWEST_EFFECTIVE independent ones (by the correlation of neighbours, as in an autoregression).
    """
    if len(steps) < FEWEST_STEPS or effective(steps) < FEWEST_EFFECTIVE:
        return None
    length = len(steps) // BATCHES
    if length >= PERIOD:
        length -= length % PERIOD
    count = len(steps) // length
    used = steps[len(steps) - count * length :]
    batches = [mean(used[place : place + length]) for place in range(0, len(used), length)]
    middle = mean(used)
    return StepMean(
        seconds=middle,
        error=math.sqrt(variance(batches) / count) / middle,
        steps=len(used),
        batches=count,
    )


def effective(steps: Sequence[float]) -> float:
    """How many independent steps would tell as much of the mean: n (1 − r) / (1 + r), r the correlation of neighbours.

    Where neighbours resemble each other less than by chance: as many as there are.
    """
    middle = mean(steps)
    apart = [step - middle for step in steps]
    squares = math.fsum(one * one for one in apart)
    if not squares:
        return float(len(steps))
    together = math.fsum(one * other for one, other in itertools.pairwise(apart))
    resembles = max(0.0, together / squares)
    return len(steps) * (1 - resembles) / (1 + resembles)


def steady_from(steps: Sequence[float]) -> int | None:
    """How many steps at the beginning are not steady yet and must be left out, by MSER-5; None where all may be.

    The cut with which the standard error of what remains would be least, were it independent. It looks at all steps at
    once and does not ask whether they improve, so it favours neither fast nor slow ones: steady steps lose about a
    tenth, and their mean stays right. None where the least lies at the middle of the window, or later (the window is
    too short to have become steady), and under FEWEST_STEPS.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    left = len(steps) % MSER
    batches = [mean(steps[place : place + MSER]) for place in range(left, len(steps), MSER)]
    half = len(batches) // 2
    # Sums from the end, so that the work grows with the steps; about the mean, so that squares don't swallow digits.
    middle = mean(batches)
    total = squares = 0.0
    ends: list[float] = []
    for count, batch in enumerate(reversed([batch - middle for batch in batches]), start=1):
        total += batch
        squares += batch * batch
        ends.append(max(0.0, squares - total * total / count) / count**2)
    ends.reverse()
    cut = min(range(half + 1), key=ends.__getitem__)
    if cut == half:
        return None
    return left + MSER * cut if cut else 0
