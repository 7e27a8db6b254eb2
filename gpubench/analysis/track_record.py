"""How good predictions have been: what was predicted of groups, against what was measured. Pure.

A predicted verdict is right where the measured one is the same single word, and wrong where that is ruled out by what
was measured. Where the measured one lies between two words and the predicted one may be true, it is neither; nor is
one of a group whose epochs are too few to tell how sure it is, or beside which somebody else worked, or whose figures
allow no verdict.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.slowdown import overlap_gain, sharing_word
from gpubench.analysis.varied import where
from gpubench.schema.row import Row
from gpubench.schema.verdict import UNSURE, Verdict

Outcome = Literal["right", "wrong", "undecided", "too few", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictedJob:
    """One job's slowdown as predicted and as measured."""

    group: str
    job: str
    solo_epoch_time_s: float | None
    predicted: float
    measured: float

    @property
    def error_pct(self) -> float:
        """Above 0: more slowdown was predicted than came."""
        return 100 * (self.predicted / self.measured - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackRecord:
    """How good predictions have been."""

    predicted_jobs: tuple[PredictedJob, ...]
    groups: int
    """Groups whose predicted verdict was right or wrong; all of their jobs were predicted and measured."""
    verdicts_right: int
    """How many of `groups` had a predicted verdict that was right."""
    undecided: int = 0
    """Groups, not counted in `groups`, whose measured verdict lies between two; the predicted one may be true."""
    too_few: int = 0
    """Groups, not counted in `groups`, of which nobody knows how far their times spread: how sure the verdict is."""
    without_verdict: int = 0
    """Groups, not counted in `groups`, whose figures allow no verdict."""

    @property
    def jobs(self) -> int:
        return len(self.predicted_jobs)

    @property
    def median_error_pct(self) -> float | None:
        """The median of the errors without their signs; None where there is no error."""
        errors = [abs(one.error_pct) for one in self.predicted_jobs]
        return statistics.median(errors) if errors else None


def track_record(rows: Iterable[Row]) -> TrackRecord:
    """How good the predictions in these rows were; those of jobs that did not end ok don't count."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        if row.group:
            unit = row.group_id or (row.experiment, row.group, row.repeat)
            groups.setdefault((unit, where(row)), []).append(row)
    predicted_jobs: list[PredictedJob] = []
    verdicts: Counter[Outcome] = Counter()
    for members in groups.values():
        found = [one for row in members if (one := _predicted_job(row))]
        predicted_jobs += found
        predicted = overlap_gain([one.predicted for one in found])
        if len(found) == len(members) and predicted is not None:
            verdicts[_outcome(sharing_word(predicted), members[0])] += 1
    return TrackRecord(
        predicted_jobs=tuple(predicted_jobs),
        groups=verdicts["right"] + verdicts["wrong"],
        verdicts_right=verdicts["right"],
        undecided=verdicts["undecided"],
        too_few=verdicts["too few"],
        without_verdict=verdicts["none"],
    )


def _outcome(predicted: str, job: Row) -> Outcome:
    """How a predicted verdict fared in the group of this job."""
    found: Verdict | None = job.verdict
    if found is None or not found.words:
        return "none"
    if found.sure == "spread not known":
        return "too few"
    if found.sure in UNSURE:
        return "undecided"
    if predicted not in found.words:
        return "wrong"
    return "right" if len(found.words) == 1 else "undecided"


def _predicted_job(row: Row) -> PredictedJob | None:
    """None of a job that was not both predicted and measured."""
    predicted, measured = row.predicted_slowdown, row.slowdown
    if row.status != "ok" or not predicted or not measured:
        return None
    return PredictedJob(
        group=row.group or "",
        job=row.job or "",
        solo_epoch_time_s=row.solo_epoch_time_s,
        predicted=predicted,
        measured=measured,
    )
