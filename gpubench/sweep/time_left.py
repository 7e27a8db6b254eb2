"""Whether a unit may still begin: by the batch job that the sweep runs in, and by `--budget`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpubench.plan.estimate import Estimate
from gpubench.plan.plan import Unit
from gpubench.plan.wall_time import Verdict, at_least
from gpubench.sweep.summary import Summary
from gpubench.sweep.sweep import Sweep


@dataclass(kw_only=True, slots=True)
class TimeLeft:
    """The time that a sweep has, from when it began to run."""

    work: Sweep
    began: float = field(default_factory=time.monotonic)
    _broken_off: dict[str, float] | None = None

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def verdict(self, unit: Unit, forecast_s: float, summary: Summary) -> Verdict:
        """Whether a unit still ends within the batch job; notes it where it does not."""
        wall = self.work.wall_time
        if wall is None:
            return "begin"
        now = time.monotonic()
        # Whether it is more than a guess is looked up only where it matters: that goes through all rows.
        known = forecast_s <= wall.ends_s - now or self.work.estimates([unit])[0].known
        broken_off_s = max(self._broken_off_s().get(job.trial_id, 0.0) for job in unit.jobs)
        if broken_off_s and any(trial_id == unit.jobs[0].trial_id for trial_id, _ in self.work.measured):
            broken_off_s = 0.0  # it has ended in this sweep
        need = at_least(Estimate(forecast_s, known), broken_off_s)
        verdict = wall.verdict(need, now, is_first=not summary.ran)
        summary.late.note(unit.unit_id, verdict, need, wall, now)
        return verdict

    def is_over_budget(self, spent_s: float) -> bool:
        """Whether so many seconds are more than all of `--budget`."""
        budget_s = self.work.plan.experiment.rounds.budget_s
        return budget_s is not None and spent_s > budget_s

    def _broken_off_s(self) -> Mapping[str, float]:
        """Trial id -> how long its longest attempt had taken when it was stopped. Worked out once: a stop ends all."""
        if self._broken_off is None:
            self._broken_off = {}
            here = {self.work.bench.machine_key(job) for job in self.work.plan.jobs}
            # Of one that has ended since it is known how long it takes.
            records = [record for record in self.work.records if record.machine_key in here]
            ended = {record.trial_id for record in records if record.status == "ok"}
            for record in records:
                if record.status == "interrupted" and record.trial_id not in ended:
                    known_s = self._broken_off.get(record.trial_id, 0.0)
                    self._broken_off[record.trial_id] = max(known_s, record.phases.get("wall", 0.0))
        return self._broken_off
