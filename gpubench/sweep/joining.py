"""What a sweep that has joined others does before each unit: whose turn it is, and what has been measured since.

Units are taken one by one from the plan, which all go through in the same order; what must be compared on one machine
(a group and its trials alone) is taken as one. Nobody waits for a unit that somebody else measures, but for two: that
of a process that has fallen silent, and a smaller batch that may run out of memory first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from gpubench.plan.plan import Plan, Unit
from gpubench.plan.shards import bundled
from gpubench.plan.skips import Chain, chain_key, skip_reason
from gpubench.plan.state import Planned
from gpubench.results.locks.unit_locks import Lot, UnitLocks
from gpubench.schema.record import Record
from gpubench.sweep.survey import Survey

Turn = Literal["run", "theirs", "waits", "done", "skip"]
"""What becomes of a unit now. `theirs`: somebody else is at it. `waits`: whether it is to run is not known yet. `done`:
somebody else has measured it since. `skip`: it can't fit, as somebody else has found."""
POLL_S = 1.0
"""How often a sweep that has nothing else to do looks again."""
FITS = 0.9
"""Share of a GPU's memory that a batch may take by a smaller one's, and still be tried beside it."""


@dataclass(kw_only=True, slots=True)
class Joining:
    """One sweep among several that work through one plan."""

    work: Survey
    units: UnitLocks
    lots: dict[str, str]
    """Id of a unit -> that of the first of those that are taken with it."""
    chains: dict[Chain, list[Unit]]
    """Trials alone on GPUs that differ in nothing but the batch size and what takes no memory."""
    since: list[Record] = field(default_factory=list)
    """What others have stored since this sweep began."""

    @classmethod
    def of(cls, work: Survey, units: UnitLocks) -> Self:
        plan: Plan = work.plan
        lots = {unit.unit_id: one[0].unit_id for one in bundled(plan, by_memory=False) for unit in one}
        chains: dict[Chain, list[Unit]] = {}
        for unit in plan.units:
            if not unit.is_group and work.bench.uses_gpus(unit):
                chains.setdefault(_chain(unit), []).append(unit)
        return cls(work=work, units=units, lots=lots, chains=chains)

    def in_lots(self, planned: Sequence[Planned]) -> list[Planned]:
        """In the same order, but for units that are taken as one: they stand together, where the first of them is."""
        lots: dict[str, list[Planned]] = {}
        for item in planned:
            lots.setdefault(self.lots[item.unit.unit_id], []).append(item)
        return [item for one in lots.values() for item in one]

    def turn(self, unit: Unit, number: int) -> tuple[Turn, str]:
        """What becomes of a unit that this sweep would run now in a round, and why it is skipped."""
        if number == 1 and self._may_not_fit(unit):
            return "waits", ""
        answer = self.units.take(self._lot(unit, number))
        if answer != "mine":
            return ("waits" if answer == "quiet" else "theirs"), ""
        self.read()
        if self._is_done(unit, number):
            return "done", ""
        if number == 1 and "oom" not in self.work.settings.retry:
            plan = self.work.plan
            if reason := skip_reason(unit, self.work.oom_here(), None, plan.device):
                return "skip", reason
        return "run", ""

    def give_back(self) -> None:
        """Has no unit any more."""
        self.units.give_back()

    def read(self) -> None:
        """What others have stored in the meantime."""
        self.since += self.work.reload()

    def _lot(self, unit: Unit, number: int) -> Lot:
        machines = sorted({self.work.bench.machine_key(job) for job in unit.jobs})
        return Lot(self.lots[unit.unit_id], number, " + ".join(machines))

    def _is_done(self, unit: Unit, number: int) -> bool:
        """Whether somebody else has measured it in this round since this sweep began, whatever came of it."""
        mine = {(job.trial_id, self.work.bench.machine_key(job)) for job in unit.jobs}
        return any(
            (record.trial_id, record.machine_key) in mine
            and record.round == number
            and record.status != "interrupted"
            for record in self.since
        )

    def _may_not_fit(self, unit: Unit) -> bool:
        """Whether a smaller batch is being tried that may run out of memory, so that this one need not be tried.

        By the largest that ran: memory grows at most as the batch does, for what is fixed counts in both.
        """
        smaller = [one for one in self.chains.get(_chain(unit), ()) if _batch(one) < _batch(unit)]
        tried = [one for one in smaller if self.units.is_taken(self._lot(one, 1))]
        if unit.is_group or not tried:
            return False
        self.read()
        ran = self.work.chosen()
        known = [
            (_batch(one), record.result.gpu_mem_mib)
            for one in smaller
            if (record := ran.get(one.jobs[0].trial_id)) is not None
            and record.status == "ok"
            and record.result.gpu_mem_mib is not None
        ]
        least_mib = min((gpu.memory_mib for gpu in self.work.bench.node.machine.gpus), default=0)
        if not known:
            return True
        batch, mib = max(known)
        return mib * _batch(unit) / batch > FITS * least_mib


def _chain(unit: Unit) -> Chain:
    (job, *_) = unit.jobs
    return chain_key(job.trial, job.variant.definition())


def _batch(unit: Unit) -> int:
    return unit.jobs[0].trial.batch_size
