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


def mean_times(
    draw: np.random.Generator, samples: int, processes: int, between: float, outliers: bool = False
) -> Array:
    """Mean step times, in s, of so many samples of processes around a truth of 1 s.

    Each is the mean of STEPS steps that resemble their neighbours. `between`: the variance between processes, in units
    of that of such a mean. `outliers`: one process in twenty is 30 % slower.
    """
    inside = STEP_SD * resembling(draw, (samples * processes, STEPS), RESEMBLES).mean(axis=1)
    apart = draw.normal(0, STEP_SD * error_of_mean() * math.sqrt(between), samples * processes)
    slower = np.where(draw.random(samples * processes) < (0.05 if outliers else 0), math.log(1.3), 0.0)
    return np.exp(inside + apart + slower).reshape(samples, processes)


def stalling(draw: np.random.Generator, samples: int, steps: int, every: int = 8, cost: float = 3.0) -> Array:
    """Step times of which each eighth waits for a loader; where in its rhythm a window begins is chance."""
    begins = draw.integers(0, every, size=(samples, 1))
    waits = (np.arange(steps)[None, :] + begins) % every == 0
    return 1.0 + cost * waits + draw.normal(0, 0.05, (samples, steps))
