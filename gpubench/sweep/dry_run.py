"""`gpubench sweep -n`: what each unit of a plan will come to."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpubench.plan.estimate import words
from gpubench.plan.rounds import Rounds
from gpubench.plan.state import Planned
from gpubench.plan.unit_label import unit_label
from gpubench.sweep.announcing import (
    beside,
    counted,
    dropped_lines,
    left_in_rounds,
    named,
    training_line,
)
from gpubench.sweep.preflight import remedy
from gpubench.sweep.sweep import Sweep

LABEL_WIDTH = 40
"""Longer labels push what follows to the right, in their lines alone."""


def print_plan(work: Sweep, planned: Sequence[Planned], load: str = "") -> None:
    """`-n`: each trial's id, what becomes of it, and how long it should take. Plain text on stdout.

    `load`: how much other work takes of the CPUs, `1.8 of 2 CPUs`; empty for none.
    """
    estimates = iter(work.estimates_of_all(planned))
    rounds = work.plan.experiment.rounds
    lines = []
    total = 0.0
    wide = min(LABEL_WIDTH, max((len(unit_label(work.plan, item.unit)) for item in planned), default=0))
    for item in planned:
        if item.state == "run":
            guess = next(estimates)
            total += guess.seconds
            most = item.unit.jobs[0].trial.until_top1 is not None
            fate = f"{'at most' if most else 'about' if guess.known else 'roughly'} {words(guess.seconds)}"
            fate += _in_which(item, rounds)
            fate += f" (what is stored is not reused: {item.why})" if item.why else ""
        elif item.state == "done":
            fate = f"done ({item.why}{', stale: other versions' if item.stale else ''})"
        else:
            before = "timed out" if item.ended == "timeout" else "failed"
            fate = "skipped: " if item.state == "skip" else f"{before} before (--retry {item.ended}): "
            fate += item.why
        lines.append(f"{item.unit.unit_id}  {unit_label(work.plan, item.unit):<{wide}}  {fate}")
    advice = remedy(planned, work.bench.node.machine)
    lines += [f"what needs more than this machine has is skipped: {advice}"] if advice else []
    lines += dropped_lines(work.plan)
    lines.append(training_line(work.plan))
    folder = work.bench.results.folder
    to_run = sum(item.state == "run" for item in planned)
    of = f"of {len(planned)} planned"
    some = f" ({of})" if to_run < len(planned) else ""
    lasts = f"{words(total)}{' a round' if rounds.is_open else ''}{beside(load)}"
    what = (
        f"{counted(planned)} to run{some}{left_in_rounds(planned, rounds)}; {lasts}"
        if to_run
        else f"nothing to run {of}"
    )
    lines.append(f"{what}; results in {folder}")
    sys.stdout.write("\n".join(lines) + "\n")


def _in_which(item: Planned, rounds: Rounds) -> str:
    """In which rounds a unit is to run, where there are several."""
    if rounds.most == 1:
        return ""
    if rounds.is_open:
        next_one = item.rounds[0] if item.rounds else 1
        return f" in round {next_one}" + ("; further rounds may follow" if next_one < rounds.most else "")
    return f", in {named(item.rounds)}" if item.rounds else f", in {rounds.most} rounds"
