"""Which units still end within the time limit of a batch job, and which would end in none. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from gpubench.basics.words import format_count
from gpubench.plan.estimate import TimeEstimate, format_seconds

MOST_SPARE_S, SPARE_SHARE = 180.0, 0.1
"""What a batch job keeps for the end of a sweep: a tenth of its time, three minutes at most. The warning before its
time limit comes later, and the tables are written then."""
BROKEN_OFF = 1.5
"""A trial that was stopped after some time takes longer than that: by half, as long as nothing else is known."""

Verdict = Literal["begin", "late", "never"]
"""`late`: it has time in another job; `never`: in none of this length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WallTime:
    """How long a batch job may still run, on the clock of the process that asks."""

    job: str
    """What it is called: `SLURM job 12`."""
    ends_s: float
    """When nothing of a trial may run any more."""
    whole_s: float
    """Seconds that a trial has in such a job which has just begun."""

    def decide_start(self, need: TimeEstimate, now_s: float, *, is_first: bool) -> Verdict:
        """Whether a unit is begun. `is_first`: none has run in this job.

        A first one is begun if only a guess speaks against it: its guess would be the same in the next job. Where a
        try that was stopped speaks against it, too, no job of this length ends it: each would be requeued for the next.
        """
        if need.least_s > max(0.0, self.whole_s):
            return "never"
        if need.seconds <= self.ends_s - now_s or (is_first and not need.known):
            return "begin"
        return "never" if need.known and need.seconds > self.whole_s else "late"


def compute_spare_s(limit_s: float) -> float:
    """Seconds that a job with such a time limit keeps for its end."""
    return min(MOST_SPARE_S, SPARE_SHARE * limit_s)


def estimate_stopped_unit(guess: TimeEstimate, broken_off_s: float) -> TimeEstimate:
    """The estimate of a unit that was stopped before it ended. `broken_off_s`: its longest try; 0: there is none."""
    least_s = BROKEN_OFF * broken_off_s
    return TimeEstimate(max(guess.seconds, least_s), guess.known or least_s > guess.seconds, least_s)


@dataclass(kw_only=True, slots=True)
class UnstartedUnits:
    """Units that were not begun, for they would not have ended in time."""

    job: str = ""
    left_s: float = 0.0
    """When the last of them was looked at."""
    whole_s: float = 0.0
    """What a trial has of such a job that has just begun."""
    waiting: dict[str, float] = field(default_factory=dict)
    """Id of each that has time in another job -> seconds that it takes."""
    never: dict[str, float] = field(default_factory=dict)
    """The same of each that is longer than such a job may be."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.waiting or self.never)

    def note_verdict(
        self, unit_id: str, verdict: Verdict, need: TimeEstimate, wall_time: WallTime, now_s: float
    ) -> None:
        """What was decided of a unit."""
        self.job, self.left_s, self.whole_s = wall_time.job, wall_time.ends_s - now_s, wall_time.whole_s
        if verdict == "late":
            self.waiting[unit_id] = need.seconds
        elif verdict == "never":
            self.never[unit_id] = need.seconds

    def forget_other_units(self, unit_ids: Collection[str]) -> None:
        """Forgets all units but these."""
        self.waiting = {unit_id: seconds for unit_id, seconds in self.waiting.items() if unit_id in unit_ids}
        self.never = {unit_id: seconds for unit_id, seconds in self.never.items() if unit_id in unit_ids}

    def explain_stop(self) -> str:
        """Why the sweep stops here."""
        return (
            f"no time for what is left: {format_count(len(self.waiting), 'unit')}, of which the shortest takes about "
            f"{format_seconds(min(self.waiting.values()))}, and {self.job} has "
            f"{format_seconds(max(0.0, self.left_s))} for it"
        )

    def explain_short_limit(self) -> str:
        """What is wrong with the job, and what to do."""
        return (
            f"the time limit of {self.job} is too short for {format_count(len(self.never), 'trial')}, of which the "
            f"longest takes about {format_seconds(max(self.never.values()))}: it leaves "
            f"{format_seconds(max(0.0, self.whole_s))}"
        )
