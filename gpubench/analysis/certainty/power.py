"""What an open answer would take: the smallest effect that could have shown, and how many processes would settle it.

A power of 0.8: in four of five such sweeps the test decides. The noncentral t distribution gives it. From what few
processes tell of their own noise it is a plan and no promise: of three, the standard deviation is known to a factor of
about two either way, so what was foretold as 5 processes may take 15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.accuracy import MARGIN, SeedPair
from gpubench.analysis.certainty.distributions import noncentral_t_above, shift_seen, t_quantile
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate, Part

POWER = 0.8
MOST = 1_000
"""Processes a side beyond which nobody would go."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """Processes on each side that would settle a comparison with power 0.8; None: more than MOST, or none would."""

    difference: int | None
    """If the truth is the ratio that was seen: that both differ."""
    equality: int | None
    """If the truth is the ratio that was seen: that it lies inside the margin."""

    @property
    def fewest(self) -> int | None:
        return min((count for count in (self.difference, self.equality) if count), default=None)


def smallest_effect(ratio: Interval, level: float = LEVEL, power: float = POWER) -> float:
    """The least ratio above 1 that as many processes with this noise show to differ, with this power.

    `level`: what this claim was tested at; in a table of m comparisons level / m is the strictest. 1.0 where nothing
    varies. The inverse is the greatest ratio below 1. Infinite where no float is as large.
    """
    error = ratio.log.error
    if not error:
        return 1.0
    limit, freedom = _limit(ratio.log, level)
    try:
        return math.exp(shift_seen(limit, freedom, power) * error)
    except OverflowError:
        return math.inf


def settling_ratio(ratio: Interval, margin: float, level: float = LEVEL, power: float = POWER) -> Settling:
    """How many processes on each side would settle a ratio: whether both differ, or are equal inside `margin`.

    It takes the ratio and the noise that were seen for the truth, compared as they were: pair by pair where it was so.
    What a round does to both sides of a pair is not in its noise, so rounds settle it sooner than the spread of each
    side would tell. For ratios of samples of several processes; `level` as in `smallest_effect`.
    """
    spreads = [part.variance * part.size for part in ratio.log.parts]
    return _settled(spreads, abs(ratio.log.center), math.log1p(margin), level, power)


def settling_seeds(
    pair: SeedPair, margin: float = MARGIN, level: float = LEVEL, power: float = POWER
) -> Settling:
    """How many seeds on each side would settle whether top-1 differs, or is equal inside `margin` points.

    It takes what was seen for the truth. `level` as in `smallest_effect`. Raises ValueError for a side of one seed.
    """
    found = pair.estimate
    spreads = [part.variance * part.size for part in found.parts]
    return _settled(spreads, abs(found.center), margin, level, power)


def _settled(variances: Sequence[float], effect: float, wide: float, level: float, power: float) -> Settling:
    def shows(count: int) -> bool:
        return effect > 0 and power_of_difference(variances, count, effect, level) >= power

    def equal(count: int) -> bool:
        return effect < wide and power_of_equality(variances, count, effect, wide, level) >= power

    return Settling(difference=_least(shows), equality=_least(equal))


def power_of_difference(variances: Sequence[float], count: int, effect: float, level: float = LEVEL) -> float:
    """How probably samples of `count` values with these variances are called different.

    `effect`: by how much their means differ, above 0; in the unit of the variances' roots. The chance of a difference
    in the wrong direction is not counted.
    """
    found = _of(variances, count)
    if not found.error:
        return 1.0
    limit, freedom = _limit(found, level)
    return noncentral_t_above(limit, freedom, effect / found.error)


def power_of_equality(
    variances: Sequence[float], count: int, effect: float, wide: float, level: float = LEVEL
) -> float:
    """How probably samples of `count` values, their means `effect` apart, are called equal inside ±`wide`.

    The chance that both one-sided tests reject, which is at least the sum of both chances less one: so it is, if
    anything, too low.
    """
    found = _of(variances, count)
    if not found.error:
        return float(effect < wide)
    limit, freedom = _limit(found, 2 * level)
    chances = [
        noncentral_t_above(limit, freedom, room / found.error) for room in (wide - effect, wide + effect)
    ]
    return max(0.0, math.fsum(chances) - 1)


def _limit(found: MeanEstimate, level: float) -> tuple[float, float]:
    """How many standard errors must lie between two means to count, and the freedom of the noncentral t.

    Exact for one sample. Of two, each sweep sees other variances and so another limit: one between that of these
    variances and that of the sample with more of them alone. With this the tests reached a power of 0.72 to 0.86 where
    0.8 was foretold, for 2 to 10 processes a side (docs/certainty.md).
    """
    most = max(found.parts, key=lambda part: (part.variance, -part.freedom))
    now = found.half_width(1 - level) / found.error
    return max(now, (now + t_quantile(1 - level / 2, most.freedom)) / 2), most.freedom


def _of(variances: Sequence[float], count: int) -> MeanEstimate:
    return MeanEstimate(center=0.0, parts=tuple(Part(one / count, count - 1) for one in variances))


def _least(enough: Callable[[int], bool]) -> int | None:
    """The least count from 2 to MOST that is enough; None where none is. More are never less enough."""
    if not enough(MOST):
        return None
    low, high = 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
