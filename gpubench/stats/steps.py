"""What the step times of one process tell: their mean and its standard error. Pure.

Steps are not independent: each resembles the one before, or every eighth waits for a loader. Their plain standard error
is then too small by a factor of two to five, or too large by six. Means of eight to fifteen batches of steps don't
care, once a batch is long (Alexopoulos and Seila 1998).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.stats.estimates import mean, variance

FEWEST_STEPS = 40
BATCHES = 8
"""At least so many. Of fewer the standard error is known badly, of more each is too short to be independent."""
BATCH_MULTIPLE = 8
"""Batches of at least so many steps have a multiple of it: loaders' rhythms of 2, 4 and 8 steps fit in whole."""
FEWEST_EFFECTIVE = 16
"""Independent steps that would tell as much as the window; below, batches resemble each other, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMean:
    """The mean time of a step in one process."""

    seconds: float
    error: float
    """Standard error, as a share of the mean: 0.01 is 1 %."""
    steps: int
    """The last so many steps of the window, which the mean is of: whole batches."""
    batches: int


def estimate_step_mean(steps: Sequence[float]) -> StepMean | None:
    """Mean and standard error of step times, in their order, by batch means. The beginning must be steady.

    None where there are too few: under FEWEST_STEPS, or where neighbours resemble each other so much that they tell as
    little as FEWEST_EFFECTIVE independent ones (by the correlation of neighbours, as in an autoregression).
    """
    if len(steps) < FEWEST_STEPS or count_effective_steps(steps) < FEWEST_EFFECTIVE:
        return None
    length = len(steps) // BATCHES
    if length >= BATCH_MULTIPLE:
        length -= length % BATCH_MULTIPLE
    count = len(steps) // length
    used = steps[len(steps) - count * length :]
    batches = [mean(used[place : place + length]) for place in range(0, len(used), length)]
    middle = mean(used)
    return StepMean(
        seconds=middle, error=math.sqrt(variance(batches) / count) / middle, steps=len(used), batches=count
    )


def count_effective_steps(steps: Sequence[float]) -> float:
    """How many independent steps would tell as much of the mean: n (1 − r) / (1 + r), r the correlation of neighbours.

    Where neighbours resemble each other less than by chance: as many as there are.
    """
    middle = mean(steps)
    apart = [step - middle for step in steps]
    squares = math.fsum(distance * distance for distance in apart)
    if not squares:
        return float(len(steps))
    together = math.fsum(before * after for before, after in itertools.pairwise(apart))
    resembles = max(0.0, together / squares)
    return len(steps) * (1 - resembles) / (1 + resembles)
