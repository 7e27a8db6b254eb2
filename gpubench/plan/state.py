"""What is left of a plan, in its first round and in further ones. Worked out anew at every start. Pure.

Sweeps, their preview and batch scripts ask for all of it, `gpubench status` for one round after the other, each with
the records that it knows.

Processes of one configuration differ, so each further round measures every trial once more, in processes of its own and
in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from gpubench.plan.plan import Job, Plan, Unit
from gpubench.plan.rounds import FEWEST_FOR_CERTAINTY
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity, find_skip_reason, make_memory_chain_key
from gpubench.schema.record import FINAL, Record, Status, decide_group_ending, make_attempt_reference
from gpubench.schema.trial import Trial
from gpubench.schema.validation import InvalidValueError, convert_value
from gpubench.stats.estimates import compute_interval_half_width_pct

State = Literal["done", "run", "skip", "failed"]
STALE_BY = ("torch", "torchvision", "torchcodec", "driver", "gpubench")
"""What makes a record stale when it differs."""
COMMAND_STALE_BY = ("driver", "gpubench")
"""The same of a command, which may have libraries of its own."""


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """A unit of the plan and what is to become of it."""

    unit: Unit
    state: State
    why: str = ""
    """The reason; of what is to run, why what is stored of it does not count."""
    stale: bool = False
    ended: str = ""
    """How it ended, where it failed before: `failed` or `timeout`."""
    rounds: tuple[int, ...] = ()
    """Further rounds in which it is to run. Where there are any, the first one is done."""


def collect_out_of_memory(records: Iterable[Record]) -> KnownOutOfMemory:
    """What has run out of GPU memory, whichever plan ran it. `records`: the attempts that count, of one machine."""
    oom = KnownOutOfMemory()
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.group_id is not None:
            groups.setdefault((record.group_id, record.attempt_name), []).append(record)
        elif record.status == "oom" and record.group is None:
            for chain, batch_size in list_chains_of_records([record]):
                oom.add_chain(chain, batch_size)
    for jobs in groups.values():
        if decide_group_ending([job.status for job in jobs]) == "oom" and len(
            fits := list_chains_of_records(jobs)
        ) == len(jobs):
            oom.groups.append(tuple(fits))
    return oom


def list_chains_of_records(records: Iterable[Record]) -> list[tuple[tuple[Any, ...], int]]:
    """Chain and batch size of each; of a version with other fields none, for no trial of today is in its chain."""
    chains = []
    for record in records:
        try:
            t = convert_value(record.trial, Trial)
        except InvalidValueError:
            continue
        chains.append((make_memory_chain_key(t, record.variant_definition), t.batch_size))
    return chains


def is_record_stale(record: Record, environment: Mapping[str, Any]) -> bool:
    """Whether the record was made under other versions than these, as far as they are known."""
    names = STALE_BY if record.trial.get("command") is None else COMMAND_STALE_BY
    return any(record.environment.get(name) != environment[name] for name in names if name in environment)


def is_unit_stale(unit: Unit, chosen: Mapping[str, Record], environment: Mapping[str, Any]) -> bool:
    """Whether a job of it, or a trial alone with which one is compared, was measured under other versions."""
    solos = [job.membership.solo for job in unit.jobs if job.membership]
    records = [chosen.get(job.trial_id) for job in (*unit.jobs, *solos)]
    return any(record is not None and is_record_stale(record, environment) for record in records)


def find_unit_ending(unit: Unit, chosen: Mapping[str, Record]) -> Status:
    """How a unit ended in a round; `missing` where it has not run. `chosen`: trial id -> the attempt that counts."""
    statuses = [chosen[job.trial_id].status for job in unit.jobs if job.trial_id in chosen]
    return decide_group_ending(statuses) if len(statuses) == len(unit.jobs) else "missing"


def has_outdated_comparison(unit: Unit, chosen: Mapping[str, Record]) -> bool:
    """Whether a group was compared with other rows than those that count now: with none, older or other ones.

    Only where all of those are there: else it would run again and again. `chosen`: trial id -> the attempt that counts.
    """
    trial_ids = [job.trial_id for job in unit.jobs]
    solo_ids = [job.membership.solo.trial_id for job in unit.jobs if job.membership]
    if not all(name in chosen and chosen[name].status == "ok" for name in (*trial_ids, *solo_ids)):
        return False
    then = chosen[trial_ids[0]].together.get("solos") or [None] * len(solo_ids)
    return then != [make_attempt_reference(chosen[solo_id]) for solo_id in solo_ids]


def plan_first_round(
    plan: Plan,
    chosen: Mapping[str, Record],
    *,
    oom: KnownOutOfMemory,
    room: NodeCapacity | None,
    environment: Mapping[str, Any],
    unlike: Mapping[str, str] = MappingProxyType({}),
    retry: Collection[str] = (),
    fresh: bool = False,
) -> list[PlannedUnit]:
    """One line a unit. `chosen`: trial id -> the attempt that counts on this machine.

    `unlike`: trial id -> why what is stored of it does not count (see `allowance`). `retry`: statuses to run again,
    `stale` among them. `fresh`: everything again.
    """
    if fresh or "oom" in retry:
        oom = KnownOutOfMemory()
    planned = []
    for unit in plan.units:
        item = PlannedUnit(unit, "run") if fresh else _judge_unit(unit, chosen, retry)
        stale = (
            not fresh
            and find_unit_ending(unit, chosen) != "missing"
            and is_unit_stale(unit, chosen, environment)
        )
        if item.state == "done" and ((stale and "stale" in retry) or has_outdated_comparison(unit, chosen)):
            item = PlannedUnit(unit, "run")
        if item.state != "done" and (skipped := find_skip_reason(unit, oom, room, plan.device)):
            planned.append(PlannedUnit(unit, "skip", skipped))
            continue
        if item.state == "run" and not fresh:
            item = replace(
                item, why=next((unlike[j.trial_id] for j in unit.jobs if j.trial_id in unlike), "")
            )
        planned.append(replace(item, stale=stale))
    return _skip_unneeded_solos(planned)


def _judge_unit(unit: Unit, chosen: Mapping[str, Record], retry: Collection[str]) -> PlannedUnit:
    """The unit by what is stored of it in a round, as `chosen`: done, failed before, or to run."""
    status = find_unit_ending(unit, chosen)
    if status in FINAL and status not in retry:
        return PlannedUnit(unit, "done", status)
    if status in ("failed", "timeout") and status not in retry:
        records = (chosen[job.trial_id] for job in unit.jobs)
        return PlannedUnit(
            unit, "failed", next(r.reason for r in records if r.status == status), ended=status
        )
    return PlannedUnit(unit, "run")


def _skip_unneeded_solos(planned: Sequence[PlannedUnit]) -> list[PlannedUnit]:
    """The units with their states; a trial that is there for groups alone is skipped where all of them are."""
    of_solos: dict[str, list[PlannedUnit]] = {}
    for item in planned:
        for solo_id in {job.membership.solo.trial_id for job in item.unit.jobs if job.membership}:
            of_solos.setdefault(solo_id, []).append(item)

    def judge(item: PlannedUnit) -> PlannedUnit:
        if not item.unit.baseline or item.state != "run":
            return item
        groups = of_solos[item.unit.unit_id]
        if not all(group.state == "skip" for group in groups):
            return item
        return PlannedUnit(item.unit, "skip", f"only {groups[0].unit.group} needs it: {groups[0].why}")

    return [judge(item) for item in planned]


# ---------------------------------------------------------------- further rounds


def plan_further_round(
    units: Sequence[Unit],
    number: int,
    rounds: Mapping[int, Mapping[str, Record]],
    retry: frozenset[str] = frozenset(),
) -> list[PlannedUnit]:
    """The units of round `number`, the second or a later one, in random order.

    Those whose jobs all ended ok in the first, and in no round between ended otherwise: what fails or runs out of
    memory is not tried again unasked. `rounds`: number of a round -> trial id -> the attempt that counts in it.
    """
    first, current = rounds.get(1, {}), rounds.get(number, {})
    between = [rounds[other] for other in rounds if 1 < other < number]
    planned = []
    for unit in units:
        if find_unit_ending(unit, first) != "ok" or not all(
            find_unit_ending(unit, other) in _GOES_ON for other in between
        ):
            continue
        planned.append(_judge_unit(unit, current, retry))
    return sorted(planned, key=lambda item: _draw_round_position(item.unit, number))


def plan_further_rounds(
    units: Sequence[Unit],
    rounds: Mapping[int, Mapping[str, Record]],
    *,
    most: int,
    is_open_ended: bool,
    retry: frozenset[str] = frozenset(),
) -> Iterator[tuple[int, list[PlannedUnit]]]:
    """The number of each further round, and what is to become of its units as things stand.

    `is_open_ended`: a certainty or a budget ends the rounds; those after the first of which nothing is stored would
    all be alike.
    """
    last = min(most, max(rounds, default=1) + 1) if is_open_ended else most
    for number in range(2, last + 1):
        yield number, plan_further_round(units, number, rounds, retry)


@dataclass(frozen=True, kw_only=True, slots=True)
class FurtherRounds:
    """What further rounds of a plan have before them on one machine, by what is stored of it there."""

    plan: Plan
    records: Mapping[int, Mapping[str, Record]]
    """Number of a round -> trial id -> the attempt that counts in it."""
    environment: Mapping[str, Any]
    """The versions of today."""
    epoch_times: Mapping[str, Sequence[float]]
    """Trial id -> the epoch times of all processes of its configuration, in seconds."""
    questions: Sequence[Sequence[Collection[str]]] | None = None
    """For each question that the table leaves open the ids of each row's trials; None where no question is asked."""
    retry: frozenset[str] = frozenset()

    def list_planned_by_round(self) -> Iterator[tuple[int, list[PlannedUnit]]]:
        """The number of each further round, and what is to become of its units as things stand."""
        rounds = self.plan.experiment.rounds
        return plan_further_rounds(
            self._list_unsettled_units(),
            self.records,
            most=rounds.most,
            is_open_ended=rounds.is_open_ended,
            retry=self.retry,
        )

    def list_planned(self, number: int, *, fresh: bool) -> list[PlannedUnit]:
        """What is to become of the units of one further round. `fresh`: whatever is stored of it."""
        rounds = {n: chosen for n, chosen in self.records.items() if n != number or not fresh}
        return plan_further_round(self._list_unsettled_units(), number, rounds, self.retry)

    def find_answered_round(self) -> int | None:
        """The rounds after which the table leaves no question open, where that is what ends them; None else."""
        if not self.plan.experiment.rounds.is_until_answered or self.questions != []:
            return None
        return None if self._select_measured_once_more(self._list_unsettled_units()) else max(self.records)

    def list_unsure_units(self) -> list[Unit]:
        """Those not known as well as --within asks for, though still more rounds would measure them.

        What failed in a further round is reported as such.
        """
        if self.plan.experiment.rounds.within_pct is None:
            return []
        return self._select_measured_once_more(self._list_unsettled_units())

    def _list_unsettled_units(self) -> list[Unit]:
        """The units that further rounds measure as long as there are more rounds.

        A row is of one set of versions: what the first round measured under others waits for --retry stale. Of the
        others those that are known well enough, or take part in no open question, need no further round.
        """
        first = self.records.get(1, {})
        units = [unit for unit in self.plan.units if not is_unit_stale(unit, first, self.environment)]
        within_pct = self.plan.experiment.rounds.within_pct
        if within_pct is not None:
            return [u for u in units if not all(self._is_known_within(job, within_pct) for job in u.jobs)]
        if self.questions is None:
            return units
        settled = self._find_unquestioned_unit_ids(self._select_measured_once_more(units), self.questions)
        return [unit for unit in units if unit.unit_id not in settled]

    def _find_unquestioned_unit_ids(
        self, units: Sequence[Unit], questions: Sequence[Sequence[Collection[str]]]
    ) -> set[str]:
        """Ids of those of the units that no open question is about.

        They have as many processes as others need for an answer, and no more: the budget is for questions. Nor do
        units go on for a question that can't be answered any more, because another of its trials failed in a further
        round or was measured under other versions.
        """
        trials = {job.trial_id for unit in units for job in unit.jobs}
        answerable = [rows for rows in questions if not any(trials.isdisjoint(row) for row in rows)]
        questioned = {trial_id for rows in answerable for row in rows for trial_id in row}
        return {
            unit.unit_id
            for unit in units
            if questioned.isdisjoint(job.trial_id for job in unit.jobs)
            and all(len(self.epoch_times[job.trial_id]) >= FEWEST_FOR_CERTAINTY for job in unit.jobs)
        }

    def _is_known_within(self, job: Job, within_pct: float) -> bool:
        times = self.epoch_times[job.trial_id]
        width_pct = compute_interval_half_width_pct(times)
        return len(times) >= FEWEST_FOR_CERTAINTY and width_pct is not None and width_pct <= within_pct

    def _select_measured_once_more(self, units: Sequence[Unit]) -> list[Unit]:
        """Those that still more rounds would measure: what failed in one is in no later one."""
        after_all = self.plan.experiment.rounds.most + 1
        return [item.unit for item in plan_further_round(units, after_all, self.records)]


