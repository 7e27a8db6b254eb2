"""What a sweep that has joined others does before each unit: whose turn it is, and what has been measured since.

Units are taken one by one from the plan, which all go through in the same order; what must be compared on one machine
(a group and its trials alone) is taken as one. Nobody waits for a unit that somebody else measures, but for two: that
of a process that has fallen silent, and a smaller batch that may run out of memory first.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from gpubench.plan.plan import Job, Plan, Unit
from gpubench.plan.shards import bundled
from gpubench.plan.skips import Chain, chain_key, skip_reason
from gpubench.plan.state import Planned
from gpubench.results.locks.unit_locks import Lot, UnitLocks
from gpubench.schema.record import ALLOTTED, Record, given
from gpubench.store.holder import Holder
from gpubench.sweep.survey import Survey

Turn = Literal["run", "theirs", "waits", "done", "mine", "skip"]
"""What becomes of a unit now. `theirs`: somebody else is at it. `waits`: whether it is to run is not known yet. `done`:
somebody else has measured it since; `mine`: this sweep has. `skip`: it can't fit, as somebody else has found."""
READ_S = 10.0
"""How often all of the folder is read anew while units are run."""
POLL_S = 1.0
"""How often a sweep that has nothing else to do looks again."""
FITS = 0.9
"""Share of a GPU's memory that a batch may take by a smaller one's, and still be tried beside it."""


Kind = tuple[str, str]
"""Of a machine: its `machine_key`, and what it gave a trial of the CPUs and loaders that the trial left to it. Under
another allowance a trial is another configuration, which each kind of machine measures for itself."""


