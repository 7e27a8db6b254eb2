"""How good predictions have been: what was foretold of groups, against what was measured. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from gpubench.analysis.slowdown import overlap_gain, verdict
from gpubench.analysis.varied import Row, machine


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
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

    judged: tuple[Judged, ...]
    groups: int
    """Groups all of whose jobs were predicted and measured: only those have a verdict to compare."""
    verdicts_right: int
    """Of `groups`: those in which the predicted slowdowns gave the verdict that the measured ones gave."""

    @property
    def jobs(self) -> int:
        return len(self.judged)

    @property
    def median_error_pct(self) -> float | None:
        """Of errors without their signs; None without any."""
        errors = self._errors()
        return statistics.median(errors) if errors else None

    @property
    def worst_error_pct(self) -> float | None:
        """The same of the largest."""
        return max(self._errors(), default=None)

    def _errors(self) -> list[float]:
        return [abs(one.error_pct) for one in self.judged]


def track_record(rows: Iterable[Row]) -> TrackRecord:
    """How good the predictions in these rows were; those of jobs that did not end ok don't count."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        if row.get("group"):
            unit = row.get("group_id") or (row.get("experiment"), row["group"], row.get("repeat"))
            groups.setdefault((unit, machine(row)), []).append(row)
    judged: list[Judged] = []
    verdicts: list[bool] = []
    for members in groups.values():
        found = [_judged(row) for row in members if _both(row)]
        judged += found
        predicted = overlap_gain([one.predicted for one in found])
        measured = overlap_gain([one.measured for one in found])
        if len(found) == len(members) and predicted is not None and measured is not None:
            verdicts.append(verdict(predicted) == verdict(measured))
    return TrackRecord(judged=tuple(judged), groups=len(verdicts), verdicts_right=sum(verdicts))


def _both(row: Row) -> bool:
    return row["status"] == "ok" and bool(row.get("predicted_slowdown")) and bool(row.get("slowdown"))


def _judged(row: Row) -> Judged:
    return Judged(
        group=row["group"],
        job=row.get("job") or "",
        solo_epoch_time_s=row.get("solo_epoch_time_s"),
        predicted=row["predicted_slowdown"],
        measured=row["slowdown"],
    )
