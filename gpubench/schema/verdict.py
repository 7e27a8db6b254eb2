"""What the figures of a group say of sharing the machine, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PERHAPS = "perhaps "
"""Before a verdict whose doubt nobody knows: too few epochs, a figure of a published log, somebody else's work on the
machine, or times alone that differ from process to process by more than their epochs tell."""

Sure = Literal["yes", "few processes", "open", "doubtful", "faster than alone", "spread not known"]
UNSURE: frozenset[Sure] = frozenset({"doubtful", "faster than alone", "spread not known"})
"""What makes a verdict one that chance may have made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What the figures of a group say of sharing. Everything that prints a verdict, or counts it, takes it from here.

    Made by `slowdown.group_verdict`; the row of each of its jobs holds it as `verdict`.
    """

    words: tuple[str, ...] = ()
    """The verdicts that the figures leave possible, from the least overlap to the most; empty: there is none. Where
    the spread is not known, the one of the gain alone."""
    sure: Sure = "spread not known"
    """`open`: over several processes, and not decided. `few processes`: the epochs tell how far they spread, and fewer
    than three processes how far those do. `doubtful`: rows have doubts about their times of which the spread
    does not tell how much they matter. `faster than alone`: so few, and a job was, which sharing can't do: its
    times differ by more than epochs tell."""
    gain_range: tuple[float, float] | None = None
    """The lowest and the highest overlap gain that the spread of the epoch times allows; None: not known."""
    rests: str = ""
    """That it rests on few processes, as `noise.resting` says it; empty where it does not, or where nobody knows."""
    begins: str = ""
    """How a sentence on it begins where rows are of one process, as `noise.beginning` says it."""
    why_not: str | None = None
    """Why these figures allow no verdict."""
    over_processes: bool = False
    """Whether each job, and its trial alone, is of several processes: `gain_range` is then a 95 % interval over these.
    """
    beside_others: bool = False
    """Whether somebody else's work was there while a row was measured."""

    @property
    def cell(self) -> str | None:
        """The verdict as every column and sentence has it; None where there is none."""
        if not self.words:
            return None
        if self.sure == "open":
            return "open"
        if self.sure in UNSURE:
            return f"{PERHAPS}{self.words[0]}"
        return self.words[0] if len(self.words) == 1 else f"between {self.words[0]} and {self.words[-1]}"
