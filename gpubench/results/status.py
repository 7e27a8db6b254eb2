"""How far the sweeps of a results folder are, from what lies in it alone. Claims nothing, writes nothing.

It asks no machine either, so it can't know whether a sweep would measure something again because it has other CPUs now,
nor how many rounds a certainty or a budget still wants.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gpubench.plan.plan import Plan, Unit
from gpubench.plan.skips import Room
from gpubench.plan.state import Planned, further, out_of_memory, survey, unit_ending
from gpubench.results.counting import newest, newest_of_rounds, without_first_round
from gpubench.results.file_names import AttemptFile, parse_name
from gpubench.results.plans import StoredPlan, stored_plans
from gpubench.results.store import Results
from gpubench.schema.cell import cell
from gpubench.schema.record import Record, ending
from gpubench.store.work_claims import Worker, list_workers

State = Literal["complete", "failed", "running", "unfinished", "unknown"]
"""`failed`: nothing is left, and something ended badly. `unfinished`: something is left, and nobody runs it.
`unknown`: nothing that is known is left, but a plan can't be read, or there is none."""
ORDER = ("ok", "oom", "failed", "timeout", "skipped", "interrupted", "missing")


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One round of a folder's plans."""

    number: int
    done: int
    failed: int
    left: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Bad:
    """A unit that ended badly."""

    label: str
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Now:
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
    rounds: list[Round] = field(default_factory=list)
    is_open: bool = False
    """Whether a certainty or a budget ends the rounds, so that nobody knows how many are left."""
    bad: list[Bad] = field(default_factory=list)
    firstless: int = 0
    """Measurements of further rounds that don't count, of planned trials and groups whose first round is not there."""
    parts: list[str] = field(default_factory=list)
    """The parts that it is asked for, of plans of which it is not asked for all: `2/8`, each once."""
    unread_plans: int = 0
    """Plans that can't be read: what they ask for is not known."""
    has_plan: bool = True
    """Whether a plan is stored, be it one that can't be read."""
    workers: list[Worker] = field(default_factory=list)
    """Who is at work in it, or has died over it."""
    now: list[Now] = field(default_factory=list)
    left_s: float | None = None
    """Seconds that what is left should take, by what the others took; None: not known."""
    last_start: str = ""
    """When the last trial began, local time."""

    @property
    def left(self) -> int:
        """Measurements that are left, of trials and groups, in all rounds."""
        return sum(one.left for one in self.rounds)

    @property
    def all(self) -> int:
        """Measurements in all rounds."""
        return sum(one.left + one.done + one.failed for one in self.rounds)

    @property
    def state(self) -> State:
        if any(worker.is_alive for worker in self.workers):
            return "running"
        if self.left:
            return "unfinished"
        if self.unread_plans or not self.has_plan:
            return "unknown"
        return "failed" if self.bad else "complete"


def status_of(results: Results, tell: Callable[[str], None]) -> FolderStatus:
    """How far a folder is. `tell`: of records and plans that can't be read."""
    records = results.records(tell)
    plans, problems = stored_plans(results, records)
    for line in problems:
        tell(line)
    return status_by(results, records, plans, len(problems))


