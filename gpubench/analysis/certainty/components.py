"""Variance between processes and inside them, told apart. One-way random effects, by the method of moments. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.mean_estimate import mean, variance


@dataclass(frozen=True, kw_only=True, slots=True)
class Components:
    """Standard deviations of a process's time, as shares of it (on the log scale)."""

    between_sd: float
    """Of what differs from process to process; 0 where processes differ by no more than what is inside them explains.
    More steps a process don't lessen it."""
    within_sd: float
    """Of a process's own mean about its truth: what a longer window lessens."""
    total_sd: float
    """Of processes' means, as they were seen."""
    processes: int


def components(times: Sequence[float], errors: Sequence[float]) -> Components | None:
    """Between = max(0, S² − mean of squared errors), S² the variance of the times' logarithms. None under two.

    `times`: each process's mean time of a step (or an image). `errors`: the standard error of each as a share of it
    (`steps.StepMean.error`). Raises ValueError where there are not as many.
    """
    if len(times) != len(errors):
        raise ValueError("each time of a process has one standard error")
    if len(times) < 2:
        return None
    total = variance([math.log(time) for time in times])
    within = mean([error**2 for error in errors])
    return Components(
        between_sd=math.sqrt(max(0.0, total - within)),
        within_sd=math.sqrt(within),
        total_sd=math.sqrt(total),
        processes=len(times),
    )
