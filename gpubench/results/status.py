"""How far the sweeps of a results folder are, from what lies in it alone. Claims nothing, writes nothing.

It can't know whether a sweep would measure something again because it has other CPUs now, nor how many rounds a
certainty or a budget still wants.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from gpubench.plan.plan import Unit
from gpubench.plan.skips import NodeCapacity
from gpubench.plan.state import (
    PlannedUnit,
    collect_out_of_memory,
    find_unit_ending,
    list_units_by_round,
    plan_first_round,
)
from gpubench.plan.unit_label import format_unit_label
from gpubench.results.counting import count_without_first_round, select_by_round, select_first_round
from gpubench.results.file_names import AttemptFile, parse_file_name
from gpubench.results.plans import StoredPlan, read_stored_plans
from gpubench.results.store import Results
from gpubench.schema.record import Record, decide_group_ending
from gpubench.store.work_claims import Worker, list_workers

State = Literal["complete", "failed", "running", "unfinished", "unknown"]
"""`failed`: nothing is left, and something ended badly. `unfinished`: something is left, and nobody runs it.
`unknown`: nothing that is known is left, but a plan can't be read, or there is none."""
ORDER = ("ok", "oom", "failed", "timeout", "skipped", "interrupted", "missing")


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundStatus:
    """How many measurements of one round are done, have failed, and are left."""

    number: int
    done: int
    failed: int
    remaining: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A unit that ended badly."""

    label: str
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningTrial:
    """A trial that runs now."""

    trial_id: str
    label: str
    log: Path
    who: str = ""
    """Which sweep is at it; empty where that is not known."""


@dataclass(kw_only=True, slots=True)
class FolderStatus:
    """How far a folder is."""

    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Endings of the first round, of trials and groups as a sweep counts them."""
    rounds: list[RoundStatus] = field(default_factory=list)
    is_open_ended: bool = False
    """Whether a certainty or a budget ends the rounds, so that nobody knows how many are left."""
    stale: int = 0
    """Trials and groups that are done, and were measured under other versions than a sweep would have now: it leaves
    them as they are, and out of further rounds."""
    failures: list[Failure] = field(default_factory=list)
    without_first_round: int = 0
    """Measurements of further rounds that don't count, of planned trials and groups whose first round is not there."""
    parts: list[str] = field(default_factory=list)
    """The parts that it is asked for, of plans of which it is not asked for all: `2/8`, each once."""
    unread_plans: int = 0
    """Plans that can't be read: what they ask for is not known."""
    has_plan: bool = True
    """Whether a plan is stored, be it one that can't be read."""
    workers: list[Worker] = field(default_factory=list)
    """Who is at work in it, or has died over it."""
    running: list[RunningTrial] = field(default_factory=list)
    remaining_s: float | None = None
    """Seconds that what is left should take, by what the others took; None: not known."""
    last_start: str = ""
    """When the last trial began, local time."""

    @property
    def remaining(self) -> int:
        """Measurements that are left, of trials and groups, in all rounds."""
        return sum(part.remaining for part in self.rounds)

    @property
    def all(self) -> int:
        """Measurements in all rounds."""
        return sum(part.remaining + part.done + part.failed for part in self.rounds)

    @property
    def state(self) -> State:
        if any(worker.is_alive for worker in self.workers):
            return "running"
        if self.remaining:
            return "unfinished"
        if self.unread_plans or not self.has_plan:
            return "unknown"
        return "failed" if self.failures else "complete"


def read_status(
    results: Results, tell: Callable[[str], None], versions: Mapping[str, Any] = MappingProxyType({})
) -> FolderStatus:
    """How far a folder is. `tell`: of records and plans that can't be read. `versions`: of what a sweep would run on,
    as far as they are known."""
    records = results.read_records(tell)
    plans, problems = read_stored_plans(results, records)
    for line in problems:
        tell(line)
    return make_status(results, records, plans, len(problems), versions)