def status_by(
    results: Results, records: Sequence[Record], plans: Sequence[StoredPlan], unread_plans: int = 0
) -> FolderStatus:
    """How far a folder is of which these can be read: all records, and the plans, oldest first."""
    found = FolderStatus(
        folder=results.folder,
        workers=list_workers(results.folder),
        unread_plans=unread_plans,
        has_plan=bool(plans or unread_plans),
        last_start=max((record.started_at for record in records), default=""),
    )
    rounds = {
        number: {trial_id: record for (trial_id, _), record in sorted(here.items(), key=_began)}
        for number, here in newest_of_rounds(records).items()
    }
    firstless = without_first_round(records)
    turns: dict[int, list[Planned]] = {}
    labels: dict[str, str] = {}
    for stored, units in _current(plans):
        plan = stored.plan
        asked = plan.experiment.rounds
        found.parts += [text for part in stored.parts if (text := str(part)) not in found.parts]
        found.is_open = found.is_open or asked.is_open
        labels |= {unit.unit_id: _label(unit, plan) for unit in units}
        surveyed = _surveyed(stored, records, rounds.get(1, {}))
        first = [item for item in surveyed if item.unit.unit_id in {unit.unit_id for unit in units}]
        turns.setdefault(1, []).extend(first)
        to_come = [item for item in first if item.state == "run"]
        last = max(rounds, default=1) if asked.is_open else _most(stored, rounds)
        for number in range(2, last + 1):
            later = further(units, number, rounds)
            if asked.is_open:  # whether what lacks a turn in it would get one, only the sweep knows
                begun = rounds.get(number, {})
                later = [i for i in later if i.state != "run" or i.unit.jobs[0].trial_id in begun]
            else:
                later += to_come
            turns.setdefault(number, []).extend(later)
    found.rounds = [_round(number, items) for number, items in sorted(turns.items())]
    for item in turns.get(1, ()):
        found.counts[_ended(item, rounds.get(1, {}))] += 1
        found.firstless += firstless.get(item.unit.jobs[0].trial_id, 0)
    found.bad = [
        Bad(label=labels[item.unit.unit_id], status=item.ended, reason=item.why)
        for items in turns.values()
        for item in items
        if item.state == "failed"
    ]
    _of_no_plan(found, records, plans)
    found.left_s = _left_s(turns, rounds)
    if any(worker.is_alive for worker in found.workers):
        found.now = _running(results, turns, records, labels, found.workers)
    return found


def _most(stored: StoredPlan, rounds: Mapping[int, object]) -> int:
    """The rounds of a plan. One of a version that did not say so is of one that knew none, unless there are some."""
    asked = stored.plan.experiment.rounds
    if stored.rounds is not None or asked.number is not None or max(rounds, default=1) > 1:
        return stored.rounds or asked.most
    return 1


def _began(item: tuple[object, Record]) -> str:
    return item[1].started_at


def _current(plans: Sequence[StoredPlan]) -> list[tuple[StoredPlan, list[Unit]]]:
    """Each plan with the units that it asks for, without those that a later one asks for, maybe under other ids (an
    edited model)."""
    owner: dict[object, int] = {}
    for place, stored in enumerate(plans):
        name = stored.plan.experiment.name
        for unit in stored.asked.units:
            owner[name, unit.group, *(job.trial for job in unit.jobs)] = place
            owner[unit.unit_id] = place
    found = []
    for place, stored in enumerate(plans):
        name = stored.plan.experiment.name
        mine = [
            unit
            for unit in stored.asked.units
            if owner[name, unit.group, *(job.trial for job in unit.jobs)] == place
            and owner[unit.unit_id] == place
        ]
        found.append((stored, mine))
    return found


def _surveyed(stored: StoredPlan, records: Sequence[Record], chosen: Mapping[str, Record]) -> list[Planned]:
    room = stored.room
    if room is not None:  # since the plan was stored, the folder may have been taken to a larger machine
        most = max((int(one.environment.get("gpu_count") or 0) for one in records), default=0)
        room = Room(max(room.gpus, most), room.cpus)
    oom = out_of_memory(newest(records).values())
    return survey(stored.plan, chosen, oom=oom, room=room, environment={})


def _round(number: int, items: Iterable[Planned]) -> Round:
    counts = Counter(item.state for item in items)
    return Round(number=number, done=counts["done"], failed=counts["failed"], left=counts["run"])


def _ended(item: Planned, first: Mapping[str, Record]) -> str:
    """How a unit ended in the first round."""
    if item.state == "skip":
        return "skipped"
    if item.state == "done":
        return item.why
    if item.state == "failed":
        return item.ended
    return unit_ending(item.unit, first)


