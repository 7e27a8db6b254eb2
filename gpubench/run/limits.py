"""What a sweep has done, and what may end it before its plan is done or keep a unit of it from beginning.

Each limit is asked before a unit begins, remembers what it has kept from the sweep, and says so in the end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import format_count
from gpubench.node.allocation import find_job_time_limit, find_slurm_allocation, query_squeue_times
from gpubench.node.node import Node
from gpubench.plan.estimate import TimeEstimate, format_exact_seconds
from gpubench.plan.plan import Unit
from gpubench.plan.rounds import MOST, RoundLimits
from gpubench.plan.wall_time import UnstartedUnits, Verdict, WallTime, compute_spare_s, estimate_stopped_unit
from gpubench.run.sweep_state import SweepState
from gpubench.schema.missing import Unmeasured


@dataclass(kw_only=True, slots=True)
class SweepSummary:
    """Counts of units. What has kept others from being measured, the sweep's limits tell."""

    ran: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    """Now or before."""
    timed_out: int = 0
    """Now or before; not among `failed`."""
    stale: int = 0
    elsewhere: int = 0
    """Left in the hands of other sweeps."""

    def count_bad_ending(self, status: str) -> None:
        """Counts a unit that ended badly."""
        self.failed += status == "failed"
        self.timed_out += status == "timeout"


def format_continuation(*, fresh: bool) -> str:
    """How a sweep that was stopped is continued."""
    if fresh:  # the same command would begin anew, and without --fresh the older rows count
        return "rows that were not reached are older ones; the same command measures all of them anew"
    return "to continue, run the same command again"


@dataclass(kw_only=True, slots=True)
class StopRequest:
    """Somebody stops the sweep: a signal."""

    is_asked: Callable[[], bool] = lambda: False
    fresh: bool = False
    """Whether the same command would measure all anew."""
    is_resumable: bool = False
    """Whether the sweep was stopped by it."""

    def poll_stop(self) -> bool:
        """Whether the sweep is to end now."""
        self.is_resumable |= self.is_asked()
        return self.is_resumable

    def format_closing_line(self) -> str | None:
        return f"stopped; {format_continuation(fresh=self.fresh)}" if self.is_resumable else None


@dataclass(kw_only=True, slots=True)
class BatchJobLimit:
    """The batch job that the sweep runs in ends at its time limit."""

    wall_time: WallTime | None = None
    """How long the job may still run; None: nobody ends it."""
    fresh: bool = False
    late: UnstartedUnits = field(default_factory=UnstartedUnits)
    """What was not begun because the job ends before."""
    _broken_off: dict[str, float] | None = None

    @property
    def is_resumable(self) -> bool:
        return bool(self.late.waiting)

    def decide_unit_start(
        self, unit: Unit, forecast_s: float, state: SweepState, *, is_first: bool
    ) -> Verdict:
        """Whether a unit still ends within the job; notes it where it does not. `is_first`: none has run in it."""
        wall_time = self.wall_time
        if wall_time is None:
            return "begin"
        now = time.monotonic()
        # Whether it is more than a guess is looked up only where it matters: that goes through all rows.
        known = forecast_s <= wall_time.ends_s - now or state.estimate_unit_times([unit])[0].known
        broken_off_s = max(self._find_longest_broken_off_s(state).get(job.trial_id, 0.0) for job in unit.jobs)
        if broken_off_s and any(trial_id == unit.jobs[0].trial_id for trial_id, _ in state.measured):
            broken_off_s = 0.0  # it has ended in this sweep
        need = estimate_stopped_unit(TimeEstimate(forecast_s, known), broken_off_s)
        verdict = wall_time.decide_start(need, now, is_first=is_first)
        self.late.note_verdict(unit.unit_id, verdict, need, wall_time, now)
        return verdict

    def _find_longest_broken_off_s(self, state: SweepState) -> Mapping[str, float]:
        """Trial id -> how long its longest attempt had taken when it was stopped. Worked out once: a stop ends all."""
        if self._broken_off is None:
            self._broken_off, machines = {}, state.machines()
            # Of one that has ended since it is known how long it takes.
            records = [record for record in state.records if record.machine_key in machines]
            ended = {record.trial_id for record in records if record.status == "ok"}
            for record in records:
                if record.status == "interrupted" and record.trial_id not in ended:
                    known_s = self._broken_off.get(record.trial_id, 0.0)
                    self._broken_off[record.trial_id] = max(known_s, record.phases.get("wall", 0.0))
        return self._broken_off

    def format_closing_line(self) -> str | None:
        if not self.late.waiting:
            return None
        return f"{self.late.explain_stop()}; {format_continuation(fresh=self.fresh)}"

    def raise_if_unit_too_long(self) -> None:
        """Raises UnusableError where a unit is too long for any job of this length: another would not measure it."""
        if self.late.never:
            raise UnusableError(f"{self.late.explain_short_limit()}; ask for a longer one (sbatch --time)")


