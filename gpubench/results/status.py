"""How far the sweeps of a results folder are, from what lies in it alone. Claims nothing, writes nothing.

It can't know whether a sweep would measure something again because it has other CPUs now, nor how many rounds a
certainty or a budget still wants.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from gpubench.plan.plan import Unit, format_unit_label
from gpubench.plan.state import (
    State,
    collect_out_of_memory,
    find_unit_ending,
    list_units_by_round,
    plan_first_round,
)
from gpubench.results.counting import (
    count_attempts_without_first_round,
    find_unit_id,
    select_counting_by_round,
    select_counting_of_first_round,
)
from gpubench.results.file_names import AttemptFile, parse_file_name
from gpubench.results.plans import StoredPlan
from gpubench.results.store import Results
from gpubench.schema.record import Record, decide_group_ending
from gpubench.store.work_claims import Worker, list_workers

FolderState = Literal["complete", "failed", "running", "unfinished", "unknown"]
"""`failed`: nothing is left, and something ended badly. `unfinished`: something is left, and nobody runs it.
`unknown`: nothing that is known is left, but a plan can't be read, or there is none."""
ENDINGS = ("ok", "oom", "failed", "timeout", "skipped", "interrupted", "missing")


class RoundStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How many measurements of one round are done, have failed, and are left."""

    number: int = msgspec.field(name="round")
    done: int
    failed: int
    remaining: int = msgspec.field(name="left")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A unit that ended badly."""

    label: str
    status: str
    reason: str


class RunningTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial that runs now."""

    trial_id: str
    label: str
    log: Path
    who: str | None
    """Which sweep is at it; None where that is not known."""


class FolderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a folder is; by these names, in this order, it is `gpubench status --json`."""

    folder: Path
    state: FolderState
    counts: dict[str, int]
    """Endings of the first round, of trials and groups as a sweep counts them."""
    rounds: list[RoundStatus]
    is_open_ended: bool = msgspec.field(name="rounds_open")
    """Whether a certainty or a budget ends the rounds, so that nobody knows how many are left."""
    remaining: int = msgspec.field(name="left")
    """Measurements that are left, of trials and groups, in all rounds."""
    stale: int
    """Trials and groups that are done, and were measured under other versions than a sweep would have now: it leaves
    them as they are, and out of further rounds."""
    remaining_s: float | None = msgspec.field(name="left_s")
    """Seconds that what is left should take, by what the others took; None: not known."""
    without_first_round: int
    """Measurements of further rounds that don't count, of planned trials and groups whose first round is not there."""
    parts: list[str]
    """The parts that it is asked for, of plans of which it is not asked for all: `2/8`, each once."""
    unread_plans: int
    """Plans that can't be read: what they ask for is not known."""
    has_plan: bool
    """Whether a plan is stored, be it one that can't be read."""
    failures: list[Failure] = msgspec.field(name="failed")
    running: list[RunningTrial]
    workers: list[Worker]
    """Who is at work in it, or has died over it."""
    last_start: str | None
    """When the last trial began, local time."""

    @property
    def all(self) -> int:
        """Measurements in all rounds."""
        return sum(part.remaining + part.done + part.failed for part in self.rounds)


@dataclass(frozen=True, kw_only=True, slots=True)
class _RoundUnit:
    """A unit in a round, and what has become of it there."""

    number: int
    unit_id: str
    trial_ids: Sequence[str]
    label: str
    state: State
    status: str
    """How it ended: one of ENDINGS."""
    reason: str = ""
    stale: bool = False


RoundRecords = Mapping[int, Mapping[str, Record]]
"""Number of a round -> trial id -> the attempt that counts in it."""


