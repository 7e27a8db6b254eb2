"""The sweep: takes a plan, runs what is missing one unit after the other, stores each as it ends."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubench.datasets.facts import DataFacts
from gpubench.environment import Machine, environment_facts, machine_key
from gpubench.errors import GpubenchError
from gpubench.experiment.plan import Plan, Room, Unit, chain_key, device_of, skip_reason
from gpubench.launch.attempt import Attempt, attempt
from gpubench.launch.attempt import Progress as TrialProgress
from gpubench.launch.client import Launcher
from gpubench.monitor.nvml import Nvml
from gpubench.monitor.samples import SAMPLE_HEADER
from gpubench.monitor.watcher import Watcher
from gpubench.report.live import View
from gpubench.result import Record
from gpubench.runner import resolve as resolving
from gpubench.runner.estimate import Estimate, estimates
from gpubench.runner.folders import Folders, Wanted
from gpubench.runner.looking import progress_of
from gpubench.runner.recording import Known, Tried, record_of, step_samples
from gpubench.runner.resolve import Resolved
from gpubench.runner.sources import Disk
from gpubench.runner.state import Planned, oom_chains, survey
from gpubench.runner.tables import row_of, write_tables
from gpubench.store import Results, newest

TABLES_PERIOD_S = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How to run a plan."""

    retry: frozenset[str] = frozenset()
    fresh: bool = False


@dataclass(kw_only=True, slots=True)
class Summary:
    """What a sweep did."""

    ran: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    """Failed or timed out, now or before."""
    interrupted: bool = False
    stale: int = 0


