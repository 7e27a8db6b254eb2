"""A sweep's further rounds: what each measures again, in which order, and for how long. Pure.

The first round measures all that there is to measure of every trial. Further ones ask one thing only: how long a trial
takes in another process, for processes of one configuration differ. A few seconds of steady steps tell that.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import Resolved
from gpubench.plan.state import Planned
from gpubench.schema.record import FINAL, Record, ending

WINDOW_S = 2.0
"""Seconds of steady steps that a further round measures of each trial, at least."""
FEWEST_STEPS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One unit's turn in one round."""

    round: int = 1
    steps: tuple[int, ...] = ()
    """How many steps are measured of each of its jobs; empty: what its trials ask for."""

    def each(self, unit: Unit) -> Sequence[int | None]:
        """Those of each job; None: what its trial asks for."""
        return self.steps or (None,) * len(unit.jobs)


FIRST = Turn()


def further(
    units: Sequence[Unit],
    first: Mapping[str, Record],
    here: Mapping[str, Record],
    number: int,
    retry: frozenset[str] = frozenset(),
) -> list[Planned]:
    """The units of round `number`, from 2 on, in random order: those whose jobs all ended ok in the first.

    `first`, `here`: trial id -> the attempt that counts in the first round, and in this one.
    """
    found = []
    for unit in units:
        ids = [job.trial_id for job in unit.jobs]
        if any(one not in first or first[one].status != "ok" for one in ids):
            continue
        records = [here[one] for one in ids if one in here]
        status = ending([one.status for one in records]) if len(records) == len(ids) else "missing"
        if status in FINAL and status not in retry:
            found.append(Planned(unit, "done", status))
        elif status in ("failed", "timeout") and status not in retry:
            why = next(record.reason for record in records if record.status == status)
            found.append(Planned(unit, "failed", why, ended=status))
        else:
            found.append(Planned(unit, "run"))
    if found:
        seed = found[0].unit.jobs[0].trial.seed
        random.Random(f"{seed}, round {number}").shuffle(found)
    return found


def window_steps(job: Job, resolved: Resolved, first: Record) -> int:
    """How many steps a further round measures: as long as it takes for WINDOW_S of steady ones, at most an epoch.

    `first`: the trial's attempt in the first round, which tells how long a step takes.
    """
    if job.trial.steps:
        return job.trial.steps
    measured = [epoch for epoch in first.epochs if not epoch["warmup"]]
    own = resolved.workers // resolved.processes
    wave, ahead = max(1, own), own * job.trial.prefetch
    step_s = max(float(measured[-1]["steady_step_s"]), 1e-6)
    steady = max(FEWEST_STEPS, math.ceil(WINDOW_S / step_s))
    whole = wave + math.ceil(steady / wave) * wave + ahead
    return min(whole, int(measured[-1]["steps"]))