def make_status(
    results: Results,
    records: Sequence[Record],
    plans: Sequence[StoredPlan],
    unread_plans: int = 0,
    versions: Mapping[str, Any] = MappingProxyType({}),
) -> FolderStatus:
    """How far a folder is of which these can be read: all records, and the plans, oldest first.

    `versions`: of what a sweep would run on, as far as they are known.
    """
    stored = {
        number: {
            trial_id: record
            for (trial_id, _), record in sorted(counted.items(), key=lambda item: item[1].started_at)
        }
        for number, counted in select_counting_by_round(records).items()
    }
    planned = sorted(_list_planned_units(plans, records, stored, versions), key=lambda unit: unit.number)
    unplanned = list(_list_unplanned_units(plans, records, is_waited_for=not plans or bool(unread_plans)))
    units = [*planned, *unplanned]
    to_run = [unit for unit in units if unit.state == "run"]
    failures = [
        Failure(label=u.label, status=u.status, reason=u.reason) for u in units if u.state == "failed"
    ]
    first_round = [unit for unit in units if unit.number == 1]
    counts = Counter(unit.status for unit in first_round)
    by_state = Counter((unit.number, unit.state) for unit in units)
    without = count_attempts_without_first_round(records)
    workers = list_workers(results.folder)
    is_running = any(worker.is_alive for worker in workers)
    has_plan = bool(plans or unread_plans)
    state: FolderState = "failed" if failures else "complete"
    if is_running:
        state = "running"
    elif to_run:
        state = "unfinished"
    elif unread_plans or not has_plan:
        state = "unknown"
    return FolderStatus(
        folder=results.folder,
        state=state,
        counts={name: counts[name] for name in ENDINGS},
        rounds=[
            RoundStatus(
                number=n, done=by_state[n, "done"], failed=by_state[n, "failed"], remaining=by_state[n, "run"]
            )
            for n in sorted({unit.number for unit in units})
        ],
        is_open_ended=any(plan.plan.experiment.rounds.is_open_ended for plan in plans),
        remaining=len(to_run),
        stale=sum(unit.stale for unit in first_round if unit.state == "done"),
        remaining_s=_estimate_remaining_s(to_run, stored),
        without_first_round=sum(without.get(u.trial_ids[0], 0) for u in planned if u.number == 1),
        parts=list(dict.fromkeys(str(part) for plan in plans for part in plan.facts.parts)),
        unread_plans=unread_plans,
        has_plan=has_plan,
        failures=failures,
        running=_list_running_trials(results, to_run, records, workers) if is_running else [],
        workers=workers,
        last_start=max((record.started_at for record in records), default="") or None,
    )


def _list_planned_units(
    plans: Sequence[StoredPlan], records: Sequence[Record], stored: RoundRecords, versions: Mapping[str, Any]
) -> Iterator[_RoundUnit]:
    """The units of all plans in all their rounds, as far as is known."""
    oom = collect_out_of_memory(select_counting_of_first_round(records).values())
    for plan, units in _assign_units_to_latest_plan(plans):
        rules = plan.plan.experiment.rounds
        ids = {unit.unit_id for unit in units}
        first = plan_first_round(plan.plan, stored.get(1, {}), oom=oom, room=plan.room, environment=versions)
        # A plan of a version that did not say how many rounds it has is of one that knew none, unless there are some.
        last = max(stored, default=1)
        is_told = plan.facts.rounds is not None or rules.number is not None or last > 1
        most = (plan.facts.rounds or rules.most) if is_told else 1
        rounds = list_units_by_round(
            [item for item in first if item.unit.unit_id in ids],
            stored,
            most=last if rules.is_open_ended else most,
            is_open_ended=rules.is_open_ended,
        )
        for number, items in rounds.items():
            for item in items:
                endings = {"skip": "skipped", "done": item.why, "failed": item.ended}
                yield _RoundUnit(
                    number=number,
                    unit_id=item.unit.unit_id,
                    trial_ids=[job.trial_id for job in item.unit.jobs],
                    label=format_unit_label(plan.plan, item.unit),
                    state=item.state,
                    status=endings.get(item.state) or find_unit_ending(item.unit, stored.get(1, {})),
                    reason=item.why,
                    stale=item.stale,
                )