@dataclass(kw_only=True, slots=True)
class Joining:
    """One sweep among several that work through one plan."""

    work: Survey
    units: UnitLocks
    lots: dict[str, str]
    """Id of a unit -> that of the first of those that are taken with it."""
    place: float
    """Where in the plan it begins, as a share of it; 0 where nobody else was there."""
    chains: dict[Chain, list[Unit]]
    """Trials alone on GPUs that differ in nothing but the batch size and what takes no memory."""
    ran: set[tuple[str, int]] = field(default_factory=set)
    """Units that this sweep has run, and in which rounds: what has failed is not tried again in the next pass."""
    is_thorough: bool = False
    """Whether it asks after the owner of each unit that is taken; else it passes over what was taken a while ago."""
    _done: set[tuple[str, Kind, int]] = field(default_factory=set)
    """Trial, kind of machine and round of what others have measured since this sweep began, whatever came of it."""
    _read_at: float = -math.inf

    @classmethod
    def of(cls, work: Survey, units: UnitLocks) -> Self:
        plan: Plan = work.plan
        lots = {unit.unit_id: one[0].unit_id for one in bundled(plan, by_memory=False) for unit in one}
        chains: dict[Chain, list[Unit]] = {}
        for unit in plan.units:
            if not unit.is_group and work.bench.uses_gpus(unit):
                chains.setdefault(_chain(unit), []).append(unit)
        place = random.Random(repr(Holder.here())).random() if work.bench.results.others() else 0.0
        return cls(work=work, units=units, lots=lots, place=place, chains=chains)

    def in_lots(self, planned: Sequence[Planned]) -> list[Planned]:
        """In the same order, but for units that are taken as one, and for batch sizes of one configuration: they stand
        together, where the first of them is. So what is compared is mostly measured on one node in a round.

        Beside others each sweep begins at a place of its own and goes around, so that few ask for the same unit. No
        chain of growing batches is cut: the smallest comes first.
        """
        lots: dict[str, list[Planned]] = {}
        for item in planned:
            lots.setdefault(self.lots[item.unit.unit_id], []).append(item)
        series: dict[object, list[list[Planned]]] = {}
        for name, lot in lots.items():
            unit = lot[0].unit
            series.setdefault(name if len(lot) > 1 or unit.is_group else _chain(unit), []).append(lot)
        found = [lot for one in series.values() for lot in one]
        if self.place:
            cuts = list(self._cuts(found))
            cut = cuts[int(self.place * len(cuts))]
            found = found[cut:] + found[:cut]
        return [item for one in found for item in one]

    def _cuts(self, lots: Sequence[Sequence[Planned]]) -> Iterator[int]:
        """Where the plan can be cut without cutting a chain; at its beginning at least."""
        left = Counter(chain for lot in lots for chain in self._chains_of(lot))
        begun: Counter[Chain] = Counter()
        for number, lot in enumerate(lots):
            if not begun:
                yield number
            for chain in self._chains_of(lot):
                begun[chain] += 1
                if begun[chain] == left[chain]:
                    del begun[chain]

    def _chains_of(self, lot: Sequence[Planned]) -> Iterator[Chain]:
        for item in lot:
            if not item.unit.is_group and (chain := _chain(item.unit)) in self.chains:
                yield chain

    def turn(self, unit: Unit, number: int) -> tuple[Turn, str]:
        """What becomes of a unit that this sweep would run now in a round, and why it is skipped."""
        if (unit.unit_id, number) in self.ran:
            return "mine", ""
        if self._is_done(unit, number):
            return "done", ""
        lot = self.lot(unit, number)
        if not self.is_thorough and self.units.was_taken(lot):
            return "theirs", ""
        if number == 1 and self._may_not_fit(unit):
            return "waits", ""
        answer = self.units.take(lot)
        if answer != "mine":
            return ("waits" if answer == "quiet" else "theirs"), ""
        # Only now: whoever had it before has stored it before it was given back.
        self.read([unit])
        if self._is_done(unit, number):
            return "done", ""
        if number == 1 and "oom" not in self.work.settings.retry:
            self.read(self.chains.get(_chain(unit), [unit]))
            plan = self.work.plan
            if reason := skip_reason(unit, self.work.oom_here(), None, plan.device):
                return "skip", reason
        self.ran.add((unit.unit_id, number))
        return "run", ""

    def give_back(self) -> None:
        """Has no unit any more."""
        self.units.give_back()

    def read(self, units: Sequence[Unit] = ()) -> None:
        """What others have stored in the meantime; of these units always, of all others every few seconds."""
        now = time.monotonic()
        whole = not units or now - self._read_at >= READ_S
        if whole:
            self._read_at = now
            self.units.look_around()
        found = self.work.reload(None if whole else [unit.unit_id for unit in units])
        self._done |= {
            (one.trial_id, (one.machine_key, _told(given(one))), one.round)
            for one in found
            if one.status != "interrupted"
        }

    def lot(self, unit: Unit, number: int) -> Lot:
        """What is taken with a unit in a round, on this kind of machine."""
        kinds = sorted({" ".join(self._kind(job)) for job in unit.jobs})
        return Lot(self.lots[unit.unit_id], number, " + ".join(kinds))

    def _kind(self, job: Job) -> Kind:
        machine = self.work.bench.machine_key(job)
        gets = self.work.gets().get((job.trial_id, machine), {})
        asked = vars(job.trial)
        return machine, _told({name: gets.get(name) for name in ALLOTTED if asked.get(name) is None})

    def _is_done(self, unit: Unit, number: int) -> bool:
        """Whether somebody else has measured it in this round since this sweep began, whatever came of it."""
        return any((job.trial_id, self._kind(job), number) in self._done for job in unit.jobs)

    def _may_not_fit(self, unit: Unit) -> bool:
        """Whether a smaller batch is being tried that may run out of memory, so that this one need not be tried.

        By the largest that ran: memory grows at most as the batch does, for what is fixed counts in both.
        """
        smaller = [one for one in self.chains.get(_chain(unit), ()) if _batch(one) < _batch(unit)]
        if unit.is_group or not any(self.units.is_taken(self.lot(one, 1)) for one in smaller):
            return False
        self.read(smaller)
        ran = self.work.chosen()
        # Whoever died after it had stored its record has left a lock that nobody asks after.
        tried = [one for one in smaller if not _has_ended(ran.get(one.jobs[0].trial_id))]
        if not any(self.units.is_taken(self.lot(one, 1)) for one in tried):
            return False
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


def _told(given: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(given.items()))


def _has_ended(record: Record | None) -> bool:
    return record is not None and record.status != "interrupted"


def _chain(unit: Unit) -> Chain:
    (job, *_) = unit.jobs
    return chain_key(job.trial, job.variant.definition())


def _batch(unit: Unit) -> int:
    return unit.jobs[0].trial.batch_size
