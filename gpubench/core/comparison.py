"""Two sides, compared trial by trial: two results folders, or two values of a field in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gpubench.core.claims import Claim, Verdict
from gpubench.core.findings import Remedy

FigureName = Literal["time", "memory", "cpu", "energy", "top1"]
"""Time, CPU time and energy are of an image (of an epoch where neither side knows its images), in s, s and J; memory in
MiB, top-1 in per cent."""
FIGURES: tuple[FigureName, ...] = ("time", "memory", "cpu", "energy", "top1")
COSTS: frozenset[FigureName] = frozenset({"time", "memory", "energy"})
"""Figures of which more is a regression."""
BROKEN = ("oom", "failed", "timeout")
"""Endings in B that are a regression of a trial that ended ok in A."""
SAME_WITHIN = 0.02
"""The share inside which figures count as the same; top-1 has a margin in points."""
MEMORY_SPREAD = 0.003
"""By how much, at most, memory of processes of one configuration was seen to differ, on one GPU by `nvml-process`."""
DIFFERENCE, REGRESSION = "compare", "compare:regression"
"""Families of claims: what changed in time, energy and top-1, and what changed by more than the threshold. CPU time is
a question of its own (`compare:cpu`), as it is of variants, and so is memory, which is exact."""

Obstacle = Literal["same-processes", "unlike-kinds", "no-match", "none-ok", "guess", "unchecked"]
"""Why nothing can be compared; the last two: why nothing was held against the threshold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSide:
    """One of the two."""

    name: str
    """The folder, as its reader calls it."""
    value: Any = None
    """Of the field whose values are the sides."""
    trials: int
    machines: tuple[str, ...]
    """`4 × NVIDIA H200, 64 CPUs`."""
    kinds: tuple[str, ...]
    """Kinds of its times (epoch_times.Kind)."""
    epochs: int | None
    """The most that a trial asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedRow:
    """A configuration of one side."""

    trial_id: str
    status: str
    endings: str
    """`ok`, or `2 ok, 1 failed`."""
    fields: Mapping[str, Any]
    """All that are known of its trial; `group` and `job` of a job of a group."""
    is_warned: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureChange:
    """A figure of one trial, B against A."""

    figure: FigureName
    a: float
    b: float
    is_per_epoch: bool = False
    reason: Literal["unlike-images", "unlike-sources"] | None = None
    """Why nothing is claimed of it."""
    claims: tuple[Claim, ...] = ()
    """Decided, in this order: that it differs, and is equal inside the margin; with a threshold that it lies beyond it,
    and below it."""

    @property
    def claim(self) -> Claim | None:
        """What its word rests on: that it is equal or that it differs, the surer of both. None where `reason` tells."""
        if not self.claims:
            return None
        difference, equal = self.claims[:2]
        words = ("sure", "likely", "unknown")
        places = [words.index(claim.decided.word) for claim in (difference, equal)]
        return equal if places[1] <= places[0] and places[1] < 2 else difference

    @property
    def verdict(self) -> Verdict | None:
        """Of that claim."""
        return None if self.claim is None else self.claim.decided

    @property
    def direction(self) -> Literal["less", "more", "same", "unknown"]:
        """What B takes, as far as it is sure or likely."""
        verdict = self.verdict
        return "unknown" if verdict is None or verdict.word == "unknown" else verdict.direction

    @property
    def is_regression(self) -> bool:
        """Whether it is sure that B takes more than the threshold more."""
        return any(
            claim.decided.word == "sure" and claim.decided.direction == "more" for claim in self.claims[2:3]
        )

    @property
    def is_regression_excluded(self) -> bool:
        """Whether it is sure that B does not."""
        return any(claim.decided.word == "sure" for claim in self.claims[3:])


RowPair: TypeAlias = tuple[int, int]
"""A trial by its rows in A and in B: labels of `Comparison.rows`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Two sides, compared: each row is in one trial, or in one of the lists that say why it is in none."""

    a: ComparedSide
    b: ComparedSide
    field: str | None
    """Whose values are the sides; None for two folders."""
    figures: tuple[FigureName, ...]
    """Those that were to be compared."""
    threshold: float | None
    """0.05: more than 5 % more is a regression."""
    rows: Mapping[int, ComparedRow]
    trials: Mapping[RowPair, Mapping[FigureName, FigureChange]]
    """Those that ended ok on both sides, with the figures that both have."""
    not_ok: tuple[RowPair, ...]
    """Rows of one trial that did not both end ok."""
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    several: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """Rows of one trial, of which a side has more than one."""
    apart: tuple[str, ...]
    """Where no trial of A is one of B in all its fields: those in which no row of A has a value of one of B. Trials are
    then matched by the others, which is a guess."""
    unlike: Mapping[str, tuple[tuple[Any, ...], tuple[Any, ...]]]
    """Column -> its values in A and in B, where these are not the same: hardware, software, and fields that were
    matched all the same."""
    varied: tuple[str, ...]
    """The fields that tell the matched trials apart."""
    varied_alone: tuple[str, ...]
    """Those that tell all rows apart."""
    shared: int
    """Trials that rest on some of the same processes on both sides."""
    is_same: bool
    """Whether one side is a copy of the other: all trials are on both, ended alike, and rest on the same processes."""
    remedy: Remedy | None
    """What would settle times that are unknown, on both sides."""

    @property
    def is_matched_by_guess(self) -> bool:
        """Whether trials are matched though they differ."""
        return bool(self.apart and (self.trials or self.not_ok or self.several))

    @property
    def changes(self) -> list[tuple[RowPair, FigureChange]]:
        """All figures of all trials."""
        return [(pair, change) for pair, changes in self.trials.items() for change in changes.values()]

    @property
    def regressions(self) -> list[tuple[RowPair, FigureChange]]:
        """Those that are sure to be beyond the threshold."""
        return [(pair, change) for pair, change in self.changes if change.is_regression]

    @property
    def broken_trials(self) -> list[RowPair]:
        """Trials that ended ok in A and badly in B; none where that both are one trial is a guess."""
        pairs = [] if self.is_matched_by_guess else self.not_ok
        return [(a, b) for a, b in pairs if self.rows[a].status == "ok" and self.rows[b].status in BROKEN]

    @property
    def obstacle(self) -> Obstacle | None:
        """Why nothing can be compared or, with a threshold, checked."""
        if self.a.kinds and self.b.kinds and not set(self.a.kinds) & set(self.b.kinds):
            return "unlike-kinds"
        if self.is_same:
            return "same-processes"
        if not (self.trials or self.not_ok or self.several):
            return "no-match"
        is_checking = self.threshold is not None
        if is_checking and self.is_matched_by_guess:
            return "guess"
        if is_checking and self.broken_trials:
            return None
        if not self.changes:
            return "none-ok"
        is_any_cost = any(change.figure in COSTS for _, change in self.changes)
        return "unchecked" if is_checking and not is_any_cost else None

    @property
    def is_incomparable(self) -> bool:
        """Whether not even the figures as they stand say anything."""
        return self.obstacle in ("unlike-kinds", "same-processes", "no-match")

    @property
    def is_regression_excluded(self) -> bool:
        """Whether a regression beyond the threshold is excluded everywhere: of all that ended ok in A."""
        uncompared = [
            *self.only_a, *(a for a, _ in self.not_ok), *(row for rows, _ in self.several for row in rows)
        ]  # fmt: skip
        return not any(self.rows[row].status == "ok" for row in uncompared) and all(
            change.is_regression_excluded for _, change in self.changes if change.figure in COSTS
        )

    def compute_exit_code(self, *, is_strict: bool = False) -> int:
        """4 where nothing could be compared, 3 for a regression (strict: also where one is not excluded), else 0."""
        if self.obstacle:
            return 4
        is_missed = is_strict and self.threshold is not None and not self.is_regression_excluded
        return (
            3 if self.regressions or (self.threshold is not None and self.broken_trials) or is_missed else 0
        )
