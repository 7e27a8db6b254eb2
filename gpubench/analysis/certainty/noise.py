"""The machine's own noise: how far processes of one configuration differ. It stands in where there is one process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.distributions import chi2_quantile, t_quantile
from gpubench.analysis.certainty.mean_estimate import LEVEL, Part, variance


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """The standard deviation between processes, on the log scale (0.02: times differ by about 2 %).

    What windows of the same length see inside each process is in it. `freedom`: how many degrees of freedom it is
    known with, one fewer than processes for each configuration.
    """

    sd: float
    freedom: float

    def __post_init__(self) -> None:
        if not (self.sd >= 0 and math.isfinite(self.sd) and self.freedom > 0):
            raise ValueError("a noise has a standard deviation from 0 on, and some degrees of freedom")

    def part(self, weights: Sequence[float]) -> Part:
        """What processes with these weights add to the variance of an estimate.

        One part for all of them: what is known of their variance is one and the same figure, known with its freedom
        once.
        """
        return Part(self.sd**2 * math.fsum(weight**2 for weight in weights), self.freedom)

    def half_width(self, confidence: float = 1 - LEVEL) -> float:
        """Half the width of the interval of one process, on the log scale."""
        return t_quantile((1 + confidence) / 2, self.freedom) * self.sd

    def at_least(self, half_width: float, confidence: float = 1 - LEVEL) -> Noise:
        """This noise, or so much that the interval of one process is as wide."""
        least = half_width / t_quantile((1 + confidence) / 2, self.freedom)
        return Noise(sd=max(self.sd, least), freedom=self.freedom)

    def interval(self, confidence: float = 1 - LEVEL) -> tuple[float, float]:
        """Between which standard deviations the true one lies: by the chi-squared distribution."""
        return (
            self.sd * math.sqrt(self.freedom / chi2_quantile((1 + confidence) / 2, self.freedom)),
            self.sd * math.sqrt(self.freedom / chi2_quantile((1 - confidence) / 2, self.freedom)),
        )


def pooled(configurations: Iterable[Sequence[float]]) -> Noise | None:
    """The noise that several configurations have in common, from times of the processes of each.

    Those with fewer than two processes tell nothing; None where all have. It is right only for configurations whose
    noise is the same (limited by the same thing), which this can't see: processes differed by 13 % where the CPU fed
    the GPU and by 0.2 % where the GPU was the limit, and one figure for both would be wrong for each.
    """
    squares, freedom = [], 0
    for times in configurations:
        if len(times) > 1:
            squares.append(variance([math.log(time) for time in times]) * (len(times) - 1))
            freedom += len(times) - 1
    return Noise(sd=math.sqrt(math.fsum(squares) / freedom), freedom=freedom) if freedom else None
