"""What a sweep says when it has ended: its answer, and what there is left to do."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console

from gpubench.basics.quiet_pipe import outliving_output
from gpubench.basics.quoted import to_json
from gpubench.basics.words import many
from gpubench.plan.estimate import asked_words, words
from gpubench.plan.rounds import MOST
from gpubench.plan.state import Planned
from gpubench.plan.sweep_options import Mode
from gpubench.render import live, terminal
from gpubench.results.rows import json_line
from gpubench.schema.row import Row
from gpubench.sweep.summary import Summary
from gpubench.sweep.sweep import Sweep

NAMED = 3
"""How many of the others are named."""


def emit(row: Row, mode: Mode) -> None:
    """With --json, a line for each trial as it ends; the jobs of a group each have one."""
    if mode == "json":
        with (
            outliving_output()
        ):  # nobody may read any more; the measuring goes on, and the records have it all
            print(to_json(json_line(row)), flush=True)


def finish(work: Sweep, planned: Sequence[Planned], summary: Summary, view: live.View, mode: Mode) -> None:
    """Prints the answer on stdout and what else there is to say on stderr."""
    for problem in work.problems:
        view.say(problem)
    if mode == "quiet":
        print(work.bench.results.folder)
    elif mode == "table":
        terminal.show(work.report(), Console(highlight=False))
    elif mode == "json":
        for row in work.reused(planned):
            emit(row, mode)
    if summary.interrupted:
        view.say(f"stopped; {goes_on(fresh=work.settings.fresh)}")
    elif summary.late.waiting:
        view.say(f"{summary.late.line()}; {goes_on(fresh=work.settings.fresh)}")
    elif summary.ran == 0 and not (
        summary.lost or summary.late.never or summary.out_of_budget or summary.elsewhere
    ):
        late = f", {summary.timed_out} timed out before" if summary.timed_out else ""
        view.say(
            f"nothing left to do: {summary.reused} done, {summary.skipped} skipped, "
            f"{summary.failed} failed before{late}"
        )
    if summary.elsewhere:
        others = work.list_others()
        who = f"{others_words(others)} at work on" if others else "other sweeps have taken"
        view.say(
            f"{who} {summary.elsewhere} of its trials and groups, which the table lacks yet; "
            f"gpubench status {work.bench.results.folder} tells how far they are"
        )
    if (line := rounds_line(work, summary)) is not None:
        view.say(line)
    folder = work.bench.results.folder
    where = f"in {folder / 'trials.csv'}, the logs in {folder / 'logs'}"
    if summary.failed:
        again = "it" if summary.failed == 1 else "them"
        view.say(f"{summary.failed} failed: the reasons are {where}; --retry failed runs {again} again")
    if summary.timed_out:
        they, again = ("it", "it") if summary.timed_out == 1 else ("they", "them")
        limit_s = work.bench.timeout_s
        view.say(
            f"{summary.timed_out} timed out: where {they} stood at the deadline is {where}; the limit is now "
            f"{limit_s:g} s a trial, and --retry timeout --timeout {twice(limit_s)} runs {again} again with twice that"
        )
    if summary.lost:
        view.say(
            f"{summary.lost} skipped because a GPU was lost: once it is back, the same command runs them"
        )
    if summary.stale:
        were, again = ("was", "it") if summary.stale == 1 else ("were", "them")
        view.say(
            f"{summary.stale} {were} measured under other versions; --retry stale measures {again} again"
        )


def rounds_line(work: Sweep, summary: Summary) -> str | None:
    """Why further rounds ended before they were to, or before all was known as well as was asked for."""
    if summary.is_resumable:
        return None
    if summary.answered is not None:
        rounds_gone = many(summary.answered, "round")
        return f"every question of the table that further rounds can answer is answered, after {rounds_gone}"
    if not (summary.out_of_budget or summary.unsure):
        return None
    rounds = work.plan.experiment.rounds
    unsure = ""
    if summary.unsure:
        what = "1 trial is" if summary.unsure == 1 else f"{summary.unsure} trials are"
        unsure = f"{what} not known within {rounds.within_pct:g} % yet"
    if summary.out_of_budget and rounds.budget_s is not None:
        plain = "the same command without --fresh" if work.settings.fresh else "the same command"
        more = f", and {unsure}" if unsure else ""
        if summary.longest_s:
            return (
                f"the budget of {asked_words(rounds.budget_s)} is too short for one more process, which takes about "
                f"{words(summary.longest_s)}{more}; a longer --budget goes on with further rounds"
            )
        budget = asked_words(rounds.budget_s)
        return f"the budget of {budget} has no room for another process{more}; {plain} goes on with further rounds"
    if rounds.most == MOST:
        return f"{unsure}, after {MOST} rounds, which is as many as there may be"
    return f"{unsure}, after {many(rounds.most, 'round')}; --rounds {min(MOST, 2 * rounds.most)} goes on"


def others_words(others: Sequence[str]) -> str:
    """`1 other (process 7 on host) is`, of who works through the same plan."""
    named = ", ".join(others[:NAMED]) + (f" and {len(others) - NAMED} more" if len(others) > NAMED else "")
    return f"{many(len(others), 'other')} ({named}) {'is' if len(others) == 1 else 'are'}"


def twice(limit_s: float) -> str:
    """Twice a time limit, as --timeout takes it: in whole minutes where it is some."""
    doubled = math.ceil(2 * limit_s)
    return f"{doubled // 60}m" if doubled % 60 == 0 else f"{doubled}s"


def goes_on(*, fresh: bool) -> str:
    """How a sweep that was stopped is gone on with."""
    if fresh:  # the same command would begin anew, and without --fresh the older rows count
        return "rows that were not reached are older ones; the same command measures all of them anew"
    return "to continue, run the same command again"
