"""What a sweep knows: its plan, the records of its folder, what it has measured itself, and how long things take.

What works on frames takes most of a second to import. So methods that need it import it when they are called, and a
sweep that runs imports it before its first trial, never while one is measured (`import_table_modules` in `sweep.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UnusableError
from gpubench.core.report import Report
from gpubench.plan.estimate import Forecast, TimeEstimate, estimate_trial_times
from gpubench.plan.outlook import SweepOutlook
from gpubench.plan.plan import Job, Plan, Unit
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity, find_skip_reason
from gpubench.plan.state import (
    FurtherRounds,
    PlannedUnit,
    collect_out_of_memory,
    find_unit_ending,
    merge_planned_rounds,
    plan_first_round,
)
from gpubench.record.together import ALONE, GroupPrediction
from gpubench.render.live import LiveReport
from gpubench.results.counting import (
    Key,
    make_start_key,
    select_counting_by_round,
    select_counting_of_first_round,
    select_counting_records,
    select_matching_records,
)
from gpubench.results.plans import read_stored_plans
from gpubench.results.rows import make_row
from gpubench.results.store import Tell, raise_unusable
from gpubench.run.images import Wanted
from gpubench.run.unit_runner import UnitRunner
from gpubench.schema.record import FINAL, Record
from gpubench.schema.row import Row
from gpubench.store.work_claims import list_workers

if TYPE_CHECKING:
    from gpubench.analyze.folder import Folder

MOST_REWRITES = 10

Configuration = tuple[str, str | None, str | None, str]
"""Its id, group, job and machine: what the processes of a row have in common."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CountingAttempts:
    """What counts of the attempts that are known, for the plan on this machine."""

    count: int
    """How many attempts were known when this was worked out."""
    alike: list[Record]
    """Those without attempts at this plan's trials that got other CPUs or loaders than they would now."""
    unlike: Mapping[str, str]
    """Trial id -> why what is stored of it does not count here."""
    rounds: Mapping[int, Mapping[str, Record]]
    """Number of a round -> trial id -> the attempt that counts in it, for rounds of which there is one."""
    times: Mapping[Configuration, Sequence[float]]
    """The epoch times of all processes of a configuration, in seconds."""