def _of_no_plan(found: FolderStatus, records: Sequence[Record], plans: Sequence[StoredPlan]) -> None:
    """What is stored of trials that no plan lists, as in folders of earlier versions and where a plan can't be read.

    What a plan lists under another id (an edited model) was measured anew, and is left out. Nobody waits for more of
    the others, but of one that was interrupted where its plan is missing or can't be read.
    """
    jobs = [
        (one.plan.experiment.name, unit, job)
        for one in plans
        for unit in one.asked.units
        for job in unit.jobs
    ]
    known = {job.trial_id for _, _, job in jobs}
    asked = {_asked(name, unit.group, job.trial.asdict()) for name, unit, job in jobs}
    others: dict[str, list[Record]] = {}
    for record in newest(records).values():
        is_planned = record.trial_id in known
        if not is_planned and _asked(record.experiment, record.group, vars(record.trial)) not in asked:
            others.setdefault(record.group_id or record.trial_id, []).append(record)
    if not others:
        return
    counts: Counter[str] = Counter()
    for attempts in others.values():
        status = ending([one.status for one in attempts])
        counts[status] += 1
        if status in ("failed", "timeout"):
            worst = next(one for one in attempts if one.status == status)
            found.bad.append(Bad(label=attempts[0].trial_id, status=status, reason=worst.reason))
    found.counts += counts
    first = found.rounds[0] if found.rounds else Round(number=1, done=0, failed=0, left=0)
    goes_on = not plans or found.unread_plans
    made = Round(
        number=1,
        done=first.done + counts["ok"] + counts["oom"],
        failed=first.failed + counts["failed"] + counts["timeout"],
        left=first.left + (counts["interrupted"] if goes_on else 0),
    )
    found.rounds = [made, *found.rounds[1:]]


def _asked(experiment: str, group: str | None, trial: Mapping[str, object]) -> str:
    """What tells a trial of an experiment whatever its id, as text."""
    return json.dumps([experiment, group, trial], sort_keys=True, default=str)


def _left_s(
    turns: Mapping[int, Sequence[Planned]], rounds: Mapping[int, Mapping[str, Record]]
) -> float | None:
    """What is left, by how long the same took in another round, else by the mean of what has run."""
    took = {
        number: {trial_id: s for trial_id, one in here.items() if (s := _took(one)) is not None}
        for number, here in rounds.items()
    }
    known = [s for here in took.values() for s in here.values()]
    total = 0.0
    for items in turns.values():
        for item in items:
            if item.state != "run":
                continue
            own = item.unit.jobs[0].trial_id
            again = [here[own] for here in took.values() if own in here]
            if not known:
                return None
            total += again[-1] if again else statistics.fmean(known)
    return total


def _took(record: Record) -> float | None:
    if record.status != "ok" or record.span is None:
        return None
    return record.span.finished - record.span.launched


def _running(
    results: Results,
    turns: Mapping[int, Sequence[Planned]],
    records: Sequence[Record],
    labels: Mapping[str, str],
    workers: Sequence[Worker],
) -> list[Now]:
    """Trials whose log is there and whose record is not yet, of the attempt begun last."""
    stored = {AttemptFile(record.trial_id, record.attempt_name) for record in records}
    who = {worker.unit_id: worker.who for worker in workers}
    found: list[tuple[float, Now]] = []
    seen: set[str] = set()
    for item in (item for items in turns.values() for item in items if item.state == "run"):
        for job in item.unit.jobs:
            logs = [log for log in results.logs(job.trial_id) if parse_name(log) not in stored]
            if job.trial_id in seen or not logs:
                continue
            seen.add(job.trial_id)
            try:
                touched, log = max((log.stat().st_mtime, log) for log in logs)
            except OSError:
                continue
            own = item.unit.unit_id
            now = Now(trial_id=job.trial_id, label=labels[own], log=log, who=who.get(own, ""))
            found.append((touched, now))
    return [now for _, now in sorted(found, key=lambda one: one[0])]


def _label(unit: Unit, plan: Plan) -> str:
    """A unit's name among its neighbours."""
    if unit.group:
        return unit.group
    trial = unit.jobs[0].trial
    fields = dict.fromkeys(name for axis in plan.experiment.varied for name in axis)
    told = [f"{name}={cell(value)}" for name in fields if (value := getattr(trial, name, None)) is not None]
    told += [f"repeat={trial.repeat}"] if plan.experiment.repeats > 1 else []
    return " ".join(told) or f"{trial.model} {trial.batch_size}"