def _assign_units_to_latest_plan(plans: Sequence[StoredPlan]) -> list[tuple[StoredPlan, list[Unit]]]:
    """Each plan with the units that it asks for, without those that a later one asks for, maybe under other ids (an
    edited model)."""

    def list_keys(plan: StoredPlan, unit: Unit) -> tuple[object, ...]:
        return unit.unit_id, (plan.plan.experiment.name, unit.group, *(job.trial for job in unit.jobs))

    last = {key: plan for plan in plans for unit in plan.share.units for key in list_keys(plan, unit)}
    return [
        (plan, [unit for unit in plan.share.units if all(last[key] is plan for key in list_keys(plan, unit))])
        for plan in plans
    ]


def _list_unplanned_units(
    plans: Sequence[StoredPlan], records: Sequence[Record], *, is_waited_for: bool
) -> Iterator[_RoundUnit]:
    """What is stored of trials that no plan lists, as in folders of earlier versions and where a plan can't be read.

    What a plan lists under another id (an edited model) was measured anew, and is left out. `is_waited_for`: whether
    what was interrupted is left to do, for its plan is missing or can't be read.
    """

    def make_key(experiment: str, group: str | None, trial: Mapping[str, object]) -> str:
        """What tells a trial of an experiment whatever its id, as text."""
        return json.dumps([experiment, group, trial], sort_keys=True, default=str)

    planned = {
        key
        for plan in plans
        for unit in plan.share.units
        for job in unit.jobs
        for key in (job.trial_id, make_key(plan.plan.experiment.name, unit.group, job.trial.asdict()))
    }
    units: dict[str, list[Record]] = {}
    for record in select_counting_of_first_round(records).values():
        if planned.isdisjoint((record.trial_id, make_key(record.experiment, record.group, record.trial))):
            units.setdefault(find_unit_id(record), []).append(record)
    states: Mapping[str, State] = {"ok": "done", "oom": "done", "failed": "failed", "timeout": "failed"}
    for unit_id, attempts in units.items():
        status = decide_group_ending([record.status for record in attempts])
        yield _RoundUnit(
            number=1,
            unit_id=unit_id,
            trial_ids=[record.trial_id for record in attempts],
            label=attempts[0].trial_id,
            state=states.get(status, "run" if is_waited_for else "skip"),
            status=status,
            reason=next((record.reason for record in attempts if record.status == status), ""),
        )


def _estimate_remaining_s(to_run: Sequence[_RoundUnit], stored: RoundRecords) -> float | None:
    """Seconds that these take: as long as the same took in another round, else the mean of what has run."""
    took_s = [
        (trial_id, record.span.finished - record.span.launched)
        for counted in stored.values()
        for trial_id, record in counted.items()
        if record.status == "ok" and record.span is not None
    ]
    if not took_s:
        return None if to_run else 0.0
    mean_s, last_s = statistics.fmean(seconds for _, seconds in took_s), dict(took_s)
    return sum((last_s.get(unit.trial_ids[0], mean_s) for unit in to_run), 0.0)


def _list_running_trials(
    results: Results, to_run: Sequence[_RoundUnit], records: Sequence[Record], workers: Sequence[Worker]
) -> list[RunningTrial]:
    """Trials whose log is there and whose record is not yet, with that of the last attempt."""
    stored = {AttemptFile(record.trial_id, record.attempt_name) for record in records}
    who = {worker.unit_id: worker.who for worker in workers}
    running: dict[str, RunningTrial] = {}
    for unit in to_run:
        for trial_id in unit.trial_ids:
            logs = {parse_file_name(log): log for log in results.list_logs(trial_id)}
            if begun := [file for file in logs if file and file not in stored]:
                log = logs[max(begun, key=lambda file: file.number)]
                running[trial_id] = RunningTrial(
                    trial_id=trial_id, label=unit.label, log=log, who=who.get(unit.unit_id)
                )
    return list(running.values())
