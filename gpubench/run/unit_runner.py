"""Where units are run: one attempt at a trial or a group, from the order to the stored records."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from gpubench.basics.errors import GpubenchError
from gpubench.datasets.facts import DataFacts
from gpubench.node.cluster import Cluster
from gpubench.node.environment import make_hardware_key
from gpubench.node.locks import SweepLocks
from gpubench.node.node import Node
from gpubench.plan import resolve as resolving
from gpubench.plan.plan import Job, Plan, Unit, find_trial_data_facts
from gpubench.plan.resolve import ResolvedTrial
from gpubench.plan.shares import choose_device
from gpubench.plan.sources import DiskSources
from gpubench.record.recording import EndedAttempt, SweepFacts, list_sample_rows, make_records
from gpubench.record.together import GroupPrediction
from gpubench.results.store import Results
from gpubench.run.images import ImageFolders, Wanted
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.attempt_ids import make_attempt_id
from gpubench.schema.gpu_look import IdlePower
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended, Record, decide_group_ending
from gpubench.schema.samples import SAMPLE_HEADER
from gpubench.store.work_claims import WorkClaims

CPU_POLL_S = 0.1


@dataclass(kw_only=True, slots=True)
class UnitRunner:
    """One machine, one results folder."""

    node: Node
    cluster: Cluster | None = None
    """The nodes on which a trial may run together, `node` the first of them; None: there is but that."""
    results: Results
    sources: DiskSources
    experiment: str
    device: str
    """What `auto` means here: cuda or cpu."""
    timeout_s: float
    folders: ImageFolders = field(default_factory=ImageFolders)
    environment: dict[str, Any] = field(init=False)
    idle_power: IdlePower = field(default_factory=IdlePower)
    claims: WorkClaims = field(init=False)
    """What this sweep has claimed of the folder's work."""
    cpu_locks: SweepLocks = field(default_factory=SweepLocks)
    _has_waited: bool = False
    _gmacs: dict[tuple[Any, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environment = self.node.collect_environment_facts()
        self.claims = WorkClaims(self.results.folder)

    @classmethod
    def build(
        cls, plan: Plan, node: Node, results: Results, sources: DiskSources, cluster: Cluster | None = None
    ) -> Self:
        """What runs the units of a plan."""
        return cls(
            node=node,
            cluster=cluster,
            results=results,
            sources=sources,
            experiment=plan.experiment.name,
            device=plan.device,
            timeout_s=plan.experiment.timeout_s,
        )

    # ---- what a unit gets here ----

    def find_data_facts(self, job: Job) -> DataFacts:
        return find_trial_data_facts(job.trial, self.sources)

    def resolve_jobs(self, unit: Unit) -> list[ResolvedTrial]:
        """One for each job."""
        return resolving.resolve_unit_trials(unit, self.node.machine, self.find_data_facts, self.device)

    @property
    def nodes(self) -> int:
        """How many nodes a trial may run on together."""
        return self.cluster.node_count if self.cluster else 1

    def is_gpu_unit(self, unit: Unit) -> bool:
        return any(choose_device(job.trial, self.device) == "cuda" for job in unit.jobs)

    def list_wanted_images(self, unit: Unit) -> list[Wanted]:
        """The images that its jobs read."""
        return [
            self._make_wanted_images(job, resolved)
            for job, resolved in zip(unit.jobs, self.resolve_jobs(unit), strict=True)
        ]

    def _make_wanted_images(self, job: Job, resolved: ResolvedTrial) -> Wanted:
        name = job.trial.data
        left_out = frozenset() if job.variant.files == "none" else self.sources.find_left_out_images(name)
        return name, job.variant.files, resolved.input_size, left_out

    def find_machine_key(self, job: Job) -> str:
        device, machine = choose_device(job.trial, self.device), self.node.machine
        # Without a GPU no record of a GPU trial is this machine's; such trials are skipped.
        return make_hardware_key(machine, device) if device == "cpu" or machine.gpus else ""

    # ---- running it ----

    def run_and_store_attempt(
        self,
        unit: Unit,
        group_prediction: GroupPrediction,
        should_stop: Callable[[], bool],
        look: Callable[[Sequence[JobProgress]], None],
        round_: int = 1,
    ) -> list[Record]:
        """One attempt, stored. Returns a record for each job."""
        number, attempt_id, logs = self._prepare_attempt_logs(unit)
        started_at = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        resolved = self.resolve_jobs(unit)
        try:
            orders = [self._make_trial_order(*args) for args in zip(unit.jobs, resolved, logs, strict=True)]
        except GpubenchError as error:  # its images can't be had; other trials may use others
            now = time.monotonic()
            failed: tuple[Ended, str] = ("failed", str(error))
            done = [Attempt(forced=failed, launched=now, finished=now) for _ in unit.jobs]
        else:
            left_out = [self._find_left_out_images(*args) for args in zip(unit.jobs, orders, strict=True)]
            poll = self.make_poll_with_heartbeat(should_stop)
            if self.cluster and (nodes := resolved[0].nodes) > 1:
                across = self.cluster.run_trial(
                    orders[0],
                    left_out[0],
                    nodes=nodes,
                    timeout_s=self.timeout_s,
                    should_stop=poll,
                    look=look,
                )
                uuids = tuple(uuid for node in across.nodes for uuid in node.gpu_uuids)
                done, resolved = [across], [replace(resolved[0], gpu_uuids=uuids or resolved[0].gpu_uuids)]
            else:
                done = self.node.run_unit(
                    orders, left_out, timeout_s=self.timeout_s, should_stop=poll, look=look
                )
        tried = [
            EndedAttempt(
                job=job,
                resolved=placement,
                facts=self.find_data_facts(job),
                machine_key=self.find_machine_key(job),
                number=number,
                attempt_id=attempt_id,
                claim=self.claims.name,
                round=round_,
                started_at=started_at,
                done=end,
            )
            for job, placement, end in zip(unit.jobs, resolved, done, strict=True)
        ]
        known = SweepFacts(
            experiment=self.experiment,
            machine=self.node.machine,
            environment=self.environment,
            idle_power=self.idle_power,
        )
        records = make_records(tried, known, group_prediction)
        for job, placement, record in zip(unit.jobs, resolved, records, strict=True):
            if (gmacs := record.result.get("gmacs_per_image")) is not None:
                self._gmacs[_make_model_key(job, placement)] = gmacs
        self.results.save(records, [list_sample_rows(attempt) for attempt in done], SAMPLE_HEADER)
        if decide_group_ending([record.status for record in records]) != "interrupted":
            self.claims.note_attempt_stored()
        return records

    def _prepare_attempt_logs(self, unit: Unit) -> tuple[int, str, list[Path]]:
        """The number and the id of the attempt that begins, and the empty log of each job."""
        self.results.check_not_removed()
        number = self.results.find_next_attempt_number(unit.unit_id, *(job.trial_id for job in unit.jobs))
        attempt_id = make_attempt_id(number, self.results.folder_id)
        logs = [self.results.make_log_path(job.trial_id, attempt_id) for job in unit.jobs]
        for log in logs:
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch(exist_ok=False)
        return number, attempt_id, logs

    def wait_for_cpus(self, unit: Unit, should_stop: Callable[[], bool]) -> bool:
        """Waits until no other sweep of this host measures a trial of the same folder on these CPUs.

        Whether it may begin then: False where it is to stop. Sweeps on GPUs are kept apart by these.
        """
        if self.is_gpu_unit(unit):
            return True
        should_end = self.make_poll_with_heartbeat(should_stop)
        cpus = [f"{self.results.folder_id}-cpu-{cpu}" for cpu in sorted(os.sched_getaffinity(0))]
        while not self.cpu_locks.try_take_all(cpus):
            if should_end():
                return False
            if not self._has_waited:
                self._has_waited = True
                self.claims.say("another sweep measures on these CPUs: the two of them take turns")
            time.sleep(CPU_POLL_S)
        return True

    def make_poll_with_heartbeat(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """Asks `should_stop`, and shows on the way that this sweep is alive."""

        def ask() -> bool:
            self.claims.touch_heartbeat()
            return should_stop()

        return ask

    def _make_trial_order(self, job: Job, resolved: ResolvedTrial, log: Path) -> TrialOrder:
        root = self.folders.ensure_folder(self._make_wanted_images(job, resolved))
        return resolving.make_trial_order(
            job,
            resolved,
            data=resolving.make_data_spec(job, resolved, self.find_data_facts(job), root),
            log=log.absolute(),
            known_gmacs=self._gmacs.get(_make_model_key(job, resolved)),
        )

    def _find_left_out_images(self, job: Job, order: TrialOrder) -> frozenset[str]:
        """The images that its ranks leave out, where they lie among those that they read: a copy lacks them anyway."""
        if job.variant.files == "none":
            return frozenset()
        is_original = order.data.root == self.find_data_facts(job).root
        return self.sources.find_left_out_images(job.trial.data) if is_original else frozenset()


def _make_model_key(job: Job, resolved: ResolvedTrial) -> tuple[Any, ...]:
    return job.trial.command, job.trial.model, job.trial.width, resolved.input_size, resolved.num_classes
