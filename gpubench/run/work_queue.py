"""Which work of its plan a sweep takes next, among others that may work in the same folder.

Each unit of a round is claimed before it is measured (`store/work_claims.py`); what must be compared on one machine (a
group and its trials alone) is claimed as one. Nobody waits for a unit that somebody else measures, but for two: that of
a process that has fallen silent, and a smaller batch that may run out of memory first.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from gpubench.basics import slurm_job
from gpubench.plan.plan import Job, Unit
from gpubench.plan.shards import group_inseparable_units
from gpubench.plan.skips import Chain, find_skip_reason, make_memory_chain_key
from gpubench.plan.state import PlannedUnit
from gpubench.run.sweep_state import SweepState
from gpubench.schema.record import ALLOTTED, find_allotted_values
from gpubench.store.holder import HolderProcess
from gpubench.store.work_claims import WorkClaims, WorkItem, list_workers

Turn = Literal["run", "theirs", "waits", "done", "mine", "skip"]
"""What becomes of a unit now. `theirs`: somebody else is at it. `waits`: whether it is to run is not known yet. `done`:
somebody else has measured it since; `mine`: this sweep has. `skip`: it can't fit, as somebody else has found."""
READ_S = 10.0
"""How often all of the folder is read anew while units are run, in seconds."""
POLL_S = 1.0
"""How often a sweep that has nothing else to do looks again."""
FITS = 0.9
"""Share of a GPU's memory that a batch may take by a smaller one's, and still be tried beside it."""


Kind = tuple[str, str]
"""Of a machine: its `machine_key`, and what it gave a trial of the CPUs and loaders that the trial left to it. Under
another allowance a trial is another configuration, which each kind of machine measures for itself."""


