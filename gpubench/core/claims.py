"""What is claimed of two rows of a table, and how sure it is.

Three steps, each without the next: `analyze` makes claims out of frames, `stats.decisions.decide_claims` gives each its
verdict, `analyze` again puts decided claims together to findings (`core.findings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Certainty = Literal["sure", "likely", "unknown"]
"""sure: decided inside its question. likely: alone at 5 %, or one process and an effect beyond all that processes of
such rows were seen to differ by. unknown: neither."""

Design = Literal["ordered", "paired", "above", "below", "equal"]
"""How a claim is tested.

- ordered: a step along an ordered axis: the steps of one series are tested in a fixed order from both ends.
- paired: one of several unordered claims of its question: two-sided, Holm inside the question.
- above, below: that a figure lies above or below a limit: one-sided, of words that exclude each other: no correction.
- equal: that a figure lies within a margin on both sides: two one-sided tests.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class StudentEstimate:
    """A mean, or a sum of means, with its standard error and the degrees of freedom of that."""

    center: float
    error: float
    degrees: float
    floors: tuple[tuple[float, float], ...] = ()
    """Standard error and degrees of freedom of each sample by itself, where there are several: no interval is narrower,
    and no p-value smaller, than any one sample would leave it if the others had no variance at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What processes tell of an effect. The unit is the logarithm of a ratio, or the difference of percentages."""

    center: float
    """The estimate that is printed."""
    processes: tuple[int, ...]
    """How many processes each side has."""
    pairs: StudentEstimate | None = None
    """By rounds that both sides have in common; None under two of them."""
    welch: StudentEstimate | None = None
    """By both sides' own scatter; None where a side has one process."""
    noise: float | None = None
    """Where no test is possible: the largest effect that two processes of such rows were seen to differ by, in the same
    unit. None: not known, so nothing is likely."""
    is_log: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How sure a claim is."""

    word: Certainty
    direction: Literal["more", "less", "same"]
    """Of the candidate against the baseline (or of the figure against the limit); what is claimed where it is sure or
    likely, what was measured where it is unknown."""
    p: float | None
    """The claim's own p-value, before any correction; None for one process."""
    low: float | None
    high: float | None
    """The 95 % interval that the test leaves, in the unit of the figure (a ratio, a difference). For `above` only
    `low` is known, for `below` only `high`. None for one process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """That a row differs from another one in a metric."""

    metric: str
    """A column, or `memory_time`: GPU memory times the time of an image."""
    candidate: int
    baseline: int
    """Labels of rows of the summary."""
    evidence: Evidence
    design: Design
    family: str = ""
    """Claims of one family share its 5 %: a question has one."""
    series: str = ""
    """For ordered claims: whose steps these are; in their order in the list of claims."""
    limit: float = 0.0
    """For `above`, `below`: what the figure is held against; for `equal`: the margin. In the evidence's unit."""
    verdict: Verdict | None = None
    """None until it is decided."""

    @property
    def decided(self) -> Verdict:
        """The verdict of a claim that was decided. Raises ValueError before."""
        if self.verdict is None:
            raise ValueError("a claim is decided before it is read")
        return self.verdict

    def shows(self, direction: str) -> bool:
        """Whether it is sure or likely, in this direction."""
        return self.decided.word != "unknown" and self.decided.direction == direction
