"""Where units are run: one attempt at a trial or a group, from the order to the stored records."""

from __future__ import annotations

import datetime
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubench.basics.errors import GpubenchError
from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Machine, environment_facts, machine_key
from gpubench.node.launch.attempt import Attempt, JobProgress, Task, attempt
from gpubench.node.launch.client import Launcher
from gpubench.node.launch.scratch import scratch_folder
from gpubench.node.watch.nvml import Nvml
from gpubench.node.watch.samples import SAMPLE_HEADER
from gpubench.node.watch.shared_nvml import SharedNvml
from gpubench.node.watch.watcher import Watcher
from gpubench.plan import resolve as resolving
from gpubench.plan.further import FIRST, Turn
from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import Resolved
from gpubench.plan.shares import device_of
from gpubench.plan.sources import Disk
from gpubench.record.recording import EndedAttempt, Known, records_of, step_samples
from gpubench.record.together import GroupPrediction, neighbours_on_gpus
from gpubench.results.store import Results, write_whole
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended, Record
from gpubench.sweep import losses
from gpubench.sweep.folders import Folders, Wanted

LEFT_OUT = "left-out.json"
"""In a job's scratch folder: the images that its ranks leave out, which may be too many for a message."""
Look = Callable[[Sequence[Watcher], Sequence[JobProgress]], None]