def make_status(
    results: Results,
    records: Sequence[Record],
    plans: Sequence[StoredPlan],
    unread_plans: int = 0,
    versions: Mapping[str, Any] = MappingProxyType({}),
) -> FolderStatus:
    """How far a folder is of which these can be read: all records, and the plans, oldest first."""
    status = FolderStatus(
        folder=results.folder,
        workers=list_workers(results.folder),
        unread_plans=unread_plans,
        has_plan=bool(plans or unread_plans),
        last_start=max((record.started_at for record in records), default=""),
    )
    stored = {
        number: {
            trial_id: record
            for (trial_id, _), record in sorted(counted.items(), key=lambda item: item[1].started_at)
        }
        for number, counted in select_by_round(records).items()
    }
    rounds: dict[int, list[PlannedUnit]] = {}
    labels: dict[str, str] = {}
    for plan, units in _assign_units(plans):
        rules = plan.plan.experiment.rounds
        status.parts += [text for part in plan.facts.parts if (text := str(part)) not in status.parts]
        status.is_open_ended = status.is_open_ended or rules.is_open_ended
        labels |= {unit.unit_id: format_unit_label(plan.plan, unit) for unit in units}
        ids = {unit.unit_id for unit in units}
        first = [
            item
            for item in _plan_remaining_units(plan, records, stored, versions)
            if item.unit.unit_id in ids
        ]
        most = max(stored, default=1) if rules.is_open_ended else _find_most_rounds(plan, stored)
        for number, items in list_units_by_round(
            first, stored, most=most, is_open_ended=rules.is_open_ended
        ).items():
            rounds.setdefault(number, []).extend(items)
    for number, items in sorted(rounds.items()):
        n = Counter(item.state for item in items)
        status.rounds.append(
            RoundStatus(number=number, done=n["done"], failed=n["failed"], remaining=n["run"])
        )
    first_round, without = rounds.get(1, []), count_without_first_round(records)
    for item in first_round:
        endings = {"skip": "skipped", "done": item.why, "failed": item.ended}
        status.counts[endings.get(item.state) or find_unit_ending(item.unit, stored.get(1, {}))] += 1
    status.stale = sum(item.stale for item in first_round if item.state == "done")
    status.without_first_round = sum(without.get(item.unit.jobs[0].trial_id, 0) for item in first_round)
    status.failures = [
        Failure(label=labels[item.unit.unit_id], status=item.ended, reason=item.why)
        for items in rounds.values()
        for item in items
        if item.state == "failed"
    ]
    _add_unplanned(status, records, plans)
    to_run = [item for items in rounds.values() for item in items if item.state == "run"]
    status.remaining_s = _estimate_s(to_run, stored)
    if any(worker.is_alive for worker in status.workers):
        status.running = _list_running(results, to_run, records, labels, status.workers)
    return status


def _find_most_rounds(plan: StoredPlan, stored: Mapping[int, object]) -> int:
    """The rounds of a plan. One of a version that did not say so is of one that knew none, unless there are some."""
    rules = plan.plan.experiment.rounds
    if plan.facts.rounds is not None or rules.number is not None or max(stored, default=1) > 1:
        return plan.facts.rounds or rules.most
    return 1


def _assign_units(plans: Sequence[StoredPlan]) -> list[tuple[StoredPlan, list[Unit]]]:
    """Each plan with the units that it asks for, without those that a later one asks for, maybe under other ids (an
    edited model)."""

    def list_keys(plan: StoredPlan, unit: Unit) -> tuple[object, ...]:
        return unit.unit_id, (plan.plan.experiment.name, unit.group, *(job.trial for job in unit.jobs))

    last = {key: plan for plan in plans for unit in plan.share.units for key in list_keys(plan, unit)}
    return [
        (plan, [unit for unit in plan.share.units if all(last[key] is plan for key in list_keys(plan, unit))])
        for plan in plans
    ]


def _plan_remaining_units(
    plan: StoredPlan,
    records: Sequence[Record],
    stored: Mapping[int, Mapping[str, Record]],
    versions: Mapping[str, Any],
) -> list[PlannedUnit]:
    room = plan.room
    if room is not None:  # since the plan was stored, the folder may have been taken to a larger machine
        most = max((int(record.environment.get("gpu_count") or 0) for record in records), default=0)
        room = NodeCapacity(max(room.gpus, most), room.cpus)
    oom = collect_out_of_memory(select_first_round(records).values())
    return plan_first_round(plan.plan, stored.get(1, {}), oom=oom, room=room, environment=versions)