@dataclass(kw_only=True, slots=True)
class RoundsLimit:
    """Further rounds end when each time is known well enough, every question is answered, or the budget is spent."""

    rounds: RoundLimits
    began: float = field(default_factory=time.monotonic)
    """When the first trial could begin; the budget counts from then."""
    is_over_budget: bool = False
    """Whether further rounds were left out because the sweep had taken its --budget."""
    unsure: int = 0
    """How many are not known as well as --within asks for, though still more rounds would measure them.

    What the sweep has skipped is reported as such.
    """
    answered: int | None = None
    """Rounds after which every question of the table is answered, where that ends the sweep."""
    is_resumable: bool = False
    """Never: what was asked for is measured."""

    @property
    def elapsed_s(self) -> float:
        """How long the sweep has run, in seconds."""
        return time.monotonic() - self.began

    def has_budget_for(self, number: int, takes_s: float) -> bool:
        """Whether the budget has room for a process of so many seconds in a round; the first round needs none."""
        budget_s = self.rounds.budget_s
        if number == 1 or budget_s is None or self.elapsed_s + takes_s <= budget_s:
            return True
        self.is_over_budget = True
        return False

    def refresh_certainty(self, state: SweepState) -> None:
        """Looks how sure the figures are that the folder holds now."""
        further = state.find_further_rounds()
        unsure = further.list_unsure_units()
        self.unsure = sum(unit.jobs[0].trial_id not in state.skips for unit in unsure)
        self.answered = further.find_answered_round()

    def format_closing_line(self) -> str | None:
        rounds = self.rounds
        if self.answered is not None:
            return (
                "every question of the table that further rounds can answer is answered, after "
                + format_count(self.answered, "round")
            )
        which = "1 trial is" if self.unsure == 1 else f"{self.unsure} trials are"
        unsure = f"{which} not known within {rounds.within_pct:g} % yet" if self.unsure else ""
        if self.is_over_budget and rounds.budget_s is not None:
            budget = f"the budget of {format_exact_seconds(rounds.budget_s)} has no room for another process"
            also = f", and {unsure}" if unsure else ""
            return f"{budget}{also}; a longer --budget goes on with further rounds"
        if not unsure:
            return None
        if rounds.most == MOST:
            return f"{unsure}, after {MOST} rounds, which is as many as there may be"
        more = min(MOST, 2 * rounds.most)
        return f"{unsure}, after {format_count(rounds.most, 'round')}; --rounds {more} goes on"


@dataclass(kw_only=True, slots=True)
class LostGpuCheck:
    """The driver has lost a GPU: what follows on it would fail, and its reset ends what runs on the others."""

    node: Node
    reasons: dict[int, str] = field(default_factory=dict)
    """Index of a lost GPU -> the driver's words."""

    def query_lost_gpus(self) -> bool:
        """Asks the driver, which takes microseconds a GPU; whether one is lost."""
        self.reasons = self.node.list_lost_gpus()
        return bool(self.reasons)

    def raise_if_lost(self) -> None:
        """Raises UnusableError where one is lost: a batch job that began anew at once would find it so."""
        if names := ", ".join(f"GPU {index} ({words})" for index, words in self.reasons.items()):
            raise UnusableError(
                f"the driver has lost {names}; reset it or reboot, then run the same command again to continue"
            )


@dataclass(kw_only=True, slots=True)
class Limits:
    """All limits of one sweep."""

    stop: StopRequest
    batch_job: BatchJobLimit
    certainty: RoundsLimit
    lost_gpus: LostGpuCheck

    @classmethod
    def build(
        cls, state: SweepState, is_stop_asked: Callable[[], bool], wall_time: WallTime | None = None
    ) -> Limits:
        """The limits of a sweep that begins now."""
        return cls(
            stop=StopRequest(is_asked=is_stop_asked, fresh=state.fresh),
            batch_job=BatchJobLimit(wall_time=wall_time, fresh=state.fresh),
            certainty=RoundsLimit(rounds=state.plan.experiment.rounds),
            lost_gpus=LostGpuCheck(node=state.runner.node),
        )

    def __iter__(self) -> Iterator[StopRequest | BatchJobLimit | RoundsLimit]:
        """In the order in which the end of a sweep names them; each explains it better than those after it."""
        yield from (self.stop, self.batch_job, self.certainty)

    @property
    def is_resumable(self) -> bool:
        """Whether the sweep was stopped, or out of time, with something left: the same command goes on."""
        return any(limit.is_resumable for limit in self)


def find_wall_time(
    say: Callable[[str], None],
    *,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str] = query_squeue_times,
) -> WallTime | None:
    """How long the batch job that a sweep runs in may still run.

    None where nothing ends it, or where that is not known, which it says.
    """
    job = find_slurm_allocation(environ)
    if job is None:
        return None
    try:
        limit = find_job_time_limit(environ, job.job_id, ask=ask)
    except Unmeasured as why:
        say(
            f"how long {job.job_label} may still run is not known ({why}): trials begin whether it ends before or not"
        )
        return None
    if limit is None:
        return None
    spare_s = compute_spare_s(limit.whole_s)
    return WallTime(
        job=job.job_label,
        ends_s=time.monotonic() + limit.left_s - spare_s,
        whole_s=limit.whole_s - spare_s,
    )