@dataclass(kw_only=True, slots=True)
class WorkQueue:
    """The work of one sweep."""

    state: SweepState
    claims: WorkClaims
    lots: dict[str, str]
    """Id of a unit -> that of the first of those that are claimed with it."""
    place: float | None
    """Where in the plan it begins, as a share of it; None where nobody else is there or expected."""
    chains: dict[Chain, list[Unit]]
    """Trials alone on GPUs that differ in nothing but the batch size and what takes no memory."""
    ran: set[tuple[str, int]] = field(default_factory=set)
    """Units that this sweep has run, and in which rounds: what has failed is not tried again in the next pass."""
    _done: set[tuple[str, Kind, int]] = field(default_factory=set)
    """Trial, kind of machine and round of what others have measured since this sweep began, whatever came of it."""
    _read_at: float = -math.inf

    @classmethod
    def build(cls, state: SweepState) -> Self:
        """The queue of a sweep that begins now."""
        plan, claims = state.plan, state.runner.claims
        lots = {
            unit.unit_id: units[0].unit_id
            for units in group_inseparable_units(plan, by_memory=False)
            for unit in units
        }
        chains: dict[Chain, list[Unit]] = {}
        for unit in plan.units:
            if not unit.is_group and state.runner.is_gpu_unit(unit):
                chains.setdefault(_make_unit_chain_key(unit), []).append(unit)
        workers = list_workers(state.runner.results.folder)
        has_company = slurm_job.has_concurrent_runs() or any(worker.is_alive for worker in workers)
        place = random.Random(repr(HolderProcess.make_current())).random() if has_company else None
        return cls(state=state, claims=claims, lots=lots, place=place, chains=chains)

    def list_in_queue_order(self, planned: Sequence[PlannedUnit]) -> list[PlannedUnit]:
        """The order in which it goes through these units: alone that of the plan.

        Beside others units that are claimed as one, and batch sizes of one configuration, stand together, where the
        first of them is: so what is compared is mostly measured on one node in a round. Each sweep begins at a place of
        its own and goes around, so that few ask for the same unit. No chain of growing batches is cut: the smallest
        comes first.
        """
        if self.place is None:
            return list(planned)
        lots: dict[str, list[PlannedUnit]] = {}
        for item in planned:
            lots.setdefault(self.lots[item.unit.unit_id], []).append(item)
        series: dict[object, list[list[PlannedUnit]]] = {}
        for name, lot in lots.items():
            unit = lot[0].unit
            key: object = name if len(lot) > 1 or unit.is_group else _make_unit_chain_key(unit)
            series.setdefault(key, []).append(lot)
        in_order = [lot for lots_of_series in series.values() for lot in lots_of_series]
        cuts = list(self._list_cut_places(in_order)) or [0]
        cut = cuts[int(self.place * len(cuts))]
        return [item for lot in in_order[cut:] + in_order[:cut] for item in lot]

    def _list_cut_places(self, lots: Sequence[Sequence[PlannedUnit]]) -> Iterator[int]:
        """Where the plan can be cut without cutting a chain; at its beginning at least."""
        to_come = Counter(chain for lot in lots for chain in self._list_chains_of_lot(lot))
        begun: Counter[Chain] = Counter()
        for number, lot in enumerate(lots):
            if not begun:
                yield number
            for chain in self._list_chains_of_lot(lot):
                begun[chain] += 1
                if begun[chain] == to_come[chain]:
                    del begun[chain]

    def _list_chains_of_lot(self, lot: Sequence[PlannedUnit]) -> Iterator[Chain]:
        for item in lot:
            if not item.unit.is_group and (chain := _make_unit_chain_key(item.unit)) in self.chains:
                yield chain

    def claim_turn(self, unit: Unit, number: int) -> tuple[Turn, str]:
        """What becomes of a unit that this sweep would run now in a round, and why it is skipped."""
        if (unit.unit_id, number) in self.ran:
            return "mine", ""
        if self.is_done_by_others(unit, number):
            return "done", ""
        if number == 1 and self._may_not_fit(unit):
            return "waits", ""

        def is_stored() -> bool:
            self.read_new_records([unit])
            return self.is_done_by_others(unit, number)

        answer = self.claims.claim_item(self.make_work_item(unit, number), is_stored)
        if answer != "mine":
            return ("waits" if answer == "silent" else answer), ""
        # Only now: whoever had it before has stored it before it was given back.
        if is_stored():
            return "done", ""
        if number == 1 and "oom" not in self.state.retry:
            self.read_new_records(self.chains.get(_make_unit_chain_key(unit), [unit]))
            plan = self.state.plan
            if reason := find_skip_reason(unit, self.state.find_out_of_memory(), None, plan.device):
                return "skip", reason
        self.ran.add((unit.unit_id, number))
        return "run", ""

    def claim_first_unit(self, planned: Sequence[PlannedUnit]) -> None:
        """Claims what this sweep will begin with, so that others see it at work while it makes ready."""
        for item in self.list_in_queue_order([item for item in planned if item.state == "run"]):
            number = item.rounds[0] if item.rounds else 1
            if self.claims.claim_item(self.make_work_item(item.unit, number), lambda: False) == "mine":
                return

    def read_new_records(self, units: Sequence[Unit] = ()) -> None:
        """What others have stored in the meantime; of these units always, of all others every few seconds."""
        now = time.monotonic()
        whole = not units or now - self._read_at >= READ_S
        if whole:
            self._read_at = now
        newer = self.state.reload_newer_records(None if whole else [unit.unit_id for unit in units])
        for record in newer:
            if record.status != "interrupted":
                kind = record.machine_key, _format_values(find_allotted_values(record))
                self._done.add((record.trial_id, kind, record.round))

    def make_work_item(self, unit: Unit, number: int) -> WorkItem:
        """What is claimed with a unit in a round, on this kind of machine."""
        kinds = sorted({" ".join(self._make_machine_kind(job)) for job in unit.jobs})
        return WorkItem(self.lots[unit.unit_id], number, " + ".join(kinds))

    def _make_machine_kind(self, job: Job) -> Kind:
        machine = self.state.runner.find_machine_key(job)
        gets = self.state.resolve_allotments().get((job.trial_id, machine), {})
        trial = job.trial.asdict()
        return machine, _format_values({name: gets.get(name) for name in ALLOTTED if trial.get(name) is None})

    def is_done_by_others(self, unit: Unit, number: int) -> bool:
        """Whether somebody else has measured it in this round since this sweep began, whatever came of it."""
        return any((job.trial_id, self._make_machine_kind(job), number) in self._done for job in unit.jobs)

    def _may_not_fit(self, unit: Unit) -> bool:
        """Whether a smaller batch is being tried that may run out of memory, so that this one need not be tried.

        By the largest that ran: memory grows at most as the batch does, for what is fixed counts in both.
        """
        if unit.is_group:
            return False
        batch_size = unit.jobs[0].trial.batch_size
        smaller = {
            other.jobs[0].trial_id: other
            for other in self.chains.get(_make_unit_chain_key(unit), ())
            if other.jobs[0].trial.batch_size < batch_size
        }

        def is_any_tried() -> bool:
            """Whether somebody else is at one of them. Whoever died after it had stored its record has left a claim."""
            stored = self.state.find_counting_records()
            return any(
                self.claims.is_held_by_other(self.make_work_item(other, 1))
                for trial_id, other in smaller.items()
                if trial_id not in stored or stored[trial_id].status == "interrupted"
            )

        if not smaller or not is_any_tried():
            return False
        self.read_new_records(list(smaller.values()))  # what is held may have ended since
        if not is_any_tried():
            return False
        stored = self.state.find_counting_records()
        memory: list[tuple[int, float]] = [
            (other.jobs[0].trial.batch_size, mib)
            for trial_id, other in smaller.items()
            if (record := stored.get(trial_id)) is not None
            and record.status == "ok"
            and (mib := record.result.get("gpu_mem_mib")) is not None
        ]
        if not memory:
            return True
        batch, mib = max(memory)
        least_mib = min((gpu.memory_mib for gpu in self.state.runner.node.machine.gpus), default=0)
        return mib * batch_size / batch > FITS * least_mib


def _format_values(values: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))


def _make_unit_chain_key(unit: Unit) -> Chain:
    (job, *_) = unit.jobs
    return make_memory_chain_key(job.trial, job.variant.make_definition())