@dataclass(kw_only=True, slots=True)
class Sweep:
    """One plan, one machine, one results folder."""

    plan: Plan
    results: Results
    machine: Machine
    nvml: Nvml | None
    sources: Disk
    settings: Settings = field(default_factory=Settings)
    records: list[Record] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    folders: Folders = field(default_factory=Folders)
    _gmacs: dict[tuple[Any, ...], float] = field(default_factory=dict)
    idle_power_w: dict[str, float] = field(default_factory=dict)
    """GPU uuid -> watts before the sweep, where the GPU was idle and tells."""
    no_idle_power: dict[str, str] = field(default_factory=dict)
    """GPU uuid -> why it is not among them."""
    idle_readings: dict[str, tuple[int, int]] = field(default_factory=dict)
    """GPU uuid -> readings behind its idle power, and those that failed."""
    skips: dict[str, str] = field(default_factory=dict)
    """Trial id -> why this sweep skipped it."""
    _tables_due: float = 0.0
    _scratch: Path | None = None

    def __post_init__(self) -> None:
        self.environment = environment_facts(self.machine)

    # ---- before ----

    def load(self) -> None:
        """Reads what the results folder holds already."""
        self.records = self.results.records()

    def chosen(self) -> dict[str, Record]:
        """Trial id -> the attempt that counts on this machine."""
        here = newest(self.records)
        return {
            unit.trial_id: here[key]
            for unit in self.plan.units
            if (key := (unit.trial_id, self._machine_key(unit))) in here
        }

    def survey(self) -> list[Planned]:
        """What is to become of each trial of the plan."""
        return survey(
            self.plan,
            self.chosen(),
            oom=self._oom_here(),
            room=Room(len(self.machine.gpus), self.machine.cpu_count),
            environment=self.environment,
            retry=self.settings.retry,
            fresh=self.settings.fresh,
        )

    def _oom_here(self) -> dict[tuple[Any, ...], int]:
        keys = {self._machine_key(unit) for unit in self.plan.units}
        return oom_chains(r for (_, machine), r in newest(self.records).items() if machine in keys)

    def resolve(self, unit: Unit) -> Resolved:
        return resolving.resolve(unit, self.machine, self.facts(unit), self.plan.device)

    def facts(self, unit: Unit) -> DataFacts:
        return self.sources.data(unit.trial.data)

    def wanted(self, unit: Unit) -> Wanted:
        """The images that a trial reads."""
        return unit.trial.data, unit.variant.files, self.resolve(unit).input_size

    def estimates(self, units: Sequence[Unit]) -> list[Estimate]:
        """How long each should take."""
        rows = [row_of(record) for record in newest(self.records).values() if record.status == "ok"]
        return estimates([(unit.trial, self.resolve(unit)) for unit in units], rows)

    # ---- the sweep ----

    def run(
        self,
        launcher: Launcher,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Record], None],
    ) -> Summary:
        """Runs what is to be run. Every attempt is stored before the next one begins."""
        try:
            summary = self._run(launcher, view, should_stop, emit)
        except BaseException:
            with contextlib.suppress(GpubenchError):  # the first error is the one to tell
                self.write_tables()
            raise
        self.write_tables()
        return summary

    def abandon(self) -> None:
        """What a process that is about to end at once still clears away."""
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
        self.results.release()

    def _run(
        self,
        launcher: Launcher,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Record], None],
    ) -> Summary:
        planned = self.survey()
        summary = Summary()
        began = time.monotonic()
        oom: dict[tuple[Any, ...], int] = {}
        for number, item in enumerate(planned, start=1):
            unit = item.unit
            state, why = item.state, item.why
            if state == "run" and "oom" not in self.settings.retry:
                # Looked at again: a smaller batch may have run out of memory since.
                since = skip_reason(unit, oom, None, self.plan.device)
                state, why = ("skip", since) if since else (state, why)
            if state == "done":
                summary.reused += 1
            elif state == "skip":
                summary.skipped += 1
                self.skips[unit.trial_id] = why
                view.say(f"[{number}/{len(planned)}] {self.label(unit)}  skipped: {why}")
            elif state == "failed":
                summary.failed += 1
            elif should_stop():
                summary.interrupted = True
                break
            else:
                view.started(number, len(planned), self.label(unit))
                look = self._look(view, number, planned, began)
                record = self.run_one(unit, launcher, should_stop, look)
                self.records.append(record)
                if record.status == "oom":
                    chain = chain_key(unit.trial, unit.variant.definition())
                    oom[chain] = min(unit.trial.batch_size, oom.get(chain, unit.trial.batch_size))
                emit(record)
                view.finished(number, len(planned), self.label(unit), row_of(record))
                summary.ran += 1
                summary.failed += record.status in ("failed", "timeout")
                self._write_tables_sometimes(view)
                if record.status == "interrupted":
                    summary.interrupted = True
                    break
        summary.stale = sum(item.stale for item in planned if item.state == "done")
        return summary

    def run_one(
        self,
        unit: Unit,
        launcher: Launcher,
        should_stop: Callable[[], bool],
        look: Callable[[Watcher, TrialProgress], None],
    ) -> Record:
        """One attempt at one trial, stored."""
        number = self.results.next_attempt(unit.trial_id)
        log = self.results.log(unit.trial_id, number)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        started_at = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        resolved = self.resolve(unit)
        watcher = Watcher(self.nvml, self.machine, resolved.gpu_uuids, resolved.cpu_ids)
        steps: list[tuple[Any, ...]] = []
        with tempfile.TemporaryDirectory(prefix="gpubench-") as scratch:
            self._scratch = Path(scratch)
            try:
                order = self._order(unit, resolved, log, Path(scratch))
            except GpubenchError as error:  # its images can't be had; other trials may use others
                now = time.monotonic()
                done = Attempt(forced=("failed", str(error)), launched=now, finished=now)
            else:
                done = attempt(
                    order,
                    launcher,
                    watcher,
                    timeout_s=self.plan.experiment.timeout_s,
                    should_stop=lambda: self._beat(should_stop),
                    look=lambda progress: look(watcher, progress),
                )
            steps = step_samples(Path(scratch) / "steps.json", done.launched)
        record = record_of(
            Tried(
                unit=unit,
                resolved=resolved,
                facts=self.facts(unit),
                machine_key=self._machine_key(unit),
                number=number,
                started_at=started_at,
                done=done,
                log=log,
            ),
            self._known(),
            watcher,
        )
        if record.result.get("gmacs_per_image") is not None:
            self._gmacs[_model_key(unit, resolved)] = record.result["gmacs_per_image"]
        self.results.save(record, [*watcher.samples(), *steps], SAMPLE_HEADER)
        return record

    def _beat(self, should_stop: Callable[[], bool]) -> bool:
        self.results.beat()
        return should_stop()

    def _order(self, unit: Unit, resolved: Resolved, log: Path, scratch: Path) -> dict[str, Any]:
        facts = self.facts(unit)
        root = self.folders.ready(self.wanted(unit))
        return resolving.spec(
            unit,
            resolved,
            data=resolving.data_spec(unit, resolved, facts, root),
            log=log.absolute(),
            scratch=scratch,
            known_gmacs=self._gmacs.get(_model_key(unit, resolved)),
        )

    def _known(self) -> Known:
        return Known(
            experiment=self.plan.experiment.name,
            machine=self.machine,
            environment=self.environment,
            idle_power_w=self.idle_power_w,
            no_idle_power=self.no_idle_power,
            idle_readings=self.idle_readings,
        )

    # ---- after ----

    def _write_tables_sometimes(self, view: View) -> None:
        """On the way a table that can't be written stops nothing: the records are there."""
        if time.monotonic() >= self._tables_due:
            self._tables_due = time.monotonic() + TABLES_PERIOD_S
            try:
                self.write_tables()
            except GpubenchError as error:
                view.say(f"tables: {error}")

    def write_tables(self) -> None:
        """All CSVs and table.md, from what is held here."""
        write_tables(self.results, self.records, self.skips)

    # ---- helpers ----

    def label(self, unit: Unit) -> str:
        """The trial by its varied fields, or by the usual ones where nothing varies."""
        fields = [name for axis in self.plan.experiment.varied for name in axis] or ["model", "batch_size"]
        values = vars(unit.trial)
        named = [f for f in fields if f in values] + (["repeat"] if self.plan.experiment.repeats > 1 else [])
        if "batch_per_gpu" in fields:
            named.append("batch_size")
        return " ".join(f"{name}={_short(values[name])}" for name in named)

    def _machine_key(self, unit: Unit) -> str:
        device = device_of(unit.trial, self.plan.device)
        # Without a GPU no record of a GPU trial is this machine's; such trials are skipped.
        return machine_key(self.machine, device) if device == "cpu" or self.machine.gpus else ""

    def _look(
        self, view: View, number: int, planned: Sequence[Planned], began: float
    ) -> Callable[[Watcher, TrialProgress], None]:
        unit = planned[number - 1].unit
        rest = [item.unit for item in planned[number - 1 :] if item.state == "run"]
        seconds = [e.seconds for e in self.estimates(rest)]
        trial_began = time.monotonic()

        def look(watcher: Watcher, progress: TrialProgress) -> None:
            now = time.monotonic()
            view.update(
                progress_of(
                    unit,
                    progress,
                    watcher.now(),
                    label=self.label(unit),
                    done=number - 1,
                    total=len(planned),
                    spent_s=now - trial_began,
                    elapsed_s=now - began,
                    estimated_s=seconds,
                )
            )

        return look


def _model_key(unit: Unit, resolved: Resolved) -> tuple[Any, ...]:
    return unit.trial.model, unit.trial.width, resolved.input_size, resolved.num_classes


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(str(v) for v in value)
    return "auto" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
