"""The story of a sweep: what its schedule says is next is measured, counted or left, until nothing is left to do."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.plan.estimate import Forecast
from gpubench.plan.outlook import SweepOutlook, TimeLeft
from gpubench.plan.plan import Unit, format_unit_label
from gpubench.plan.skips import KnownOutOfMemory, find_skip_reason
from gpubench.plan.state import PlannedUnit, find_unit_ending, has_outdated_comparison
from gpubench.render.live import View
from gpubench.render.running import describe_round_end
from gpubench.run.announce import format_group_prediction
from gpubench.run.checks import inspect_gpus
from gpubench.run.limits import Limits, SweepSummary
from gpubench.run.live_progress import make_live_progress
from gpubench.run.preparing import make_images, wait_until_node_ready
from gpubench.run.schedule import PassEnd, RoundEnd, RoundStart, SweepSchedule, TurnOutcome, UnitTurn
from gpubench.run.sweep_state import SweepState
from gpubench.run.work_queue import POLL_S, WorkQueue
from gpubench.schema.attempt import JobProgress
from gpubench.schema.record import Record, Status, decide_group_ending
from gpubench.schema.row import Row, replace

TABLES_PERIOD_S = 5.0
TABLES_PART = 20.0
"""Times as long as the tables took to write last, they are not written again: of thousands of trials that is long."""


def run_sweep(
    state: SweepState,
    planned: Sequence[PlannedUnit],
    limits: Limits,
    view: View,
    emit: Callable[[Row], None],
    *,
    allow_busy: bool = False,
) -> SweepSummary:
    """Looks around, makes the images, and measures what is to be run; the node makes ready for trials meanwhile.

    `emit`: is given each row as its trial ends. A table that can't be written ends nothing: `state.unwritten` says so.
    Raises UnusableError where others keep the GPUs busy, or no GPU is left that all that is left to run needs.
    """
    node = state.runner.node
    node.remove_abandoned_folders()
    node.start_fork_server(has_trainings=any(job.trial.workload != "command" for job in state.plan.jobs))
    try:
        with view:
            inspect_gpus(state, planned, view, allow_busy=allow_busy)
            state.runner.results.ensure_folder_id(state.records)
            # So that others see it at work while it makes ready.
            WorkQueue.build(state).claim_first_unit(planned)
            import_table_modules()  # while torch starts
            is_ready = make_images(state, planned, view, limits.stop.poll_stop) and wait_until_node_ready(
                state, planned, view, limits.stop.poll_stop
            )
            return measure_rounds(state, limits, view, emit) if is_ready else SweepSummary()
    finally:
        node.close()


def measure_rounds(
    state: SweepState, limits: Limits, view: View, emit: Callable[[Row], None]
) -> SweepSummary:
    """Measures what the schedule says, round after round. Every attempt is stored before the next one begins."""
    import_table_modules()
    state.runner.results.ensure_folder_id(state.records)
    limits.certainty.began = time.monotonic()
    try:
        sweep = RunningSweep(state=state, limits=limits, view=view, emit=emit, queue=WorkQueue.build(state))
        sweep.run()
    finally:  # an error is raised after the tables have been written
        state.release_and_write_tables()
    return sweep.summary


def import_table_modules() -> None:
    """Imports what makes tables, so that nothing is imported while a trial is measured."""
    for name in ("analyze.open_questions", "analyze.questions", "export.files", "run.predicting"):
        importlib.import_module(f"gpubench.{name}")


@dataclass(kw_only=True, slots=True)
class RunningSweep:
    """A sweep that runs: who looks on, what may end it, and how far it is."""

    state: SweepState
    limits: Limits
    view: View
    emit: Callable[[Row], None]
    queue: WorkQueue
    summary: SweepSummary = field(default_factory=SweepSummary)
    _tables_due: float = 0.0

    def run(self) -> None:
        """Asks the schedule for what is next and hands back what became of it, until it has nothing more."""
        self.state.runner.claims.say = self.view.say
        schedule = SweepSchedule(self._list_round, self.state.plan.experiment.rounds.most)
        running_round = None
        for event in schedule:
            match event:
                case RoundStart():
                    running_round = RunningRound.begin(self, event)
                case UnitTurn(place=place) if running_round:
                    schedule.hand_back_outcome(running_round.handle_unit(place))
                case RoundEnd(has_run=True) if running_round:
                    running_round.announce_round_end()
                case PassEnd(has_waiting=has_waiting):
                    self._give_back_and_reread(has_waiting)
                    if self.limits.stop.is_resumable:
                        schedule.hand_back_outcome(TurnOutcome.STOPPED)
        if schedule.has_met_others:
            self._recount_at_end()
        self.limits.lost_gpus.raise_if_lost()
        self.limits.certainty.refresh_certainty(self.state)

    def _list_round(self, number: int) -> list[PlannedUnit]:
        return self.queue.list_in_queue_order(self.state.list_planned_of_round(number))

    def _give_back_and_reread(self, has_waiting: bool) -> None:
        """Gives back what is claimed and reads what others have stored, before the plan is gone over once more."""
        self.state.runner.claims.give_back()
        if has_waiting:
            time.sleep(POLL_S)
        if not self.limits.stop.poll_stop():
            self.queue.read_new_records()

    def _recount_at_end(self) -> None:
        """Counts what is stored in the end, whoever measured it: the same command again would count the same."""
        state, summary, late = self.state, self.summary, self.limits.batch_job.late
        state.runner.claims.give_back()
        if late:  # others may have had the time
            self.queue.read_new_records()
        first = state.find_counting_records()
        own = {
            record.trial_id: record
            for record in state.records
            if record.round == 1 and (record.trial_id, record.attempt_name) in state.measured
        }
        planned = state.list_planned_of_all_rounds()
        if state.fresh:  # as if the same command began now, but it does not begin again
            planned = [
                PlannedUnit(item.unit, "done")
                if item.state == "run" and self._is_measured_since_begin(item.unit, own)
                else item
                for item in planned
            ]
        late.forget_other_units({item.unit.unit_id for item in planned if item.state == "run"})
        # Where all is measured again, it may have failed here and count by an older attempt.
        tried = own if state.fresh or "stale" in state.retry else {}
        # What --retry asks for counts as left; it was tried all the same.
        endings = [
            item.ended or _find_bad_ending(item.unit, first) or _find_bad_ending(item.unit, tried)
            for item in planned
        ]
        summary.failed, summary.timed_out = endings.count("failed"), endings.count("timeout")
        remaining = [item for item, bad_ending in zip(planned, endings, strict=True) if not bad_ending]
        summary.reused = sum(
            item.state == "done" and item.unit.jobs[0].trial_id not in own for item in remaining
        )
        summary.elsewhere = sum(item.state == "run" for item in remaining)

    def _is_measured_since_begin(self, unit: Unit, own: Mapping[str, Record]) -> bool:
        """Whether this sweep (`own`: in the first round) or another has measured it since it began."""
        ending = find_unit_ending(unit, own)
        if ending in ("missing", "interrupted"):
            return self.queue.is_done_by_others(unit, 1)
        return unit.unit_id not in self.limits.batch_job.late.waiting

    def write_tables_if_due(self) -> None:
        """Writes the tables every few seconds, of what is known here."""
        if time.monotonic() < self._tables_due:
            return
        before, began = self.state.unwritten, time.monotonic()
        self.state.write_tables()
        now = time.monotonic()
        self._tables_due = now + max(TABLES_PERIOD_S, TABLES_PART * (now - began))
        if self.state.unwritten and not before:
            self.view.say(f"tables: {self.state.unwritten}; the sweep goes on, and what it measures is kept")


@dataclass(kw_only=True, slots=True)
class RunningRound:
    """One round of a sweep, or what is left of it. A unit's place is its number in `planned`, from 0."""

    sweep: RunningSweep
    number: int
    planned: Sequence[PlannedUnit]
    counts: SweepSummary
    """Where units are counted that need not run: once, in the first pass over the plan."""
    forecast: Forecast
    outlook: SweepOutlook
    """What comes after this round."""
    _oom: KnownOutOfMemory = field(default_factory=KnownOutOfMemory)
    _has_begun: bool = False

    @classmethod
    def begin(cls, sweep: RunningSweep, event: RoundStart) -> RunningRound:
        """The round, with how long it should take."""
        counts = sweep.summary if event.is_first_pass else SweepSummary()
        counts.stale += sum(item.stale for item in event.planned if item.state == "done")
        return cls(
            sweep=sweep,
            number=event.number,
            planned=event.planned,
            counts=counts,
            forecast=sweep.state.make_round_forecast(event.planned),
            outlook=sweep.state.make_outlook_after_round(event.number, event.planned),
        )

    def handle_unit(self, place: int) -> TurnOutcome:
        """What becomes of a unit whose turn it is: it is measured, counted or left."""
        sweep, item = self.sweep, self._update_planned_unit(place)
        if item.state != "run":
            self._count_unmeasured(place, item)
            return TurnOutcome.COUNTED
        takes_s = self.forecast.estimate_unit_s(place)
        time_for_it = sweep.limits.batch_job.decide_unit_start(
            item.unit, takes_s, sweep.state, is_first=not sweep.summary.ran
        )
        if time_for_it != "begin":  # one that takes less may still have time
            return TurnOutcome.LATE if time_for_it == "late" else TurnOutcome.LEFT
        if sweep.limits.stop.poll_stop():
            return TurnOutcome.STOPPED
        turn, reason = sweep.queue.claim_turn(item.unit, self.number)
        if turn == "skip":
            self._count_unmeasured(place, PlannedUnit(item.unit, "skip", reason))
            return TurnOutcome.COUNTED
        if turn != "run":
            return {"mine": TurnOutcome.LEFT, "waits": TurnOutcome.WAITS}.get(turn, TurnOutcome.THEIRS)
        if sweep.limits.stop.poll_stop():  # claiming may have taken its time
            return TurnOutcome.STOPPED
        if not sweep.limits.certainty.has_budget_for(self.number, takes_s):
            return TurnOutcome.OVER_BUDGET
        if not sweep.state.runner.wait_for_cpus(item.unit, sweep.limits.stop.poll_stop):
            return TurnOutcome.STOPPED
        return self._run_unit(place)

    def _update_planned_unit(self, place: int) -> PlannedUnit:
        """The unit as things stand now: what was measured since the round began may change it."""
        item, sweep, state = self.planned[place], self.sweep, self.sweep.state
        unit = item.unit
        # A trial that a group's jobs are compared with may just have been measured.
        may_be_outdated = item.state == "done" and self.number == 1 and unit.is_group and sweep.summary.ran
        if may_be_outdated and has_outdated_comparison(unit, state.find_counting_records()):
            item = PlannedUnit(unit, "run")
        if item.state == "run" and self.number == 1 and "oom" not in state.retry:
            # A smaller batch may have run out of memory since.
            reason = find_skip_reason(unit, self._oom, None, state.plan.device)
            item = PlannedUnit(unit, "skip", reason) if reason else item
        return item

    def _count_unmeasured(self, place: int, item: PlannedUnit) -> None:
        """Counts a unit that is not run; a skipped one is named, once."""
        if item.state == "done":
            self.counts.reused += self.number == 1
        elif item.state == "failed":
            self.counts.count_bad_ending(item.ended)
        elif item.state == "skip":
            self.counts.skipped += 1
            if not self.sweep.state.skips.keys() >= {job.trial_id for job in item.unit.jobs}:
                self.sweep.state.skips |= {job.trial_id: item.why for job in item.unit.jobs}
                self.sweep.view.say(f"{self._format_numbered_label(place)}  skipped: {item.why}")

    # ---- a unit that is run ----

    def _run_unit(self, place: int) -> TurnOutcome:
        sweep = self.sweep
        if not self._has_begun:  # not before: a budget may leave nothing of a round
            self._has_begun = True
            sweep.view.show_round_start(self.number, sweep.state.plan.experiment.rounds)
            sweep.view.show_table(sweep.state.make_live_report, at_once=True)
        status = self._measure_unit(place)
        if status == "oom":
            self._oom.add_unit(self.planned[place].unit)
        sweep.summary.ran += 1
        sweep.summary.count_bad_ending(status)
        sweep.write_tables_if_due()
        if status == "interrupted":
            sweep.limits.stop.is_resumable = True
            return TurnOutcome.STOPPED
        if (
            sweep.state.runner.is_gpu_unit(self.planned[place].unit)
            and sweep.limits.lost_gpus.query_lost_gpus()
        ):
            return TurnOutcome.STOPPED
        return TurnOutcome.RAN

    def _measure_unit(self, place: int) -> Status:
        """Runs one unit, and announces it before and after; returns how it ended."""
        sweep, state, view = self.sweep, self.sweep.state, self.sweep.view
        unit, number, total = self.planned[place].unit, place + 1, len(self.planned)
        prediction = state.predict(unit)
        if unit.is_group:
            view.say(f"{self._format_numbered_label(place)}  {format_group_prediction(prediction)}")
        view.show_unit_start(number, total, self._format_label(place), unit.jobs[0].trial_id)
        began = time.monotonic()
        is_stop_asked = sweep.limits.stop.is_asked
        records = state.runner.run_and_store_attempt(
            unit, prediction, is_stop_asked, self._make_progress_callback(place), self.number
        )
        state.runner.cpu_locks.release()
        took_s = time.monotonic() - began
        status = decide_group_ending([record.status for record in records])
        # One that broke off says nothing of the others.
        state.add_records(records, took_s if status == "ok" else None)
        if status == "ok":
            self.forecast.note_duration(place, took_s)
        rows = self._emit_rows(records)
        view.show_unit_end(number, total, self._format_label(place), rows)
        view.show_table(state.make_live_report)
        return status

    def _emit_rows(self, records: Sequence[Record]) -> list[Row]:
        """Hands the rows of a unit on; returns them as a terminal shows them."""
        rows = self.sweep.state.complete_rows(records, self.sweep.state.records)
        for row in rows:
            self.sweep.emit(row)
        # In tables the log's path is that in the folder; on a terminal it is for who stands outside.
        folder = self.sweep.state.runner.results.folder
        return [replace(row, log=str(folder / (row.log or ""))) for row in rows]

    def _make_progress_callback(self, place: int) -> Callable[[Sequence[JobProgress]], None]:
        """What shows how far the unit is, a few times a second."""
        began = time.monotonic()
        estimated_s, after_s = self.forecast.estimate_unit_s(place), self.forecast.estimate_rest_s(place)

        def show(progress: Sequence[JobProgress]) -> None:
            self.sweep.view.update(
                make_live_progress(
                    self.planned[place].unit,
                    progress,
                    label=self._format_label(place),
                    done=place,
                    total=len(self.planned),
                    spent_s=time.monotonic() - began,
                    elapsed_s=self.sweep.limits.certainty.elapsed_s,
                    estimated_s=estimated_s,
                    after_s=after_s,
                    ahead=self.outlook,
                    pace=self.forecast.pace,
                )
            )

        return show

    def announce_round_end(self) -> None:
        """Shows how sure the figures are after the round, and what is left; the table stands from now on."""
        state, view = self.sweep.state, self.sweep.view
        rounds = state.plan.experiment.rounds
        if rounds.most == 1:
            return
        standing = state.make_live_report()
        view.show_table(lambda: standing, at_once=True)
        if state.find_further_rounds().find_answered_round() is not None:
            time_left = TimeLeft(seconds=0)
        else:
            outlook = state.make_outlook_after_round(self.number, self.planned, over=True)
            time_left = outlook.estimate_time_left(0.0, self.sweep.limits.certainty.elapsed_s)
        view.show_round_end(describe_round_end(self.number, rounds, standing.report, time_left))

    def _format_label(self, place: int) -> str:
        return format_unit_label(self.sweep.state.plan, self.planned[place].unit)

    def _format_numbered_label(self, place: int) -> str:
        return f"[{place + 1}/{len(self.planned)}] {self._format_label(place)}"


def _find_bad_ending(unit: Unit, chosen: Mapping[str, Record]) -> str:
    """How a unit ended in the first round, if it was `failed` or `timeout`; empty else."""
    status = find_unit_ending(unit, chosen)
    return status if status in ("failed", "timeout") else ""
