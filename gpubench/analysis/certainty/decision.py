"""Which of two is slower, or that both are the same, or that it is open: one comparison, or all of a table.

**The family** is all comparisons about which one table says a sentence, chosen before their figures are seen: each
batch size against the next, each row against its baseline; not every pair of rows. Differences and equalities are two
families of as many claims. Each is corrected by Holm (1979), so that at most one table in twenty claims a difference
where there is none, and at most one in twenty calls something the same that lies outside the margin. Intervals beside
single figures are not corrected: each holds its truth in 95 of 100 cases by itself. Other tables are other families.

**Looks.** A sweep that stops measuring rows as soon as their claim is decided looks at it again and again, and each
look is another chance to be misled. So `decide` can be asked what counts as decided at a claim's j-th look: then each
p-value is multiplied by STRICTER × j (j + 1) besides the correction for the table. As 1 / (j (j + 1)) summed over all j
is 1, all looks together err in at most LEVEL / STRICTER of tables, which comes on top of what the last decision errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.certainty.interval import Interval, ratio
from gpubench.analysis.certainty.mean_estimate import LEVEL

Word = Literal["slower", "faster", "same", "open"]

STRICTER = 20
"""All looks at which rows may stop being measured spend a twentieth of the level together. So tables of ten equal rows
have a false difference in at most 5 % (docs/certainty.md); if the looks spent all of it, in up to 7 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What may be said of one ratio of times among all of its table."""

    word: Word
    """`slower`: it takes longer than what it is compared with. `same`: inside the margin, even if it does differ."""
    ratio: Interval
    margin: float
    """0.02: the same is what lies between 1 / 1.02 and 1.02."""
    differs: float
    """p-value of "both are equal", corrected for the table."""
    same: float
    """p-value of "the ratio lies outside the margin", corrected for the table."""
    family: int
    """How many comparisons were corrected for."""


def compare(
    over: Sequence[float], under: Sequence[float], margin: float, level: float = LEVEL
) -> Decision | None:
    """A comparison that is the only one of its table; None where a side has one process."""
    found = ratio(over, under, 1 - level)
    return None if found is None else decide([found], margin, level)[0]


def decide(
    ratios: Sequence[Interval],
    margin: float,
    level: float = LEVEL,
    beside: Sequence[float] = (),
    looks: Sequence[int] | None = None,
) -> list[Decision]:
    """What may be said of each ratio of times of one table, at `level` for the whole table.

    `beside`: p-values of the table's other claims, which are in the same family. `looks`: of each ratio, where they
    decide whether it is measured on: how often it has been looked at (`at_look`). Raises ValueError for a margin that
    is not above 0: nothing could ever be shown to lie inside.
    """
    if not margin > 0:
        raise ValueError("a margin inside which times count as the same is above 0")
    wide = math.log1p(margin)
    equal = [one.log.chance_equal(0.0) for one in ratios]
    outside = [one.log.chance_outside(-wide, wide) for one in ratios]
    if looks is not None:
        equal = [at_look(chance, look) for chance, look in zip(equal, looks, strict=True)]
        outside = [at_look(chance, look) for chance, look in zip(outside, looks, strict=True)]
    differs = adjusted([*equal, *beside])[: len(ratios)]
    same = adjusted(outside)
    return [
        Decision(
            word=_word(one, unlike, alike, level),
            ratio=one,
            margin=margin,
            differs=unlike,
            same=alike,
            family=len(ratios) + len(beside),
        )
        for one, unlike, alike in zip(ratios, differs, same, strict=True)
    ]


def at_look(chance: float, look: int) -> float:
    """A p-value as it counts at the `look`-th look, the first being 1, for whether measuring goes on; 1 before it."""
    return min(1.0, chance * STRICTER * look * (look + 1)) if look > 0 else 1.0


def adjusted(chances: Sequence[float]) -> list[float]:
    """p-values corrected by Holm: those at a level or below it may be rejected together, with that level for them all.

    For any claims of one table: that a ratio differs from 1, that a gain is 0.9 or more.
    """
    found = [0.0] * len(chances)
    worst = 0.0
    for rank, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        worst = max(worst, min(1.0, chances[index] * (len(chances) - rank)))
        found[index] = worst
    return found


def _word(ratio: Interval, differs: float, same: float, level: float) -> Word:
    if same <= level:
        return "same"
    if differs <= level:
        return "slower" if ratio.log.center > 0 else "faster"
    return "open"
