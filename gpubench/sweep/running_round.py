"""One round of a sweep: for each unit what becomes of it, and the units that are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpubench.plan.estimate import Forecast
from gpubench.plan.outlook import Outlook
from gpubench.plan.skips import OutOfMemory, skip_reason
from gpubench.plan.state import Planned, lacks_its_answer
from gpubench.plan.unit_label import unit_label
from gpubench.record.together import GroupPrediction
from gpubench.schema.attempt import JobProgress
from gpubench.schema.record import Record, ending
from gpubench.schema.row import Row, replace
from gpubench.sweep.prediction_line import prediction_line
from gpubench.sweep.progress import progress_of
from gpubench.sweep.running_sweep import RunningSweep
from gpubench.sweep.summary import Summary

LEFT = "left"
"""What becomes of a unit that is not this sweep's to run now."""


@dataclass(kw_only=True, slots=True)
class RunningRound:
    """One round, or what is left of it. A unit's place is its number in `planned`, from 0."""

    running: RunningSweep
    number: int
    planned: Sequence[Planned]
    counts: Summary
    """Where units are counted that need not run."""
    forecast: Forecast
    outlook: Outlook
    """What comes after this round."""
    _oom: OutOfMemory = field(default_factory=OutOfMemory)
    _has_begun: bool = False

    @classmethod
    def of(
        cls, running: RunningSweep, number: int, planned: Sequence[Planned], counts: Summary
    ) -> RunningRound:
        work = running.work
        return cls(
            running=running,
            number=number,
            planned=planned,
            counts=counts,
            forecast=work.forecast(planned),
            outlook=work.outlook(number, planned),
        )

    def go(self) -> None:
        """Goes over the plan once, as far as nothing stops it."""
        for place, item in enumerate(self.planned):
            state, why = self._state(place, item)
            if state == LEFT:
                continue
            if state == "run":
                if not self._may_begin(place) or self._run(place) == "interrupted":
                    break
            else:
                self._count(place, state, why)
        self.counts.stale += sum(item.stale for item in self.planned if item.state == "done")

    # ---- what becomes of a unit ----

    def _state(self, place: int, item: Planned) -> tuple[str, str]:
        """What becomes of a unit as things stand now, and why: `run`, `done`, `skip`, `failed` or `left`."""
        unit, state, why = item.unit, item.state, item.why
        work = self.running.work
        is_first = self.number == 1
        if state == "done" and is_first and unit.is_group and self.running.summary.ran:
            # A trial that its jobs are compared with may just have been measured.
            state = "run" if lacks_its_answer(unit, work.chosen()) else state
        if state == "run" and is_first and "oom" not in work.settings.retry:
            # Looked at again: a smaller batch may have run out of memory since.
            since = skip_reason(unit, self._oom, None, work.plan.device)
            state, why = ("skip", since) if since else (state, why)
        if state == "run" and work.bench.uses_gpus(unit):
            work.look_at_gpus(self.planned[place:], self.running.view)
            if lost := work.bench.lost_to(unit):
                state, why = "skip", "; ".join(loss.words for loss in lost)
                self.running.summary.lost += not self._is_skipped(item)
        return self._turn(place, item) if state == "run" else (state, why)

    def _turn(self, place: int, item: Planned) -> tuple[str, str]:
        """The same of a unit that is to run: whether there is time for it, and whether it is this sweep's turn."""
        running = self.running
        time_for_it = running.time.verdict(item.unit, self.forecast.of(place), running.summary)
        if time_for_it != "begin":
            return LEFT, ""  # one that takes less may still have time
        if running.should_stop():
            return "run", ""
        turn, why = running.queue.choose(item.unit, self.number)
        return (turn, why) if turn in ("run", "skip") else (LEFT, why)

    def _is_skipped(self, item: Planned) -> bool:
        """Whether this sweep has skipped it in an earlier pass."""
        return self.running.work.skips.keys() >= {job.trial_id for job in item.unit.jobs}

    def _count(self, place: int, state: str, why: str) -> None:
        """Counts a unit that is not run; a skipped one is named, once."""
        item = self.planned[place]
        if state == "done":
            self.counts.reused += self.number == 1
        elif state == "failed":
            self.counts.add(item.ended)
        elif state == "skip":
            self.counts.skipped += 1
            if not self._is_skipped(item):
                self.running.work.skips |= {job.trial_id: why for job in item.unit.jobs}
                self.running.view.say(f"{self._place(place)}  skipped: {why}")

    def _may_begin(self, place: int) -> bool:
        """Whether a unit may begin now: if nothing has stopped the sweep, and the budget of further rounds has room."""
        running, summary = self.running, self.running.summary
        if running.should_stop():
            summary.interrupted = True
            return False
        takes_s = self.forecast.of(place)
        if self.number > 1 and running.time.is_over_budget(running.time.elapsed_s + takes_s):
            summary.out_of_budget = True
            if running.time.is_over_budget(takes_s):
                summary.longest_s = takes_s
            return False
        if not running.work.bench.hold_cpus(self.planned[place].unit, running.should_stop):
            summary.interrupted = True
            return False
        if not self._has_begun:  # not before: a budget, or a lost GPU, may leave nothing of a round
            self._has_begun = True
            running.view.began_round(self.number, running.work.plan.experiment.rounds)
            running.view.show_table(running.work.stand, at_once=True)
        return True

    # ---- a unit that is run ----

    def _run(self, place: int) -> str:
        """Runs one unit and counts it; returns how it ended."""
        running = self.running
        status = self._measure(place)
        if status == "oom":
            self._oom.add(self.planned[place].unit)
        running.summary.ran += 1
        running.summary.add(status)
        running.write_tables_sometimes()
        return status

    def _measure(self, place: int) -> str:
        """Runs one unit, and tells of it before and after; returns how it ended."""
        running, work, view = self.running, self.running.work, self.running.view
        unit, number, total = self.planned[place].unit, place + 1, len(self.planned)
        prediction = work.predict(unit)
        if unit.is_group:
            view.say(f"{self._place(place)}  {prediction_line(prediction, self._alone(prediction))}")
        view.started(number, total, self._label(place), unit.jobs[0].trial_id)
        began = time.monotonic()
        records = work.bench.run(unit, prediction, running.should_stop, self._look(place), self.number)
        work.bench.cpu_hold.release()
        work.keep(records)
        status = ending([record.status for record in records])
        if status == "ok":  # one that broke off says nothing of the others
            took_s = time.monotonic() - began
            self.forecast.took(place, took_s)
            work.took(unit, took_s)
        rows = self._tell(records)
        if unit.is_group:
            view.finished_group(number, total, self._label(place), rows)
        else:
            view.finished(number, total, self._label(place), rows[0])
        view.show_table(work.stand)
        running.summary.interrupted |= status == "interrupted"
        return status

    def _tell(self, records: Sequence[Record]) -> list[Row]:
        """Hands the rows of a unit on; returns them as they are told on a terminal."""
        rows = self.running.work.complete_rows(records, self.running.work.records)
        for row in rows:
            self.running.emit(row)
        # In tables the log's path is that in the folder; on a terminal it is for who stands outside.
        folder = self.running.work.bench.results.folder
        return [replace(row, log=str(folder / (row.log or ""))) for row in rows]

    def _alone(self, prediction: GroupPrediction) -> list[Row]:
        """The rows of the trials alone that a group is compared with, with the doubts of their repeats."""
        solos = {solo.trial_id: solo for solo in prediction.solos if solo}
        rows = self.running.work.complete_rows(list(solos.values()), self.running.work.records)
        return [
            next(row for row in rows if row.trial_id == solo.trial_id) for solo in prediction.solos if solo
        ]

    def _look(self, place: int) -> Callable[[Sequence[JobProgress]], None]:
        running, unit = self.running, self.planned[place].unit
        began = time.monotonic()
        estimated_s, after_s = self.forecast.of(place), self.forecast.after(place)

        def look(progress: Sequence[JobProgress]) -> None:
            running.view.update(
                progress_of(
                    unit,
                    progress,
                    label=self._label(place),
                    done=place,
                    total=len(self.planned),
                    spent_s=time.monotonic() - began,
                    elapsed_s=running.time.elapsed_s,
                    estimated_s=estimated_s,
                    after_s=after_s,
                    ahead=self.outlook,
                    pace=self.forecast.pace,
                )
            )

        return look

    def _label(self, place: int) -> str:
        return unit_label(self.running.work.plan, self.planned[place].unit)

    def _place(self, place: int) -> str:
        return f"[{place + 1}/{len(self.planned)}] {self._label(place)}"
