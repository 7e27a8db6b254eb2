"""Runs a sweep: round after round, and, where others work beside it, over the plan again until all that is left is in
their hands."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence

from gpubench.plan.outlook import Left
from gpubench.plan.plan import Unit
from gpubench.plan.state import Planned, unit_ending
from gpubench.render.live import View
from gpubench.render.running import describe_round_end
from gpubench.schema.record import Record
from gpubench.schema.row import Row
from gpubench.sweep.losses import none_left
from gpubench.sweep.running_round import RunningRound
from gpubench.sweep.running_sweep import RunningSweep
from gpubench.sweep.summary import Summary
from gpubench.sweep.sweep import Sweep
from gpubench.sweep.work_queue import POLL_S


def run(
    work: Sweep,
    view: View,
    should_stop: Callable[[], bool],
    emit: Callable[[Row], None],
) -> Summary:
    """Runs what is to be run. Every attempt is stored before the next one begins.

    A table that can't be written ends nothing: `work.unwritten` says so in the end. Raises UnusableError where no GPU
    is left and all that is left to run needs one.
    """
    load_tables()
    work.bench.results.identify(work.records)
    try:
        summary = _run(RunningSweep.of(work, view, should_stop, emit))
    except BaseException:
        work.leave()  # the first error is the one to tell
        raise
    work.leave()
    return summary


def load_tables() -> None:
    """Imports what makes tables, so that nothing is imported while a trial is measured."""
    importlib.import_module("gpubench.sweep.tables")
    importlib.import_module("gpubench.sweep.predicting")


def _run(running: RunningSweep) -> Summary:
    work, summary = running.work, running.summary
    _pass(running)
    if running.queue.is_shared:
        _go_on(running)
        if summary.late:  # others may have had the time
            running.queue.read()
            summary.late.keep({item.unit.unit_id for item in work.pending() if item.state == "run"})
        _count_all(work, summary)
    if summary.lost and not work.bench.has_gpus_left:
        raise none_left(work.bench.lost.values())
    work.tell_losses(running.view)
    summary.unsure = work.unsure(work.skips)
    summary.answered = work.answered()
    return summary


def _pass(running: RunningSweep, *, again: bool = False, last: int | None = None) -> None:
    """Goes through all rounds, or as far as the `last`. `again`: not for the first time, so that what is done is not
    counted anew."""
    work, summary = running.work, running.summary
    running.queue.begin_pass()
    for number in range(1, (last or work.plan.experiment.rounds.most) + 1):
        planned = work.survey() if number == 1 else _not_skipped(work, work.left_in(number))
        if number > 1 and not planned:
            break
        planned = running.queue.in_lots(planned)
        before = summary.ran
        RunningRound.of(running, number, planned, Summary() if again else summary).go()
        if summary.is_over:
            break
        _end_round(running, number, planned, has_run=summary.ran > before)


def _not_skipped(work: Sweep, planned: Sequence[Planned]) -> list[Planned]:
    """Those that this sweep has not skipped yet: the GPU that a unit lacked is not back in the next round."""
    return [item for item in planned if item.unit.jobs[0].trial_id not in work.skips]


def _end_round(running: RunningSweep, number: int, planned: Sequence[Planned], *, has_run: bool) -> None:
    """Tells how sure the figures are after a round, and what is left; the table stands from now on."""
    work = running.work
    rounds = work.plan.experiment.rounds
    if rounds.most == 1:
        return
    if has_run:
        standing = work.stand()
        running.view.show_table(lambda: standing, at_once=True)
        if work.answered() is not None:
            left = Left(seconds=0)
        else:
            left = work.outlook(number, planned, over=True).left(0.0, running.time.elapsed_s)
        running.view.ended_round(describe_round_end(number, rounds, standing.report, left))


def _go_on(running: RunningSweep) -> None:
    """Goes over the plan again until all that is left is in the hands of others who live.

    Where the budget has no room for further rounds, over the first one alone.
    """
    summary, queue, ran = running.summary, running.queue, 0
    while not summary.interrupted and queue.is_shared and (summary.ran > ran or queue.waits):
        ran = summary.ran
        running.work.bench.claims.give_back()
        if queue.waits:
            time.sleep(POLL_S)
        if running.should_stop():
            summary.interrupted = True
            break
        queue.read()
        _pass(running, again=True, last=1 if summary.out_of_budget else None)
    running.work.bench.claims.give_back()


def _count_all(work: Sweep, summary: Summary) -> None:
    """Counts what is stored in the end, whoever measured it: the same command again would count the same."""
    first, planned = work.chosen(), work.pending()
    # What --retry asks for counts as left; it was tried all the same.
    endings = [item.ended or _badly(item.unit, first) for item in planned]
    summary.failed, summary.timed_out = endings.count("failed"), endings.count("timeout")
    summary.reused = max(0, sum(item.state == "done" for item in planned) - summary.ran)
    left = (item for item, ended in zip(planned, endings, strict=True) if not ended)
    summary.elsewhere = sum(item.state == "run" for item in left)


def _badly(unit: Unit, chosen: Mapping[str, Record]) -> str:
    """How a unit ended in the first round, if it was `failed` or `timeout`; empty else."""
    status = unit_ending(unit, chosen)
    return status if status in ("failed", "timeout") else ""