@dataclass(kw_only=True, slots=True)
class SweepState:
    """One plan on one machine, and what became of it so far."""

    plan: Plan
    runner: UnitRunner
    retry: frozenset[str] = frozenset()
    """Statuses that are run again."""
    fresh: bool = False
    """Whether all is run again."""
    records: list[Record] = field(default_factory=list)
    measured: set[tuple[str, str]] = field(default_factory=set)
    """Trial ids and names of the attempts that this sweep has stored."""
    ended: int = 0
    """How many trials have ended in this sweep otherwise than by its being stopped."""
    skips: dict[str, str] = field(default_factory=dict)
    """Trial id -> why this sweep skipped it."""
    problems: list[str] = field(default_factory=list)
    """Plans of the folder that could not be read when the tables were last written, one line each."""
    unwritten: str = ""
    """Why not all tables could be written when that was last tried."""
    _took: dict[str, float] = field(default_factory=dict)
    """Id of a unit -> seconds that it took in the last round."""
    _stored: CountingAttempts | None = None
    _questions: tuple[int, list[list[set[str]]] | None] | None = None
    """How many records there were when open questions were last looked for, and these."""
    _tell: Tell = raise_unusable
    _given: dict[Key, Mapping[str, Any]] | None = None
    _has_left: bool = False

    # ---- records ----

    def load(self, tell: Tell = raise_unusable) -> None:
        """Reads what the results folder holds already. `tell`: of each record that is left out, now and later."""
        self.records = self.runner.results.read_records(tell)
        self._tell = tell

    def reload_newer_records(self, beside: Collection[str] | None = None) -> list[Record]:
        """Reads what others, who work in the same folder, have stored since; returns it.

        `beside`: ids of units; no more than what lies beside their records.
        """
        newer = self.runner.results.read_records_since_last(self._tell, beside)
        if newer:
            self.records = sorted([*self.records, *newer], key=make_start_key)
        return newer

    def add_records(self, records: Sequence[Record], took_s: float | None) -> None:
        """Takes the records of a unit that has just ended. `took_s`: None where it broke off."""
        self.records += records
        self.measured |= {(record.trial_id, record.attempt_name) for record in records}
        self.ended += sum(record.status != "interrupted" for record in records)
        if took_s is not None:
            self._took[records[0].group_id or records[0].trial_id] = took_s

    def stored(self) -> CountingAttempts:
        """What counts of what is known now."""
        if self._stored is None or self._stored.count != len(self.records):
            alike, unlike = select_matching_records(self.records, self.resolve_allotments())
            keys = [(job.trial_id, self.runner.find_machine_key(job)) for job in self.plan.jobs]
            rounds = {
                number: {key[0]: chosen[key] for key in keys if key in chosen}
                for number, chosen in select_counting_by_round(alike).items()
            }
            times: dict[Configuration, list[float]] = {}
            for record in select_counting_records(alike).values():
                if record.status == "ok" and (time_s := record.result.get("epoch_time_s")):
                    configuration = (record.config_id, record.group, record.job, record.machine_key)
                    times.setdefault(configuration, []).append(time_s)
            self._stored = CountingAttempts(
                count=len(self.records), alike=alike, unlike=unlike, rounds=rounds, times=times
            )
        return self._stored

    def find_counting_records(self) -> Mapping[str, Record]:
        """Trial id -> the attempt of the first round that counts on this machine, of this plan's trials."""
        return self.stored().rounds.get(1, {})

    def machines(self) -> set[str]:
        """What the machine is called in records of this plan's trials."""
        return {self.runner.find_machine_key(job) for job in self.plan.jobs}

    def resolve_allotments(self) -> Mapping[Key, Mapping[str, Any]]:
        """What this machine gives each trial of the plan that it has room for. Worked out once."""
        if self._given is None:
            self._given = {
                (job.trial_id, self.runner.find_machine_key(job)): resolved.make_columns(
                    job.trial.fields_of_machine
                )
                for unit in self.plan.units
                if find_skip_reason(unit, KnownOutOfMemory(), self._find_node_capacity(), self.plan.device)
                is None
                for job, resolved in zip(unit.jobs, self.runner.resolve_jobs(unit), strict=True)
            }
        return self._given

    def _find_node_capacity(self) -> NodeCapacity:
        machine = self.runner.node.machine
        return NodeCapacity(len(machine.gpus), machine.cpu_count, machine.sentence_start, self.runner.nodes)

    # ---- what is left ----

    def list_planned_of_all_rounds(self) -> list[PlannedUnit]:
        """What is to become of each unit in all rounds together, as things stand."""
        first = self.list_planned_of_round(1)
        if self.plan.experiment.rounds.most == 1:
            return first
        return merge_planned_rounds(first, self.find_further_rounds().list_planned_by_round())

    def list_planned_of_round(self, number: int) -> list[PlannedUnit]:
        """What is to become of the units of a round that is about to begin.

        In a further one without those that this sweep has skipped: the GPU that a unit lacked is not back yet.
        """
        if number == 1:
            return plan_first_round(
                self.plan,
                self.find_counting_records(),
                oom=self.find_out_of_memory(),
                room=self._find_node_capacity(),
                environment=self.runner.environment,
                unlike=self.stored().unlike,
                retry=self.retry,
                fresh=self.fresh,
            )
        planned = self.find_further_rounds().list_planned(number, fresh=self.fresh)
        return [item for item in planned if item.unit.jobs[0].trial_id not in self.skips]

    def find_further_rounds(self) -> FurtherRounds:
        """What further rounds have before them, by what is stored now."""
        stored = self.stored()
        return FurtherRounds(
            plan=self.plan,
            records=stored.rounds,
            environment=self.runner.environment,
            epoch_times={
                job.trial_id: stored.times.get(self._make_configuration_key(job), ())
                for job in self.plan.jobs
            },
            questions=self.find_open_questions() if self.plan.experiment.rounds.is_until_answered else None,
            retry=self.retry,
        )

    def find_out_of_memory(self) -> KnownOutOfMemory:
        """What has run out of GPU memory on this kind of machine, by all that is known."""
        machines = self.machines()
        return collect_out_of_memory(
            record
            for (_, key), record in select_counting_of_first_round(self.records).items()
            if key in machines
        )

    def find_open_questions(self) -> list[list[set[str]]] | None:
        """For each question that what was measured here leaves open the ids of each row's trials.

        A row has one for each repeat. None where nothing is asked.
        """
        from gpubench.analyze.open_questions import list_trials_of_open_questions

        if self._questions is not None and self._questions[0] == len(self.records):
            return self._questions[1]
        machines = self.machines()
        records = [record for record in self.stored().alike if record.machine_key in machines]
        with pause_garbage_collector():
            folder = self._build_plan_folder(records, {})
            questions = list_trials_of_open_questions(folder, self.plan.experiment.repeats)
        self._questions = len(self.records), questions
        return questions

    def _make_configuration_key(self, job: Job) -> Configuration:
        membership = job.membership
        names = (membership.group, membership.name) if membership else (None, None)
        return job.config_id, *names, self.runner.find_machine_key(job)

    def list_wanted_images(self, planned: Sequence[PlannedUnit]) -> list[Wanted]:
        """The images that the units to run read, each once."""
        units = [item.unit for item in planned if item.state == "run"]
        return list(dict.fromkeys(each for unit in units for each in self.runner.list_wanted_images(unit)))

    # ---- how long it takes ----

    def estimate_unit_times(self, units: Sequence[Unit]) -> list[TimeEstimate]:
        """How long each should take in a round. The jobs of a group count as if they ran one after the other."""
        # Jobs of groups are no measure: their neighbours slowed them.
        alone = [
            make_row(record)
            for record in select_counting_of_first_round(self.records).values()
            if record.status == "ok" and record.group is None
        ]
        jobs = [
            (job.trial, resolved)
            for unit in units
            for job, resolved in zip(unit.jobs, self.runner.resolve_jobs(unit), strict=True)
        ]
        guesses = iter(estimate_trial_times(jobs, alone))
        estimates = []
        for unit in units:
            of_jobs = [next(guesses) for _ in unit.jobs]
            estimate = TimeEstimate(
                sum(each.seconds for each in of_jobs) + self.runner.node.wait_for_meters_s,
                all(each.known for each in of_jobs),
            )
            if unit.unit_id in self._took:  # in the next round it takes as long
                estimate = TimeEstimate(self._took[unit.unit_id], True)
            estimates.append(estimate)
        return estimates

    def make_round_forecast(self, planned: Sequence[PlannedUnit]) -> Forecast:
        """What is left at each unit, estimated for all at once: rows are looked through, and CPUs dealt out, once."""
        guesses = iter(self.estimate_unit_times([item.unit for item in planned if item.state == "run"]))
        return Forecast([next(guesses).seconds if item.state == "run" else 0.0 for item in planned])

    def estimate_time_in_all_rounds(self, planned: Sequence[PlannedUnit]) -> list[TimeEstimate]:
        """How long each unit that is to run should take in all rounds that it has before it.

        Where a certainty or a budget ends the rounds, nobody knows how many they will be: then in the next one alone.
        """
        rounds = self.plan.experiment.rounds
        to_run = [item for item in planned if item.state == "run"]
        counts = [1 if rounds.is_open_ended else len(item.rounds) or rounds.most for item in to_run]
        guesses = self.estimate_unit_times([item.unit for item in to_run])
        return [
            TimeEstimate(guess.seconds * count, guess.known)
            for guess, count in zip(guesses, counts, strict=True)
        ]

    def make_outlook_after_round(
        self, number: int, planned: Sequence[PlannedUnit], *, over: bool = False
    ) -> SweepOutlook:
        """What is before the sweep after this round. `over`: nothing more of it is to come."""
        rounds = self.plan.experiment.rounds
        if number == rounds.most:
            return SweepOutlook(rounds=rounds, number=number)
        first = self.find_counting_records()
        units = [
            item.unit
            for item in planned
            if (item.state == "run" and not over) or find_unit_ending(item.unit, first) == "ok"
        ]
        each_s = sum(guess.seconds for guess in self.estimate_unit_times(units))
        return SweepOutlook(rounds=rounds, number=number, each_s=each_s)

    def predict(self, unit: Unit) -> GroupPrediction:
        """What the trials alone, as far as they were measured here, say of a group."""
        if not unit.is_group:
            return ALONE
        from gpubench.run.predicting import predict_group_slowdowns

        return predict_group_slowdowns(unit, self.runner.resolve_jobs(unit), self.find_counting_records())

    # ---- its tables ----

    def make_reports(self) -> list[Report]:
        """The tables of this sweep's own trials as they are now. `gpubench table` shows all that the folder holds."""
        from gpubench.analyze.questions import make_table_report

        with pause_garbage_collector():
            folder = self._build_plan_folder(self.stored().alike, self.skips)
            return [make_table_report(folder, table) for table in folder.tables]

    def make_live_report(self) -> LiveReport:
        """The first of them for whoever looks on, from before its first trial."""
        from gpubench.analyze.questions import make_table_report

        with pause_garbage_collector():
            folder = self._build_plan_folder(self.stored().alike, self.skips)
            trial_ids = folder.runs["trial_id"].loc[folder.members["run"]]
            rows = dict(zip(trial_ids, folder.members["row"].tolist(), strict=True))
            return LiveReport(make_table_report(folder, folder.tables[0]), rows)

    def _build_plan_folder(self, records: Sequence[Record], skips: Mapping[str, str]) -> Folder:
        from gpubench.analyze.folder import build_folder_from_plan

        return build_folder_from_plan(self.runner.results.folder, self.plan, records, skips)

    def complete_rows(self, records: Sequence[Record], held: Sequence[Record]) -> list[Row]:
        """The rows of these attempts, in their order, with what follows from others that are `held`."""
        from gpubench.analyze.folder import make_rows_with_folder_facts

        rows = make_rows_with_folder_facts(records, held)
        return [rows[record.trial_id] for record in records]

    def list_reused_rows(self, planned: Sequence[PlannedUnit]) -> list[Row]:
        """The rows of what was done already, as the tables have them: round by round, in the plan's order."""
        done = [item for item in planned if item.state == "done" or item.rounds]
        ids = [job.trial_id for item in done for job in item.unit.jobs]
        stored, rows = self.stored(), []
        for number, by_id in sorted(stored.rounds.items()):
            # A group may have been measured again all the same: its row was written then.
            records = [
                record
                for trial_id in ids
                if (record := by_id.get(trial_id)) and (trial_id, record.attempt_name) not in self.measured
                if number == 1 or record.status in FINAL
            ]
            rows += self.complete_rows(records, stored.alike)
        return rows

    def write_tables(self) -> None:
        """All tables of the folder, from what is held here, as far as they can be written."""
        from gpubench.analyze.folder import build_folder_from_records
        from gpubench.analyze.questions import make_table_report
        from gpubench.export.files import write_tables

        self.problems, self.unwritten, results = [], "", self.runner.results
        if not self.records and not read_stored_plans(results, self.records)[0]:
            return  # a sweep that broke off before it had anything
        try:
            with pause_garbage_collector():
                folder = build_folder_from_records(
                    results, self.records, [], self.problems.append, self.skips
                )
                reports = [make_table_report(folder, table) for table in folder.tables]
            write_tables(results, folder, reports)
        except UnusableError as error:
            self.unwritten = str(error)

    # ---- beside others, and after ----

    def list_other_workers(self) -> list[str]:
        """Who else is at work in the folder: `process 7 on host`."""
        workers = list_workers(self.runner.results.folder)
        return list(dict.fromkeys(worker.who for worker in workers if worker.is_alive))

    def release_and_write_tables(self) -> None:
        """Gives back what is claimed, and writes the tables of all that the folder holds by then. Once."""
        if self._has_left:
            return
        self._has_left = True
        self.give_back()
        self.reload_newer_records()
        self.write_tables()
        for _ in range(MOST_REWRITES):  # of two that end at once, one may write over what it has not read
            if self.unwritten or not self.reload_newer_records():
                break
            self.write_tables()

    def give_back(self) -> None:
        """What was claimed is free for others again."""
        self.runner.cpu_locks.release()
        self.runner.claims.give_back()

    def clean_up_before_exit(self) -> None:
        """What a process that is about to end at once still clears away."""
        self.runner.node.remove_temporary_folders()
        self.runner.claims.give_back()
