"""Top-1 of several seeds: equal inside a margin, different, or open; and when a top-1 was reached. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate, mean, part_of

SEEDS = 3
"""Of fewer on a side nothing is said."""


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
    """p-value of "both means are the same" (Welch)."""
    equal: float
    """p-value of "they lie a margin or more apart" (two one-sided tests)."""
    margin: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """When a top-1 was reached."""

    time_s: float
    confirmed: bool
    """Whether the next evaluation lies there, too; False: there is none."""


def compare_top1(
    one: Sequence[float],
    other: Sequence[float],
    margin: float,
    resolution: float = 0.0,
    level: float = LEVEL,
) -> AccuracyDecision | None:
    """What may be said of the top-1 of seeds, in per cent, of two configurations. None under SEEDS on a side.

    `margin`: percentage points. `resolution`: a standard deviation, in points, below which they can't resolve one: of
    m held-out images a top-1 is a multiple of 100 / m, which has 100 / m / √12.
    """
    if not margin > 0:
        raise ValueError("a margin inside which top-1 counts as equal is above 0")
    if min(len(one), len(other)) < SEEDS:
        return None
    found = MeanEstimate(
        center=mean(one) - mean(other),
        parts=(part_of(one, least_sd=resolution), part_of(other, least_sd=resolution)),
    )
    half = found.half_width(1 - level)
    differs, equal = found.chance_equal(0.0), found.chance_outside(-margin, margin)
    word: Literal["higher", "lower", "equal", "open"] = "open"
    if equal <= level:
        word = "equal"
    elif differs <= level:
        word = "higher" if found.center > 0 else "lower"
    return AccuracyDecision(
        word=word,
        difference=found.center,
        low=found.center - half,
        high=found.center + half,
        differs=differs,
        equal=equal,
        margin=margin,
    )


def crossing(points: Sequence[tuple[float, float]], target: float) -> Crossing | None:
    """When top-1 reached `target`, from evaluations (time in s, top-1 in per cent) in the order of time.

    A straight line from the last evaluation below it to the first one there, if the next one is there, too: one lucky
    evaluation is no accuracy. Where it is the last one nothing confirms it. If the first evaluation is there already,
    its own time, for nobody looked before. None where it was not reached.
    """
    for place, (time, top1) in enumerate(points):
        after = points[place + 1] if place + 1 < len(points) else None
        if top1 < target or (after is not None and after[1] < target):
            continue
        earlier, below = points[place - 1] if place else (time, target)
        if below < target:
            time = earlier + (time - earlier) * (target - below) / (top1 - below)
        return Crossing(time_s=time, confirmed=after is not None)
    return None
