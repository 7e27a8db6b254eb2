"""A plan on a bench: which of its units are done, which are left in which round, and how long they take."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.plan.estimate import Estimate, Forecast, estimates
from gpubench.plan.outlook import Ahead, Outlook, outlook
from gpubench.plan.plan import Job, Plan, Unit
from gpubench.plan.rounds import FEWEST_FOR_CERTAINTY
from gpubench.plan.skips import OutOfMemory, Room, skip_reason
from gpubench.plan.state import Planned, further, is_stale, left_in_all, out_of_memory, survey
from gpubench.results.allowance import Key, alike
from gpubench.results.counting import counting, in_order, newest, newest_of_rounds
from gpubench.results.rows import row_of
from gpubench.results.store import Tell, refuse
from gpubench.schema.record import FINAL, Record
from gpubench.schema.row import Row
from gpubench.stats.estimates import find_width_pct
from gpubench.sweep.bench import Bench

Configuration = tuple[str, str | None, str | None, str]
"""Its id, group, job and machine: what the processes of a row have in common."""


def _configuration(record: Record) -> Configuration:
    return record.config_id, record.group, record.job, record.machine_key


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How to run a plan."""

    retry: frozenset[str] = frozenset()
    fresh: bool = False


@dataclass(kw_only=True, slots=True)
class Survey:
    """One plan on one bench: what is done, what is left in which round, and how long that takes."""

    plan: Plan
    bench: Bench
    settings: Settings = field(default_factory=Settings)
    records: list[Record] = field(default_factory=list)
    measured: set[tuple[str, str]] = field(default_factory=set)
    """Trial ids and names of the attempts that this sweep has stored."""
    _took: dict[str, float] = field(default_factory=dict)
    """Id of a unit -> seconds that it took in the last round."""
    _asked: tuple[int, list[list[set[str]]] | None] | None = None
    """How many records there were when open questions were last looked for, and these."""
    _tell: Tell = refuse
    _given: dict[Key, Mapping[str, Any]] | None = None

    def load(self, tell: Tell = refuse) -> None:
        """Reads what the results folder holds already. `tell`: of each record that is left out, now and later."""
        self.records = self.bench.results.records(tell)
        self._tell = tell

    def reload(self, beside: Collection[str] | None = None) -> list[Record]:
        """Reads what others, who work in the same folder, have stored since; returns it.

        `beside`: ids of units; no more than what lies beside their records.
        """
        found = self.bench.results.newer_records(self._tell, beside)
        if found:
            self.records = sorted([*self.records, *found], key=in_order)
        return found

    def chosen(self) -> dict[str, Record]:
        """Trial id -> the attempt of the first round that counts on this machine, of this plan's trials."""
        return self._of_plan(newest(self.alike()))

    def _chosen(self) -> dict[int, dict[str, Record]]:
        """Number of a round -> trial id -> the attempt of it that counts here, for rounds of which there is one."""
        return {number: self._of_plan(here) for number, here in newest_of_rounds(self.alike()).items()}

    def _of_plan(self, here: Mapping[Key, Record]) -> dict[str, Record]:
        return {
            job.trial_id: here[key]
            for job in self.plan.jobs
            if (key := (job.trial_id, self.bench.machine_key(job))) in here
        }

    def reused(self, planned: Sequence[Planned]) -> list[Row]:
        """The rows of what was done already, as the tables have them: round by round, in the plan's order."""
        done = [item for item in planned if item.state == "done" or item.rounds]
        ids = [job.trial_id for item in done for job in item.unit.jobs]
        rows = []
        for number, here in sorted(self._chosen().items()):
            # A group may have been measured again all the same: that was told then.
            records = [
                record
                for trial_id in ids
                if (record := here.get(trial_id)) and (trial_id, record.attempt_name) not in self.measured
                if number == 1 or record.status in FINAL
            ]
            rows += self.complete_rows(records, self.alike())
        return rows

    def complete_rows(self, records: Sequence[Record], held: Sequence[Record]) -> list[Row]:
        """The rows of these attempts, in their order, with what follows from others that are `held`."""
        from gpubench.sweep import tables

        rows = tables.complete_rows(records, held)
        return [rows[record.trial_id] for record in records]

    def alike(self) -> list[Record]:
        """All attempts, without those at this plan's trials that got other CPUs or loaders than they would now."""
        return alike(self.records, self.gets())[0]

    def gets(self) -> Mapping[Key, Mapping[str, Any]]:
        """What this machine gives each trial of the plan that it has room for. Worked out once."""
        if self._given is None:
            self._given = {
                (job.trial_id, self.bench.machine_key(job)): one.columns()
                for unit in self.plan.units
                if skip_reason(unit, OutOfMemory(), self._room(), self.plan.device) is None
                for job, one in zip(unit.jobs, self.bench.resolve(unit), strict=True)
            }
        return self._given

    def _room(self) -> Room:
        machine = self.bench.node.machine
        return Room(len(machine.gpus), machine.cpu_count, machine.shows, self.bench.nodes)

    def survey(self) -> list[Planned]:
        """What is to become of each unit of the plan."""
        return survey(
            self.plan,
            self.chosen(),
            oom=self.oom_here(),
            room=self._room(),
            environment=self.bench.environment,
            unlike=alike(self.records, self.gets())[1],
            retry=self.settings.retry,
            fresh=self.settings.fresh,
        )

    def further(self) -> Iterator[tuple[int, list[Planned]]]:
        """The number of each further round, and what is to become of its units as things stand."""
        rounds = self.plan.experiment.rounds
        if rounds.most == 1:
            return
        found = self._chosen()
        units = self._unsettled()
        # Those after the first round of which nothing is stored would all be alike.
        last = min(rounds.most, max(found, default=1) + 1) if rounds.is_open else rounds.most
        for number in range(2, last + 1):
            yield number, further(units, number, found, self.settings.retry)

    def left_in(self, number: int) -> list[Planned]:
        """What is to become of the units of one further round, which is about to begin."""
        found = self._chosen()
        if self.settings.fresh:
            found.pop(number, None)
        return further(self._unsettled(), number, found, self.settings.retry)

    def _unsettled(self) -> list[Unit]:
        """The units that further rounds measure as long as there are more rounds."""
        settled = self._settled()
        return [unit for unit in self._of_these_versions() if unit.unit_id not in settled]

    def _of_these_versions(self) -> list[Unit]:
        """A row is of one set of versions: what the first round measured under others is left until --retry stale."""
        first, here = self.chosen(), self.bench.environment
        stale = {trial_id for trial_id, record in first.items() if is_stale(record, here)}
        return [
            unit
            for unit in self.plan.units
            if not any(
                job.trial_id in stale or (job.membership and job.membership.solo.trial_id in stale)
                for job in unit.jobs
            )
        ]

    def _settled(self) -> set[str]:
        """Ids of the units that need no further round."""
        rounds = self.plan.experiment.rounds
        if rounds.within_pct is not None:
            return self._known_within(rounds.within_pct)
        return self._in_no_question() if rounds.until_answered else set()

    def _known_within(self, within_pct: float) -> set[str]:
        """Ids of the units whose epoch times are known as well as that."""
        sure = {
            configuration
            for configuration, found in self._times().items()
            if len(found) >= FEWEST_FOR_CERTAINTY
            and (known_pct := find_width_pct(found)) is not None
            and known_pct <= within_pct
        }
        return {
            unit.unit_id
            for unit in self.plan.units
            if all(self._configuration_of(job) in sure for job in unit.jobs)
        }

    def _in_no_question(self) -> set[str]:
        """Ids of the units that take part in no open question; of none where the table asks none.

        Units that no question is about have as many processes as others need for an answer, and no more: the budget is
        for questions. Nor do they go on for a question that can't be answered any more, for another of its trials
        failed in a further round or was measured under other versions.
        """
        questions = self._open_questions()
        if questions is None:
            return set()
        goes_on = self._going_on(self._of_these_versions())
        trials = {job.trial_id for unit in goes_on for job in unit.jobs}
        asked = {
            trial_id
            for of_rows in questions
            if not any(trials.isdisjoint(of_row) for of_row in of_rows)
            for of_row in of_rows
            for trial_id in of_row
        }
        times = self._times()
        return {
            unit.unit_id
            for unit in goes_on
            if all(
                job.trial_id not in asked
                and len(times.get(self._configuration_of(job), ())) >= FEWEST_FOR_CERTAINTY
                for job in unit.jobs
            )
        }

    def _open_questions(self) -> list[list[set[str]]] | None:
        """For each question that what was measured here leaves open the ids of each row's trials.

        A row has one for each repeat. None where nothing is asked.
        """
        from gpubench.sweep import tables

        if self._asked is not None and self._asked[0] == len(self.records):
            return self._asked[1]
        machines = {self.bench.machine_key(job) for job in self.plan.jobs}
        here = [record for record in self.alike() if record.machine_key in machines]
        found = tables.find_open_questions(self.bench.results.folder, self.plan, here)
        self._asked = len(self.records), found
        return found

    def _going_on(self, units: Sequence[Unit]) -> list[Unit]:
        """Those that still more rounds would measure: what failed in one is in no later one."""
        after_all = self.plan.experiment.rounds.most + 1
        return [item.unit for item in further(units, after_all, self._chosen())]

    def answered(self) -> int | None:
        """The rounds after which the table leaves no question open, where that is what ends them; None else."""
        if not self.plan.experiment.rounds.until_answered or self._open_questions() != []:
            return None
        return None if self._going_on(self._unsettled()) else max(self._chosen())

    def _times(self) -> dict[Configuration, list[float]]:
        """The epoch times of each configuration's processes."""
        times: dict[Configuration, list[float]] = {}
        for record in counting(self.alike()).values():
            if record.status == "ok" and (time_s := record.result.epoch_time_s):
                times.setdefault(_configuration(record), []).append(time_s)
        return times

    def _configuration_of(self, job: Job) -> Configuration:
        own = job.membership
        names = (own.group, own.name) if own else (None, None)
        return job.config_id, *names, self.bench.machine_key(job)

    def unsure(self, skipped: Collection[str] = ()) -> int:
        """How many units are not known as well as --within asks for, though still more rounds would measure them.

        What failed in a further round, or was `skipped` (trial ids), is told as such.
        """
        rounds = self.plan.experiment.rounds
        if rounds.within_pct is None:
            return 0
        more = self._going_on(self._unsettled())
        return sum(unit.jobs[0].trial_id not in skipped for unit in more)

    def pending(self) -> list[Planned]:
        """What is to become of each unit in all rounds together."""
        return left_in_all(self.survey(), self.further())

    def took(self, unit: Unit, seconds: float) -> None:
        """Keeps how long a unit took: in the next round it will take as long."""
        self._took[unit.unit_id] = seconds

    def oom_here(self) -> OutOfMemory:
        """What has run out of GPU memory on this kind of machine, by all that is known."""
        keys = {self.bench.machine_key(job) for job in self.plan.jobs}
        return out_of_memory(r for (_, machine), r in newest(self.records).items() if machine in keys)

    def estimates(self, units: Sequence[Unit]) -> list[Estimate]:
        """How long each should take in a round. The jobs of a group count as if they ran one after the other."""
        # Jobs of groups are no measure: their neighbours slowed them.
        alone = [r for r in newest(self.records).values() if r.status == "ok" and r.group is None]
        rows = [row_of(record) for record in alone]
        each = iter(
            estimates(
                [
                    (job.trial, one)
                    for unit in units
                    for job, one in zip(unit.jobs, self.bench.resolve(unit), strict=True)
                ],
                rows,
            )
        )
        found = []
        for unit in units:
            mine = [next(each) for _ in unit.jobs]
            known_s = self._took.get(unit.unit_id)
            found.append(
                Estimate(sum(e.seconds for e in mine), all(e.known for e in mine))
                if known_s is None
                else Estimate(known_s, True)
            )
        return found

    def forecast(self, planned: Sequence[Planned]) -> Forecast:
        """What is left at each unit, estimated for all at once: rows are looked through, and CPUs dealt out, once."""
        each = iter(self.estimates([item.unit for item in planned if item.state == "run"]))
        return Forecast([next(each).seconds if item.state == "run" else 0.0 for item in planned])

    def estimates_of_all(self, planned: Sequence[Planned]) -> list[Estimate]:
        """How long each unit that is to run should take in all rounds that it has before it.

        Where a certainty or a budget ends the rounds, nobody knows how many they will be: then in the next one alone.
        """
        rounds = self.plan.experiment.rounds
        to_run = [item for item in planned if item.state == "run"]
        found = []
        for item, each in zip(to_run, self.estimates([item.unit for item in to_run]), strict=True):
            count = 1 if rounds.is_open else len(item.rounds) or rounds.most
            found.append(Estimate(each.seconds * count, each.known))
        return found

    def outlook(self, number: int, planned: Sequence[Planned], *, over: bool = False) -> Outlook:
        """What is before the sweep after this round. `over`: nothing more of it is to come."""
        rounds = self.plan.experiment.rounds
        if number == rounds.most:
            return Outlook(rounds=rounds, number=number)
        first, times = self.chosen(), self._times()
        to_come = [item for item in planned if item.state == "run" and not over]
        known = [
            item.unit
            for item in planned
            if all((one := first.get(job.trial_id)) and one.status == "ok" for job in item.unit.jobs)
        ]
        ids = {unit.unit_id for unit in known}
        new = [item.unit for item in to_come if item.unit.unit_id not in ids]
        each_s = {
            unit.unit_id: guess.seconds
            for unit, guess in zip([*known, *new], self.estimates([*known, *new]), strict=True)
        }
        running = {item.unit.unit_id for item in to_come}
        ahead = [
            Ahead(
                each_s=each_s[unit.unit_id],
                samples=tuple(tuple(times.get(self._configuration_of(job), ())) for job in unit.jobs),
                turns=int(unit.unit_id in running),
            )
            for unit in (*known, *new)
        ]
        return outlook(rounds, number, ahead)