def list_units_by_round(
    first: Sequence[PlannedUnit],
    rounds: Mapping[int, Mapping[str, Record]],
    *,
    most: int,
    is_open_ended: bool,
) -> dict[int, list[PlannedUnit]]:
    """Number of a round -> what is known to become of each unit in it. `first`: in the first one.

    What the first round has before it, further ones have, too; what was measured under other versions runs in none of
    them. Of an open round only what has begun is listed: whether it would measure the others, only the sweep knows.
    """
    to_come = [item for item in first if item.state == "run"]
    units = [item.unit for item in first if item.state == "done"]
    stale = {item.unit.unit_id for item in first if item.stale}
    planned = {1: list(first)}
    for number, items in plan_further_rounds(units, rounds, most=most, is_open_ended=is_open_ended):
        known = [item for item in items if item.state != "run" or item.unit.unit_id not in stale]
        if not is_open_ended:
            planned[number] = known + to_come
        elif number in rounds:
            begun = rounds[number]
            planned[number] = [i for i in known if i.state != "run" or i.unit.jobs[0].trial_id in begun]
    return planned


_GOES_ON = frozenset({"ok", "missing", "interrupted"})
"""How a unit may have ended in a further round and still be measured in the next."""


def _draw_round_position(unit: Unit, number: int) -> float:
    """Where in a round a unit stands: drawn for it alone, so that no unit moves when another one drops out.

    Every second further round goes the way of the one before back: so each unit is measured once before and once after
    any other, a trial alone before and after its group, and a steady drift of the machine cancels.
    """
    is_back = number % 2 == 1
    way = number - 1 if is_back else number
    drawn = random.Random(f"{unit.jobs[0].trial.seed}, round {way}, {unit.unit_id}").random()
    return -drawn if is_back else drawn


def merge_planned_rounds(
    planned: Sequence[PlannedUnit], later: Iterable[tuple[int, Sequence[PlannedUnit]]]
) -> list[PlannedUnit]:
    """What is to become of each unit in all rounds together.

    `planned`: in the first one. `later`: number of each further round, and what is to become of its units.
    One that is done in the first round may be missing in later ones, or may have failed there.
    """
    open_rounds: dict[str, list[int]] = {}
    failed: dict[str, PlannedUnit] = {}
    for number, items in later:
        for item in items:
            if item.state == "run":
                open_rounds.setdefault(item.unit.unit_id, []).append(number)
            elif item.state == "failed":
                failed.setdefault(item.unit.unit_id, item)
    merged = []
    for item in planned:
        unit_id = item.unit.unit_id
        if item.state == "done" and unit_id in open_rounds:
            merged.append(replace(item, state="run", why="", rounds=tuple(open_rounds[unit_id])))
        else:
            merged.append(failed.get(unit_id, item) if item.state == "done" else item)
    return merged
