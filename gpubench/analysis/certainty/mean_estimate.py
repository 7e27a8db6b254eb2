"""A mean, or a sum of means, with what is known of how far chance has moved it: intervals and tests. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.distributions import t_above, t_quantile

LEVEL = 0.05
"""Probability of an error up to which a test decides."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one sample adds to the variance of an estimate, and with how many degrees of freedom that is known."""

    variance: float
    freedom: float

    @property
    def size(self) -> float:
        """How many values the sample has."""
        return self.freedom + 1

    def of_more(self, size: float) -> Part:
        """What a sample of so many values with the same noise would add."""
        return Part(self.variance * self.size / size, size - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class MeanEstimate:
    """A sum of means of independent samples from something near normal distributions of any variances.

    Its freedom is Welch's and Satterthwaite's (Welch 1947). They go wrong where a sample of few values has most of the
    variance: less noise in the other sample then makes the interval wider, and of two processes against five it holds
    the truth in 90 % of cases in place of 95 %. So no interval is narrower, and no p-value smaller, than any one sample
    would leave it if the others had no variance at all. From three values a sample on, that costs at most a fifth of
    the width at 95 %, and coverage is 95 to 98 % where Welch's is 93 to 97 %.
    """

    center: float
    parts: tuple[Part, ...]
    """At least one."""

    @property
    def error(self) -> float:
        """The standard error, in the unit of the center."""
        return math.sqrt(math.fsum(part.variance for part in self.parts))

    @property
    def freedom(self) -> float:
        """By Satterthwaite; the least of the parts where none varies, or nothing is known of one."""
        if not 0 < self.error < math.inf:
            return min(part.freedom for part in self.parts)
        squares = math.fsum(part.variance**2 / part.freedom for part in self.parts)
        return self.error**4 / squares if squares else min(part.freedom for part in self.parts)

    def half_width(self, confidence: float = 1 - LEVEL) -> float:
        """Half the width of the interval that holds the truth with this confidence."""
        return (
            max(
                t_quantile((1 + confidence) / 2, freedom) * error
                for error, freedom in self._errors()
                if error
            )
            if self.error
            else 0.0
        )

    def chance_at_most(self, value: float) -> float:
        """The p-value of "the truth is `value` or less". Where nothing varies: 0, 1, or 0.5 at the value itself."""
        above = self.center - value
        if not self.error:
            return 0.5 if not above else float(above < 0)
        return max(t_above(above / error, freedom) for error, freedom in self._errors() if error)

    def chance_at_least(self, value: float) -> float:
        """The p-value of "the truth is `value` or more"."""
        return MeanEstimate(center=-self.center, parts=self.parts).chance_at_most(-value)

    def chance_equal(self, value: float) -> float:
        """The two-sided p-value of "the truth is `value`"."""
        return min(1.0, 2 * min(self.chance_at_most(value), self.chance_at_least(value)))

    def chance_outside(self, low: float, high: float) -> float:
        """The p-value of "the truth does not lie between": two one-sided tests (Schuirmann 1987)."""
        return max(self.chance_at_most(low), self.chance_at_least(high))

    def _errors(self) -> Iterator[tuple[float, float]]:
        """Standard error and freedom: of all parts, then of each by itself."""
        yield self.error, self.freedom
        for part in self.parts:
            yield math.sqrt(part.variance), part.freedom


def mean(values: Sequence[float]) -> float:
    """Exactly rounded, so that their order changes nothing."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Of a sample of two values or more; values that are all the same have none."""
    if min(values) == max(values):
        return 0.0
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


def part_of(values: Sequence[float], weight: float = 1.0, least_sd: float = 0.0) -> Part:
    """What `weight` times the mean of two values or more adds to the variance of an estimate.

    `least_sd`: a standard deviation below which the values can't resolve one.
    """
    spread = max(variance(values), least_sd**2)
    return Part(weight**2 * spread / len(values), len(values) - 1)
