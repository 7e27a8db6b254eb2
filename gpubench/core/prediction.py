"""What was not measured, worked out from what was: jobs together by how each ran alone, power limits by other ones.

Codes and figures, no English.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gpubench.core.claims import Certainty

NO_OVERLAP, FULL_OVERLAP = 0.1, 0.9
"""Overlap gains up to which jobs run as if one after the other, and from which on they lose nothing."""


def classify_overlap(gain: float) -> str:
    """none, some or full: the overlap that a gain tells of, whatever its scatter."""
    return "none" if gain <= NO_OVERLAP else "full" if gain >= FULL_OVERLAP else "some"


def compute_overlap_gain(slowdowns: Sequence[float | None]) -> float | None:
    """How much of the work of n jobs overlaps: 1 is no loss at all, 0 as if one after the other, below 0 even slower.

    None for fewer than two jobs, and where a slowdown is not known.
    """
    known = [slowdown for slowdown in slowdowns if slowdown]
    if len(known) < 2 or len(known) < len(slowdowns):
        return None
    return (sum(1 / slowdown for slowdown in known) - 1) / (len(known) - 1)


@dataclass(frozen=True, slots=True)
class PredictionNote:
    """What makes a prediction, or a row that it rests on, less than sure, or why there is none."""

    code: str
    """A key of `render.prediction.NOTES`."""
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedJob:
    """One job of a group."""

    name: str
    alone_s: float | None
    """Epoch time of its trial alone."""
    slowdown: float
    """Times as long as alone; never below 1."""
    measured: float | None = None
    """The slowdown where the group has run; over all its processes."""
    notes: tuple[PredictionNote, ...] = ()

    @property
    def error_pct(self) -> float | None:
        """Above 0: more slowdown is predicted than came. None where the group has not run."""
        return 100 * (self.slowdown / self.measured - 1) if self.measured else None


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedGroup:
    """What jobs that run together will do to each other."""

    name: str
    jobs: tuple[PredictedJob, ...]
    word: Certainty | None = None
    """likely; unknown where a time alone is of one process or has doubts; None for what was predicted before a group
    ran: of that the slowdowns alone are known."""
    waits_for: tuple[str, ...] = ()
    """`cpu`, `gpu`: what some job will wait for."""
    least_s: Mapping[str, float] = field(default_factory=dict)
    """Shared resource (`gpu 0`, `cpu`, `cpu 1`) -> the least s that it takes for one epoch of each job that uses it;
    left out where the need of a job is not known."""
    is_upper_bound: bool = False
    """Whether it may well be too much: ranks keep a GPU busy while they wait for each other's gradients, that wait
    costs their neighbours on the GPU little, and how long it is was not measured."""

    @property
    def overlap_gain(self) -> float:
        """1: no loss at all, 0: as if one after the other."""
        return (math.fsum(1 / job.slowdown for job in self.jobs) - 1) / (len(self.jobs) - 1)

    @property
    def overlap(self) -> str:
        """none, some or full."""
        return classify_overlap(self.overlap_gain)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPrediction:
    """A group that can't be predicted."""

    name: str
    why: tuple[PredictionNote, ...]


# ---- under power limits ----

Goal = Literal["energy", "edp"]
"""What shall be least: the energy of an epoch, or energy x time."""
GOALS: tuple[Goal, ...] = get_args(Goal)


def compute_goal(time_s: Any, power_w: Any, goal: Goal) -> Any:
    """Joules of an epoch, or these times its seconds; of numbers or of arrays."""
    energy = time_s * power_w
    return energy if goal == "energy" else energy * time_s


@dataclass(frozen=True, kw_only=True, slots=True)
class NextLimit:
    """A power limit that is worth a measurement, by what all models foretell there."""

    limit_w: float
    low: float
    high: float
    """The least and the most energy that a model foretells there, by the least that was measured, less 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitRow:
    """An epoch of one configuration under one power limit."""

    limit_w: float
    """Of each of its GPUs."""
    time_s: float
    power_w: float
    """Of all its GPUs together."""
    is_measured: bool

    def compute(self, goal: Goal) -> float:
        """Its energy in J, or its energy-delay product in J s."""
        return float(compute_goal(self.time_s, self.power_w, goal))


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitCurve:
    """One configuration over power limits."""

    fields: Mapping[str, Any]
    """What names it beside other configurations."""
    rows: tuple[LimitRow, ...]
    """The lowest limit first; the highest was measured."""
    next_limit: NextLimit | None
    """None where all models foretell more energy than was measured."""

    def find_best(self, goal: Goal) -> LimitRow:
        """The row with the least of it."""
        return min(self.rows, key=lambda row: row.compute(goal))


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitPrediction:
    """What one machine's configurations would do under other power limits."""

    machine: str
    model: str
    """A key of `stats.power_limits.MODELS`."""
    curves: tuple[LimitCurve, ...]
    energy_error: float | None
    """How far its energy was off (0.02: 2 %), in the median, each limit left out in turn; None where too few limits
    were measured to tell."""
    line_error: float | None
    """The same of a straight line."""
    regret: float | None
    """How much more energy than the best limit those would have cost that were taken so, in the mean."""
