"""What a sweep says when it has ended: its answer, and what there is left to do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from gpubench.basics.quiet_pipe import ignore_lost_output
from gpubench.basics.quoted import format_readable_json
from gpubench.basics.words import format_count
from gpubench.plan.state import PlannedUnit
from gpubench.plan.sweep_options import Mode
from gpubench.render import terminal
from gpubench.render.live import View
from gpubench.results.rows import make_row_json_object
from gpubench.run.limits import Limits, SweepSummary
from gpubench.run.sweep_state import SweepState
from gpubench.schema.row import Row

NAMED = 3
"""How many of the workers are named."""


def print_row_if_json(row: Row, mode: Mode) -> None:
    """With --json, a line for each trial as it ends; the jobs of a group each have one."""
    if mode == "json":
        with ignore_lost_output():  # where nobody reads any more, measuring goes on; the records have it all
            print(format_readable_json(make_row_json_object(row)), flush=True)


def print_result(
    state: SweepState,
    planned: Sequence[PlannedUnit],
    summary: SweepSummary,
    limits: Limits,
    view: View,
    mode: Mode,
) -> None:
    """Prints the answer on stdout and what else there is to say on stderr."""
    for problem in state.problems:
        view.say(problem)
    folder = state.runner.results.folder
    if mode == "quiet":
        print(folder)
    elif mode == "table":
        terminal.print_reports(state.make_reports(), Console(highlight=False))
    elif mode == "json":
        for row in state.list_reused_rows(planned):
            print_row_if_json(row, mode)
    workers, timeout_s = state.list_other_workers() if summary.elsewhere else [], state.runner.timeout_s
    for line in list_closing_lines(summary, limits, folder, workers=workers, timeout_s=timeout_s):
        view.say(line)


def list_closing_lines(
    summary: SweepSummary, limits: Limits, folder: Path, *, workers: Sequence[str], timeout_s: float
) -> Iterator[str]:
    """What has kept the sweep from measuring more, and what to do about each; pure.

    `workers`: who else is at work in the folder. `timeout_s`: the limit of a trial.
    """
    reached = [line for limit in limits if (line := limit.format_closing_line()) is not None]
    if limits.is_resumable:
        yield reached.pop(0)  # it explains all else
        reached = []
    elif summary.ran == 0 and not (
        summary.elsewhere or limits.batch_job.late.never or limits.certainty.is_over_budget
    ):
        yield (
            f"nothing left to do: {summary.reused} done, {summary.skipped} skipped, {summary.failed} failed and "
            f"{summary.timed_out} timed out before"
        )
    if summary.elsewhere:
        who = f"{describe_other_workers(workers)} at work on" if workers else "other sweeps have taken"
        yield (
            f"{who} {summary.elsewhere} of its trials and groups, which the table lacks yet; "
            f"gpubench status {folder} tells how far they are"
        )
    yield from reached
    where = f"in {folder / 'trials.csv'}, the logs in {folder / 'logs'}"
    if summary.failed:
        yield f"{summary.failed} failed: the reasons are {where}; --retry failed runs them again"
    if summary.timed_out:
        longer = f"--retry timeout --timeout {math.ceil(2 * timeout_s)}s"
        yield f"{summary.timed_out} timed out: where each stood is {where}; {longer} gives twice the time"
    if summary.stale:
        yield f"{summary.stale} measured under other versions; --retry stale measures them again"


def describe_other_workers(workers: Sequence[str]) -> str:
    """`1 other (process 7 on host) is`, of who works through the same plan."""
    names = ", ".join(workers[:NAMED]) + (f" and {len(workers) - NAMED} more" if len(workers) > NAMED else "")
    return f"{format_count(len(workers), 'other')} ({names}) {'is' if len(workers) == 1 else 'are'}"