@dataclass(kw_only=True, slots=True)
class Bench:
    """One machine, one results folder."""

    machine: Machine
    nvml: Nvml | None
    results: Results
    sources: Disk
    experiment: str
    device: str
    """What `auto` means here: cuda or cpu."""
    timeout_s: float
    folders: Folders = field(default_factory=Folders)
    environment: dict[str, Any] = field(default_factory=dict)
    idle_power_w: dict[str, float] = field(default_factory=dict)
    """GPU uuid -> watts before the sweep, where the GPU was idle and tells."""
    no_idle_power: dict[str, str] = field(default_factory=dict)
    """GPU uuid -> why it is not among them."""
    idle_readings: dict[str, tuple[int, int]] = field(default_factory=dict)
    """GPU uuid -> readings behind its idle power, and those that failed."""
    lost: dict[int, losses.Loss] = field(default_factory=dict)
    """Number of a GPU -> how it was lost since the sweep began."""
    looked_at: set[int] | None = None
    """Numbers of the GPUs on which others' work would have kept the sweep from starting; None: nobody looked."""
    _gmacs: dict[tuple[Any, ...], float] = field(default_factory=dict)
    _scratch: Path | None = None

    def __post_init__(self) -> None:
        self.environment = environment_facts(self.machine)

    # ---- what a unit gets here ----

    def facts(self, job: Job) -> DataFacts:
        return self.sources.data(job.trial.data)

    def resolve(self, unit: Unit) -> list[Resolved]:
        """One for each job."""
        return resolving.resolve_unit(unit, self.machine, self.facts, self.device, self._out_of_use)

    def uses_gpus(self, unit: Unit) -> bool:
        return any(device_of(job.trial, self.device) == "cuda" for job in unit.jobs)

    @property
    def _out_of_use(self) -> set[int]:
        """GPUs that no trial is moved onto: lost ones, and those that nobody has looked at: others may work there."""
        if not self.lost:
            return set()
        every = {gpu.index for gpu in self.machine.gpus}
        return {*self.lost, *(every - (every if self.looked_at is None else self.looked_at))}

    def look_for_losses(self) -> list[losses.Loss]:
        """Asks the driver for the GPUs that it has lost since it was asked last."""
        if self.nvml is None:
            return []
        there = [gpu for gpu in self.machine.gpus if gpu.index not in self.lost]
        found = losses.look(self.nvml, there, time.strftime("%H:%M"))
        self.lost |= {loss.gpu.index: loss for loss in found}
        return found

    @property
    def has_gpus_left(self) -> bool:
        return len(self.lost) < len(self.machine.gpus)

    def lost_to(self, unit: Unit) -> list[losses.Loss]:
        """The losses that keep a unit from running."""
        numbers = (number for one in self.resolve(unit) for number in one.gpu_ids)
        return [self.lost[number] for number in dict.fromkeys(numbers) if number in self.lost]

    def wanted(self, unit: Unit) -> list[Wanted]:
        """The images that its jobs read."""
        return [self._images(job, one) for job, one in zip(unit.jobs, self.resolve(unit), strict=True)]

    def _images(self, job: Job, resolved: Resolved) -> Wanted:
        name = job.trial.data
        return name, job.variant.files, resolved.input_size, self.sources.without(name)

    def machine_key(self, job: Job) -> str:
        device = device_of(job.trial, self.device)
        # Without a GPU no record of a GPU trial is this machine's; such trials are skipped.
        return machine_key(self.machine, device) if device == "cpu" or self.machine.gpus else ""

    # ---- running it ----

    def run(
        self,
        unit: Unit,
        group_prediction: GroupPrediction,
        launcher: Launcher,
        should_stop: Callable[[], bool],
        look: Look,
        turn: Turn = FIRST,
    ) -> list[Record]:
        """One attempt, stored. Returns a record for each job."""
        number = self.results.next_attempt(unit.unit_id, *(job.trial_id for job in unit.jobs))
        logs = [self._log(job, number) for job in unit.jobs]
        started_at = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        resolved = self.resolve(unit)
        watchers = self._watchers(resolved)
        with scratch_folder() as self._scratch:
            folders = [self._scratch / str(index) for index in range(len(unit.jobs))]
            for folder in folders:
                folder.mkdir()
            try:
                orders = [
                    self._order(*each)
                    for each in zip(unit.jobs, resolved, logs, folders, turn.each(unit), strict=True)
                ]
            except GpubenchError as error:  # its images can't be had; other trials may use others
                now = time.monotonic()
                failed: tuple[Ended, str] = ("failed", str(error))
                done = [Attempt(forced=failed, launched=now, finished=now) for _ in unit.jobs]
            else:
                done = attempt(
                    [Task(order=o, watcher=w) for o, w in zip(orders, watchers, strict=True)],
                    launcher,
                    timeout_s=self.timeout_s,
                    should_stop=self.beating(should_stop),
                    look=lambda progress: look(watchers, progress),
                )
        if self.uses_gpus(unit):
            self.look_for_losses()
        tried = [
            EndedAttempt(
                job=job,
                resolved=one,
                facts=self.facts(job),
                machine_key=self.machine_key(job),
                number=number,
                round=turn.round,
                steps=order_steps,
                started_at=started_at,
                done=end,
                watcher=watcher,
            )
            for job, one, end, watcher, order_steps in zip(
                unit.jobs, resolved, done, watchers, turn.each(unit), strict=True
            )
        ]
        records = records_of(tried, self._known(), group_prediction)
        for job, one, record in zip(unit.jobs, resolved, records, strict=True):
            if record.result.gmacs_per_image is not None:
                self._gmacs[_model_key(job, one)] = record.result.gmacs_per_image
        samples = [
            [*watcher.samples(one.launched), *step_samples(one.events, one.launched)]
            for watcher, one in zip(watchers, done, strict=True)
        ]
        self.results.save(records, samples, SAMPLE_HEADER)
        return records

    def abandon(self) -> None:
        """What a process that is about to end at once still clears away."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _watchers(self, resolved: Sequence[Resolved]) -> list[Watcher]:
        """One for each job, which know each other's processes."""
        nvml = self.nvml
        if nvml is not None and len(resolved) > 1:
            nvml = SharedNvml(nvml, time.monotonic)
        watchers: list[Watcher] = []

        def friends_of(index: int) -> Callable[[], set[int]]:
            return lambda: {pid for k, other in enumerate(watchers) if k != index for pid in other.pids()}

        for index, one in enumerate(resolved):
            watchers.append(
                Watcher(
                    nvml,
                    self.machine,
                    one.gpu_uuids,
                    one.cpu_ids,
                    friends=friends_of(index),
                    shared_gpus=neighbours_on_gpus(resolved, index),
                )
            )
        return watchers

    def _log(self, job: Job, number: int) -> Path:
        log = self.results.log(job.trial_id, number)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        return log

    def beating(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """Asks `should_stop`, and shows on the way that this sweep is alive."""

        def ask() -> bool:
            self.results.beat()
            return should_stop()

        return ask

    def _order(self, job: Job, resolved: Resolved, log: Path, scratch: Path, steps: int | None) -> TrialOrder:
        facts = self.facts(job)
        root = self.folders.ready(self._images(job, resolved))
        left_out = None
        if facts.skipped_images and str(root) == facts.root:  # a copy lacks them anyway
            left_out = scratch / LEFT_OUT
            write_whole(left_out, json.dumps(sorted(self.sources.without(job.trial.data))))
        return resolving.order(
            job,
            resolved,
            data=resolving.data_spec(job, resolved, facts, root, left_out),
            log=log.absolute(),
            scratch=scratch,
            known_gmacs=self._gmacs.get(_model_key(job, resolved)),
            steps=steps,
        )

    def _known(self) -> Known:
        return Known(
            experiment=self.experiment,
            machine=self.machine,
            environment=self.environment,
            idle_power_w=self.idle_power_w,
            no_idle_power=self.no_idle_power,
            idle_readings=self.idle_readings,
            lost={loss.gpu.uuid: loss.words for loss in self.lost.values()},
        )


def _model_key(job: Job, resolved: Resolved) -> tuple[Any, ...]:
    return job.trial.model, job.trial.width, resolved.input_size, resolved.num_classes
