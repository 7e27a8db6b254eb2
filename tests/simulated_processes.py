"""Times of processes whose truth is known: for tests of what intervals and decisions promise."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

STEPS = 64
RESEMBLES = 0.5
STEP_SD = 0.08
"""Of a step, as a share of its mean."""


def resembling(draw: np.random.Generator, shape: tuple[int, int], resembles: float) -> Array:
    """Lines of normal values of variance 1, each correlated with the one before."""
    values = draw.normal(size=shape)
    for place in range(1, shape[1]):
        values[:, place] = resembles * values[:, place - 1] + math.sqrt(1 - resembles**2) * values[:, place]
    return values


def error_of_mean(steps: int = STEPS, resembles: float = RESEMBLES) -> float:
    """The standard deviation of the mean of such a line."""
    lags = np.arange(1, steps)
    return float(np.sqrt((1 + 2 * np.sum((1 - lags / steps) * resembles**lags)) / steps))


def stalling(draw: np.random.Generator, samples: int, steps: int, every: int = 8, cost: float = 3.0) -> Array:
    """Step times of which each eighth waits for a loader; where in its rhythm a window begins is chance."""
    begins = draw.integers(0, every, size=(samples, 1))
    waits = (np.arange(steps)[None, :] + begins) % every == 0
    return 1.0 + cost * waits + draw.normal(0, 0.05, (samples, steps))
