"""The sweep: takes a plan, runs what is missing one unit after the other, stores each as it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.analysis.machine_noise import MachineNoise
from gpubench.basics.errors import UnusableError
from gpubench.plan.estimate import Estimate, Forecast
from gpubench.plan.further import Turn
from gpubench.plan.outlook import Left, Outlook
from gpubench.plan.plan import Unit
from gpubench.plan.skips import OutOfMemory, skip_reason
from gpubench.plan.state import Planned, lacks_its_answer
from gpubench.plan.unit_label import unit_label
from gpubench.plan.wall_time import Late, Verdict, WallTime, at_least
from gpubench.record.together import GroupPrediction, predict_group
from gpubench.report.contents import contents, rows_among, table_of, write_contents
from gpubench.report.live import View
from gpubench.report.live_progress import LiveProgress
from gpubench.report.standing import round_line
from gpubench.report.table import Table
from gpubench.results.locks import unit_locks
from gpubench.schema.attempt import JobProgress
from gpubench.schema.record import Record, ending
from gpubench.schema.row import Row, replace
from gpubench.sweep.ahead import Preparation
from gpubench.sweep.joining import POLL_S, Joining
from gpubench.sweep.losses import none_left
from gpubench.sweep.prediction_line import prediction_line
from gpubench.sweep.progress import progress_of
from gpubench.sweep.survey import Survey

TABLES_PERIOD_S = 5.0


@dataclass(kw_only=True, slots=True)
class Summary:
    """What a sweep did, in units."""

    ran: int = 0
    reused: int = 0
    skipped: int = 0
    failed: int = 0
    """Now or before."""
    timed_out: int = 0
    """Now or before; not among `failed`."""
    interrupted: bool = False
    stale: int = 0
    out_of_budget: bool = False
    """Whether further rounds were left out because the sweep had taken its --budget."""
    longest_s: float = 0.0
    """Seconds of the process that was left out then, where it takes longer than all of the budget."""
    lost: int = 0
    """Skipped because a GPU that they need was lost while the sweep ran; among `skipped`."""

    unsure: int = 0
    """How many are not known as well as --within asks for, though still more rounds would measure them."""
    late: Late = field(default_factory=Late)
    """What was not begun because the batch job ends before."""
    answered: int | None = None
    """Rounds after which every question of the table is answered, where that ends the sweep."""

    elsewhere: int = 0
    """Left in the hands of others that have joined."""

    def add(self, status: str) -> None:
        """Counts a unit that ended badly."""
        self.failed += status == "failed"
        self.timed_out += status == "timeout"


@dataclass(kw_only=True, slots=True)
class Sweep(Survey):
    """One plan, run on one bench."""

    noise: Sequence[MachineNoise] = ()
    """What is known of machines' own noise, which stands in for rows of one process."""
    wall_time: WallTime | None = None
    """How long the batch job may still run; None: nobody ends it."""
    skips: dict[str, str] = field(default_factory=dict)
    """Trial id -> why this sweep skipped it."""
    ended: int = 0
    """How many trials have ended in this sweep otherwise than by its being stopped."""
    problems: list[str] = field(default_factory=list)
    """Plans of the folder that could not be read when the tables were last made, one line each."""
    unwritten: str = ""
    """Why not all tables could be written when that was last tried."""
    others: list[str] = field(default_factory=list)
    """Who still works through the plan, where this sweep has left it to them."""
    _has_left: bool = False
    _told: set[int] = field(default_factory=set)
    """GPUs whose loss has been said."""
    _tables_due: float = 0.0
    _broken_off: dict[str, float] | None = None
    _preparation: Preparation = field(init=False)
    _joining: Joining | None = None
    _waits: bool = False
    """Whether a unit was left in the last pass of which nobody knows yet whether this sweep is to run it."""

    def __post_init__(self) -> None:
        self._preparation = Preparation(bench=self.bench)

    # ---- the sweep ----

    def run(
        self,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
    ) -> Summary:
        """Runs what is to be run. Every attempt is stored before the next one begins.

        A table that can't be written ends nothing: `unwritten` says so in the end.
        """
        try:
            summary = self._run(view, should_stop, emit)
        except BaseException:
            self.leave()  # the first error is the one to tell
            raise
        finally:
            self.bench.discard()
        self.leave()
        return summary

    def leave(self) -> None:
        """Makes the tables; where others have joined and are still at it, the last of them does. Once."""
        if self._has_left:
            return
        self._has_left = True
        results = self.bench.results
        if results.leave():
            if results.units is not None:
                self.reload()
                unit_locks.remove_dead(results.folder)
            self.write_tables()
        else:
            self.others = results.others()

    def abandon(self) -> None:
        """What a process that is about to end at once still clears away."""
        self.bench.node.abandon()
        self.bench.results.abandon()

    def _run(
        self,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
    ) -> Summary:
        summary = Summary()
        began = time.monotonic()
        units = self.bench.results.units
        self._joining = Joining.of(self, units) if units is not None else None
        self._pass(summary, view, should_stop, emit, began)
        if self._joining is not None:
            self._go_on(self._joining, summary, view, should_stop, emit, began)
            if summary.late:  # others may have had the time
                self._joining.read()
                summary.late.keep({item.unit.unit_id for item in self.pending() if item.state == "run"})
            self._count_all(summary)
        if summary.lost and not self.bench.has_gpus_left:
            raise none_left(self.bench.lost.values())
        self._tell_losses(view)
        summary.unsure = self.unsure(self.skips)
        summary.answered = self.answered()
        return summary

    def _pass(
        self,
        summary: Summary,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
        began: float,
        *,
        again: bool = False,
        last: int | None = None,
    ) -> None:
        """Goes through all rounds, or as far as the `last`. `again`: not for the first time, so that what is done is
        not counted anew."""
        rounds = self.plan.experiment.rounds
        self._waits = False
        for number in range(1, (last or rounds.most) + 1):
            planned = self.survey() if number == 1 else self._not_skipped(self._further(number))
            if number > 1 and not planned:
                break
            if self._joining is not None:
                planned = self._joining.in_lots(planned)
            before = summary.ran
            counts = Summary() if again else summary
            self._round(number, planned, summary, counts, view, should_stop, emit, began)
            if summary.interrupted or summary.out_of_budget or summary.late.waiting:
                break
            self._end_round(number, planned, view, time.monotonic() - began, ran=summary.ran > before)

    def _go_on(
        self,
        joining: Joining,
        summary: Summary,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
        began: float,
    ) -> None:
        """Goes over the plan again until all that is left is in the hands of others who live.

        Where the budget has no room for further rounds, over the first one alone.
        """
        ran = 0
        while not summary.interrupted:
            goes_on = summary.ran > ran
            if not goes_on and not self._waits and joining.is_thorough:
                break
            # Before it leaves, or while it waits, it asks after every owner.
            joining.is_thorough = not goes_on
            ran = summary.ran
            joining.give_back()
            if self._waits:
                time.sleep(POLL_S)
            if self.bench.beating(should_stop)():
                summary.interrupted = True
                break
            joining.read()
            last = 1 if summary.out_of_budget else None
            self._pass(summary, view, should_stop, emit, began, again=True, last=last)
        joining.give_back()

    def _count_all(self, summary: Summary) -> None:
        """Counts what is stored in the end, whoever measured it: the same command again would count the same."""
        first, planned = self.chosen(), self.pending()
        # What --retry asks for counts as left; it was tried all the same.
        endings = [item.ended or _badly(item.unit, first) for item in planned]
        summary.failed, summary.timed_out = endings.count("failed"), endings.count("timeout")
        summary.reused = max(0, sum(item.state == "done" for item in planned) - summary.ran)
        left = (item for item, ended in zip(planned, endings, strict=True) if not ended)
        summary.elsewhere = sum(item.state == "run" for item in left)

    def _not_skipped(self, planned: Sequence[Planned]) -> list[Planned]:
        """Those that this sweep has not skipped yet: the GPU that a unit lacked is not back in the next round."""
        return [item for item in planned if item.unit.jobs[0].trial_id not in self.skips]

    def _round(
        self,
        round_: int,
        planned: Sequence[Planned],
        summary: Summary,
        counts: Summary,
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
        began: float,
    ) -> None:
        """Goes over the plan once. `counts`: where units are counted that need not run."""
        forecast = self.forecast(planned, round_)
        ahead = self._outlook(round_, planned)
        # A further round changes nothing of what counts in the first.
        first = self.chosen() if round_ > 1 else {}
        oom = OutOfMemory()
        begun = False
        for number, item in enumerate(planned, start=1):
            unit = item.unit
            state, why = item.state, item.why
            if (
                state == "done"
                and round_ == 1
                and unit.is_group
                and summary.ran
                and lacks_its_answer(unit, self.chosen())
            ):
                state = "run"  # a trial that its jobs are compared with has just been measured
            if state == "run" and round_ == 1 and "oom" not in self.settings.retry:
                # Looked at again: a smaller batch may have run out of memory since.
                since = skip_reason(unit, oom, None, self.plan.device)
                state, why = ("skip", since) if since else (state, why)
            if state == "run" and self.bench.uses_gpus(unit):
                self.look_at_gpus(planned[number - 1 :], view)
                if lost := self.bench.lost_to(unit):
                    state, why = "skip", "; ".join(loss.words for loss in lost)
                    summary.lost += not self.skips.keys() >= {job.trial_id for job in unit.jobs}
            if state == "run" and self._has_time(unit, round_, forecast.of(number - 1), summary) != "begin":
                continue  # one that takes less may still have time
            if state == "run" and self._joining is not None and not should_stop():
                turn_now, why = self._joining.turn(unit, round_)
                self._waits |= turn_now == "waits"
                if turn_now not in ("run", "skip"):
                    continue
                state = turn_now
            if state == "done":
                counts.reused += round_ == 1
            elif state == "skip":
                counts.skipped += 1
                if self.skips.keys() >= {job.trial_id for job in unit.jobs}:
                    continue  # said in an earlier pass
                self.skips |= {job.trial_id: why for job in unit.jobs}
                view.say(f"[{number}/{len(planned)}] {unit_label(self.plan, unit)}  skipped: {why}")
            elif state == "failed":
                counts.add(item.ended)
            elif should_stop():
                summary.interrupted = True
                break
            elif round_ > 1 and self._over_budget(time.monotonic() - began + forecast.of(number - 1)):
                summary.out_of_budget = True
                if self._over_budget(forecast.of(number - 1)):
                    summary.longest_s = forecast.of(number - 1)
                break
            else:
                if not begun:  # not before: a budget, or a lost GPU, may leave nothing of a round
                    begun = True
                    view.began_round(round_, self.plan.experiment.rounds)
                if round_ > 1 and self.settings.ahead:
                    self._make_ready(
                        round_, number, planned, first, view, should_stop, began, forecast, ahead
                    )
                    if should_stop():
                        summary.interrupted = True
                        break
                turn = self._turn(unit, round_, first)
                status = self._run_unit(
                    number, planned, view, should_stop, emit, began, forecast, turn, ahead
                )
                if status == "oom":
                    oom.add(unit)
                summary.ran += 1
                summary.add(status)
                if self._joining is None:
                    self._write_tables_sometimes(view)
                if status == "interrupted":
                    summary.interrupted = True
                    break
        counts.stale += sum(item.stale for item in planned if item.state == "done")

    def _make_ready(
        self,
        round_: int,
        number: int,
        planned: Sequence[Planned],
        first: Mapping[str, Record],
        view: View,
        should_stop: Callable[[], bool],
        began: float,
        forecast: Forecast,
        ahead: Outlook,
    ) -> None:
        """Has this unit of a further round made ready, side by side with those after it."""
        place = number - 1
        making_began = time.monotonic()
        all_s = forecast.of(place) + forecast.after(place)

        def has_time(index: int) -> bool:
            spent_s = making_began - began + all_s - forecast.after(index)
            return not self._over_budget(spent_s)

        def look(processes: int, trials: int, ready: int) -> None:
            now = time.monotonic()
            left = ahead.left(max(0.0, all_s - (now - making_began)), now - began, forecast.pace)
            view.update(
                LiveProgress(
                    done=place,
                    total=len(planned),
                    trial_label=unit_label(self.plan, planned[place].unit),
                    elapsed_s=now - began,
                    left_s=left.seconds,
                    until=left.until,
                    at_least=left.at_least,
                    at_most=left.at_most,
                    note=f"making {processes} processes ready ({ready} of {trials} trials are)",
                )
            )

        self._preparation.make_ready(
            lambda unit: self._turn(unit, round_, first),
            round_,
            place,
            planned,
            first,
            has_time,
            should_stop,
            look,
        )

    def _end_round(
        self, number: int, planned: Sequence[Planned], view: View, elapsed_s: float, *, ran: bool
    ) -> None:
        """Tells how sure the figures are after a round, and what is left; the table stands from now on."""
        rounds = self.plan.experiment.rounds
        if rounds.most == 1:
            return
        view.stands(self.own_table, at_once=True)
        if ran and (table := self.own_table()):
            ends = self.answered() is not None
            left = Left(seconds=0) if ends else self._outlook(number, planned, over=True).left(0.0, elapsed_s)
            view.ended_round(round_line(number, rounds, table, left))

    def own_table(self) -> Table | None:
        """The table of this sweep's own trials as it is now."""
        return table_of(self.plan, self.alike(), self.skips)

    def _has_time(self, unit: Unit, round_: int, forecast_s: float, summary: Summary) -> Verdict:
        """Whether a unit still ends within the batch job; notes it where it does not."""
        wall = self.wall_time
        if wall is None:
            return "begin"
        now = time.monotonic()
        # Whether it is more than a guess is looked up only where it matters: that goes through all rows.
        known = forecast_s <= wall.ends_s - now or self.estimates([unit], round_)[0].known
        broken_off_s = max(self._broken_off_s().get(job.trial_id, 0.0) for job in unit.jobs)
        need = at_least(Estimate(forecast_s, known), broken_off_s)
        verdict = wall.verdict(need, now, is_first=not summary.ran)
        summary.late.note(unit.unit_id, verdict, need, wall, now)
        return verdict

    def _broken_off_s(self) -> Mapping[str, float]:
        """Trial id -> how long its longest attempt had taken when it was stopped. Worked out once: a stop ends all."""
        if self._broken_off is None:
            self._broken_off = {}
            here = {self.bench.machine_key(job) for job in self.plan.jobs}
            for record in self.records:
                if record.status == "interrupted" and record.machine_key in here:
                    known_s = self._broken_off.get(record.trial_id, 0.0)
                    self._broken_off[record.trial_id] = max(known_s, record.phases.get("wall", 0.0))
        return self._broken_off

    def _over_budget(self, spent_s: float) -> bool:
        budget_s = self.plan.experiment.rounds.budget_s
        return budget_s is not None and spent_s > budget_s

    def look_at_gpus(self, left: Sequence[Planned], view: View) -> None:
        """Says which GPUs were lost since the last look. `left`: what is still to be done, in order.

        Raises UnusableError where no GPU is left and all that is left to run needs one.
        """
        self.bench.look_for_losses()
        on_cpu = (item.state == "run" and not self.bench.uses_gpus(item.unit) for item in left)
        if not self.bench.has_gpus_left and not any(on_cpu):
            raise none_left(self.bench.lost.values())
        self._tell_losses(view)

    def _tell_losses(self, view: View) -> None:
        """Each once."""
        for number in sorted(self.bench.lost.keys() - self._told):
            self._told.add(number)
            view.say(
                f"{self.bench.lost[number].words}. Trials that need it are skipped, the others go on "
                "with the GPUs that are left"
            )

    def _alone(self, group_prediction: GroupPrediction) -> list[Row]:
        """The rows of the trials alone that a group is compared with, with the doubts of their repeats."""
        solos = {solo.trial_id: solo for solo in group_prediction.solos if solo}
        told = rows_among(list(solos.values()), self.records)
        return [told[solo.trial_id] for solo in group_prediction.solos if solo]

    def _run_unit(
        self,
        number: int,
        planned: Sequence[Planned],
        view: View,
        should_stop: Callable[[], bool],
        emit: Callable[[Row], None],
        began: float,
        forecast: Forecast,
        turn: Turn,
        ahead: Outlook,
    ) -> str:
        """Runs one unit, tells of it before and after; returns how it ended."""
        unit = planned[number - 1].unit
        label = unit_label(self.plan, unit)
        group_prediction = self.predict(unit)
        if unit.is_group:
            said = prediction_line(group_prediction, self._alone(group_prediction))
            view.say(f"[{number}/{len(planned)}] {label}  {said}")
        view.started(number, len(planned), label)
        unit_began = time.monotonic()
        look = self._look(view, number, planned, began, unit_began, forecast, turn, ahead)
        records = self.bench.run(unit, group_prediction, should_stop, look, turn)
        self.records += records
        self.measured |= {(record.trial_id, record.attempt) for record in records}
        self.ended += sum(record.status != "interrupted" for record in records)
        status = ending([record.status for record in records])
        if status == "ok":  # one that broke off says nothing of the others
            took_s = time.monotonic() - unit_began + self._preparation.seconds(unit)
            forecast.took(number - 1, took_s)
            if turn.round > 1:
                self._took[unit.unit_id] = took_s
        told = rows_among(records, self.records)
        rows = [told[record.trial_id] for record in records]
        for row in rows:
            emit(row)
        # In tables the log's path is that in the folder; on a terminal it is for who stands outside.
        rows = [replace(row, log=str(self.bench.results.folder / (row.log or ""))) for row in rows]
        if unit.is_group:
            view.finished_group(number, len(planned), label, rows)
        else:
            view.finished(number, len(planned), label, rows[0])
        if turn.round > 1:
            view.stands(self.own_table)
        return status

    def predict(self, unit: Unit) -> GroupPrediction:
        """What the trials alone, as far as they were measured here, say of a group."""
        return predict_group(unit, self.bench.resolve(unit), self.chosen() if unit.is_group else {})

    # ---- after ----

    def _write_tables_sometimes(self, view: View) -> None:
        if time.monotonic() >= self._tables_due:
            self._tables_due = time.monotonic() + TABLES_PERIOD_S
            before = self.unwritten
            self.write_tables()
            if self.unwritten and not before:
                view.say(f"tables: {self.unwritten}; the sweep goes on, and what it measures is kept")

    def write_tables(self) -> None:
        """All tables of the folder, from what is held here, as far as they can be written."""
        found = contents(self.bench.results, self.records, self.skips, noise=self.noise)
        self.problems = found.problems
        try:
            write_contents(self.bench.results, self.records, found)
        except UnusableError as error:
            self.unwritten = str(error)
        else:
            self.unwritten = ""

    # ---- helpers ----

    def _look(
        self,
        view: View,
        number: int,
        planned: Sequence[Planned],
        began: float,
        unit_began: float,
        forecast: Forecast,
        turn: Turn,
        ahead: Outlook,
    ) -> Callable[[Sequence[JobProgress]], None]:
        unit = planned[number - 1].unit
        estimated_s, after_s = forecast.of(number - 1), forecast.after(number - 1)

        def look(progress: Sequence[JobProgress]) -> None:
            now = time.monotonic()
            view.update(
                progress_of(
                    unit,
                    progress,
                    steps=turn.each(unit),
                    label=unit_label(self.plan, unit),
                    done=number - 1,
                    total=len(planned),
                    spent_s=now - unit_began,
                    elapsed_s=now - began,
                    estimated_s=estimated_s,
                    after_s=after_s,
                    ahead=ahead,
                    pace=forecast.pace if turn.round > 1 else 1.0,
                )
            )

        return look


def _badly(unit: Unit, chosen: Mapping[str, Record]) -> str:
    """How a unit ended in the first round, if it was `failed` or `timeout`; empty else."""
    statuses = [chosen[job.trial_id].status for job in unit.jobs if job.trial_id in chosen]
    status = ending(statuses) if len(statuses) == len(unit.jobs) else ""
    return status if status in ("failed", "timeout") else ""
