"""From how many devices on efficiency lies under a bound: shown over processes, or by the figures. Pure.

Each row on several devices makes one claim: its efficiency lies on the side of the bound on which it was seen. It is
asked only where rows are on three numbers of devices or more, the baseline's among them: of two numbers the efficiency
itself says all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.alike import devices, way
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.noise import beginning, begun
from gpubench.analysis.scaling import Comparison, named
from gpubench.basics.words import listed

BOUND_PCT = 80.0
"""Per cent of efficiency under which more devices are said to be used badly, where nobody names another bound."""
FEWEST_COUNTS = 3
"""Numbers of devices, the baseline's among them, from which the question is asked."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Scaled:
    """Rows on ever more devices against one baseline: one workload, one kind of scaling, one strategy."""

    steps: Sequence[Comparison]
    """By ascending devices, without the baseline."""
    bound_pct: float = BOUND_PCT

    @property
    def ratios(self) -> list[Interval]:
        """Their efficiencies as parts of 1; empty where one of them is of one process."""
        found = [one.efficiency for one in self.steps]
        return [one.times(0.01) for one in found if one is not None] if None not in found else []

    @property
    def chances(self) -> list[float]:
        """For each step the p-value of "its efficiency is not on the side of the bound on which it was seen".

        Two-sided, for the side was chosen by the figures.
        """
        bound = self.bound_pct / 100
        return [
            min(1.0, 2 * min(one.chance_at_most(bound), one.chance_at_least(bound))) for one in self.ratios
        ]


def scaled(compared: Sequence[Comparison], bound_pct: float = BOUND_PCT) -> list[Scaled]:
    """What is asked for its efficiency: rows of one baseline, kind and strategy, on enough numbers of devices."""
    found: dict[tuple[object, ...], list[Comparison]] = {}
    for one in compared:
        if one.row is not one.baseline:
            found.setdefault((one.kind, id(one.baseline), way(one.row)), []).append(one)
    made = []
    for same in found.values():
        counts = {devices(one.row) for one in same}
        if len(counts) == len(same) >= FEWEST_COUNTS - 1:
            steps = sorted(same, key=lambda one: devices(one.row))
            made.append(Scaled(steps=steps, bound_pct=bound_pct))
    return made


def sentence(of: Scaled, shown: Sequence[bool]) -> str:
    """Where efficiency lies under the bound, in one sentence.

    `shown`: whether each of its claims holds; where it makes none, what is said is by the figures.
    """
    bound, device = f"{of.bound_pct:g} %", "rank" if of.steps[0].baseline.device == "cpu" else "GPU"
    sure = [*shown] or [True] * len(of.steps)
    words = [_word(one, of.bound_pct, holds) for one, holds in zip(of.steps, sure, strict=True)]
    counts = [devices(one.row) for one in of.steps]
    first = words.index("under") if "under" in words else len(words)
    if set(words) == {"open"}:
        said = (
            f"is neither shown to lie above {bound} nor under it, on {listed([*map(str, counts)])} {device}s"
        )
    elif set(words) == {"above"}:
        said = f"stays above {bound} up to {counts[-1]} {device}s"
    elif set(words[:first]) <= {"above"} and set(words[first:]) == {"under"}:
        said = f"falls under {bound} from {counts[first]} {device}s on"
    else:
        parts = [
            f"{begin} {listed([str(count) for count, one in zip(counts, words, strict=True) if one == word])}"
            for word, begin in (("above", f"above {bound} on"), ("under", "under it on"), ("open", "open on"))
            if word in words
        ]
        said = f"is {listed(parts)} {device}s".replace("is under it", f"is under {bound}")
    baseline = of.steps[0].baseline
    start = f"Efficiency of {of.steps[0].row.strategy} ({of.steps[0].kind} scaling against {named(baseline, device)})"
    if shown:
        return f"{start} {said}."
    few = beginning(row for one in of.steps for row in (one.row, one.baseline))
    return f"{begun(few, start)} {said}{'' if few else ' by these figures'}."


def _word(one: Comparison, bound_pct: float, holds: bool) -> str:
    if not holds:
        return "open"
    # By the figure whose side was tested: of some rounds it may be another than the column shows.
    seen = one.efficiency_pct if one.efficiency is None else one.efficiency.value
    return "under" if seen < bound_pct else "above"
