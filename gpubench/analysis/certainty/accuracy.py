"""Top-1 of several seeds: equal inside a margin, different, or open; and when a top-1 was reached. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.certainty.decision import adjusted
from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate, mean, part_of

SEEDS = 3
"""Of fewer on a side nothing is said."""
MARGIN = 1.0
"""Percentage points inside which top-1 counts as equal. For less than one nobody takes the slower of two trainings;
and it is about the least that five seeds show that lie half a point (a standard deviation) apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AccuracyDecision:
    """Mean top-1 of one sample of seeds less that of another, in percentage points."""

    word: Literal["higher", "lower", "equal", "open"]
    """`equal`: inside the margin, even if they do differ."""
    difference: float
    low: float
    high: float
    """Ends of the 95 % interval."""
    differs: float
    """p-value of "both means are the same" (Welch), corrected for all claims of its family."""
    equal: float
    """p-value of "they lie a margin or more apart" (two one-sided tests), corrected likewise."""
    margin: float
    loses: float
    """p-value of "the first lies a margin or more below the other": one of those two, not corrected."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedPair:
    """The top-1 of seeds, in per cent, of two configurations."""

    one: Sequence[float]
    other: Sequence[float]
    resolution: float = 0.0
    """A standard deviation, in points, below which they can't resolve one."""

    @property
    def testable(self) -> bool:
        return min(len(self.one), len(self.other)) >= SEEDS

    @property
    def estimate(self) -> MeanEstimate:
        """Of how much higher the first is. Raises ValueError where a side has fewer than two seeds."""
        parts = tuple(part_of(side, least_sd=self.resolution) for side in (self.one, self.other))
        return MeanEstimate(center=mean(self.one) - mean(self.other), parts=parts)


def resolution_of(images: int) -> float:
    """The least standard deviation that so many held-out images can resolve: a top-1 is a multiple of 100 / images."""
    return 100 / images / math.sqrt(12)


def compare_top1(
    one: Sequence[float],
    other: Sequence[float],
    margin: float = MARGIN,
    resolution: float = 0.0,
    level: float = LEVEL,
) -> AccuracyDecision | None:
    """What may be said of two configurations, where nothing else is claimed. None under SEEDS on a side."""
    pair = SeedPair(one=one, other=other, resolution=resolution)
    return decide_top1([pair], margin, level)[0]


def decide_top1(
    pairs: Sequence[SeedPair], margin: float = MARGIN, level: float = LEVEL
) -> list[AccuracyDecision | None]:
    """What may be said of each pair of one family (`decision.py`), at `level` for all of them.

    None for a pair with fewer than SEEDS seeds on a side, which is then no claim to correct for. `margin`: percentage
    points; raises ValueError for one that is not above 0.
    """
    if not margin > 0:
        raise ValueError("a margin inside which top-1 counts as equal is above 0")
    found = [pair.estimate for pair in pairs if pair.testable]
    differs = adjusted([one.chance_equal(0.0) for one in found])
    equal = adjusted([one.chance_outside(-margin, margin) for one in found])
    decided = iter(
        [
            _decision(one, unlike, alike, margin, level)
            for one, unlike, alike in zip(found, differs, equal, strict=True)
        ]
    )
    return [next(decided) if pair.testable else None for pair in pairs]


def _decision(
    found: MeanEstimate, differs: float, equal: float, margin: float, level: float
) -> AccuracyDecision:
    word: Literal["higher", "lower", "equal", "open"] = "open"
    if equal <= level:
        word = "equal"
    elif differs <= level:
        word = "higher" if found.center > 0 else "lower"
    half = found.half_width(1 - level)
    return AccuracyDecision(
        word=word,
        difference=found.center,
        low=found.center - half,
        high=found.center + half,
        differs=differs,
        equal=equal,
        margin=margin,
        loses=found.chance_at_most(-margin),
    )