def _add_unplanned(status: FolderStatus, records: Sequence[Record], plans: Sequence[StoredPlan]) -> None:
    """Adds what is stored of trials that no plan lists, as in folders of earlier versions and where a plan can't be
    read.

    What a plan lists under another id (an edited model) was measured anew, and is left out. Nobody waits for more of
    the others, but of one that was interrupted where its plan is missing or can't be read.
    """
    jobs = [
        (plan.plan.experiment.name, unit.group, job)
        for plan in plans
        for unit in plan.share.units
        for job in unit.jobs
    ]
    planned_ids = {job.trial_id for *_, job in jobs}
    planned = {_dump_trial(experiment, group, job.trial.asdict()) for experiment, group, job in jobs}
    units: dict[str, list[Record]] = {}
    for record in select_first_round(records).values():
        key = _dump_trial(record.experiment, record.group, record.trial)
        if record.trial_id not in planned_ids and key not in planned:
            units.setdefault(record.group_id or record.trial_id, []).append(record)
    if not units:
        return
    counts: Counter[str] = Counter()
    for attempts in units.values():
        name = decide_group_ending([record.status for record in attempts])
        counts[name] += 1
        if name in ("failed", "timeout"):
            reason = next(record.reason for record in attempts if record.status == name)
            status.failures.append(Failure(label=attempts[0].trial_id, status=name, reason=reason))
    status.counts += counts
    first = status.rounds[0] if status.rounds else RoundStatus(number=1, done=0, failed=0, remaining=0)
    is_incomplete = not plans or status.unread_plans
    with_these = RoundStatus(
        number=1,
        done=first.done + counts["ok"] + counts["oom"],
        failed=first.failed + counts["failed"] + counts["timeout"],
        remaining=first.remaining + (counts["interrupted"] if is_incomplete else 0),
    )
    status.rounds = [with_these, *status.rounds[1:]]


def _dump_trial(experiment: str, group: str | None, trial: Mapping[str, object]) -> str:
    """What tells a trial of an experiment whatever its id, as text."""
    return json.dumps([experiment, group, trial], sort_keys=True, default=str)


def _estimate_s(to_run: Sequence[PlannedUnit], stored: Mapping[int, Mapping[str, Record]]) -> float | None:
    """Seconds that these take: as long as the same took in another round, else the mean of what has run."""
    took_s: dict[str, list[float]] = {}
    for counted in stored.values():
        for trial_id, record in counted.items():
            if record.status == "ok" and record.span is not None:
                took_s.setdefault(trial_id, []).append(record.span.finished - record.span.launched)
    known = [seconds for times in took_s.values() for seconds in times]
    if not known:
        return None if to_run else 0.0
    mean_s = [statistics.fmean(known)]
    return sum((took_s.get(item.unit.jobs[0].trial_id, mean_s)[-1] for item in to_run), 0.0)


def _list_running(
    results: Results,
    to_run: Iterable[PlannedUnit],
    records: Sequence[Record],
    labels: Mapping[str, str],
    workers: Sequence[Worker],
) -> list[RunningTrial]:
    """Trials whose log is there and whose record is not yet, of the attempt begun last."""
    stored = {AttemptFile(record.trial_id, record.attempt_name) for record in records}
    who = {worker.unit_id: worker.who for worker in workers}
    trials: dict[str, tuple[float, RunningTrial]] = {}
    for item in to_run:
        unit_id = item.unit.unit_id
        for trial_id in (job.trial_id for job in item.unit.jobs):
            logs = [log for log in results.list_logs(trial_id) if parse_file_name(log) not in stored]
            if trial_id in trials or not logs:
                continue
            try:
                touched, log = max((log.stat().st_mtime, log) for log in logs)
            except OSError:
                continue
            trial = RunningTrial(trial_id=trial_id, label=labels[unit_id], log=log, who=who.get(unit_id, ""))
            trials[trial_id] = touched, trial
    return [trial for _, trial in sorted(trials.values(), key=lambda pair: pair[0])]
