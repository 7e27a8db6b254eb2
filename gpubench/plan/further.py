"""A sweep's further rounds: what each measures again, in which order, and for how long. Pure.

The first round measures all that there is to measure of every trial. Further ones ask one thing only: how long a trial
takes in another process, for processes of one configuration differ. A few seconds of steady steps tell that.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.certainty.steps import FEWEST_STEPS
from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import Resolved
from gpubench.plan.state import Planned
from gpubench.schema.record import FINAL, Record, ending

WINDOW_S = 1.0
"""Seconds of steady steps that a further round measures of each trial, at least: shorter ones stand at the mercy of
whatever else the host does."""
LONGEST_WINDOW_S = 10.0
STEP_ERROR_PCT = 0.5
"""What a window's own steps may leave open of its mean: a quarter of the 2 % within which people ask to know it."""


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
    """How many steps a further round measures: at most an epoch's.

    As many steady ones as leave STEP_ERROR_PCT of their mean open, if they vary as they did in the first round, from
    WINDOW_S to LONGEST_WINDOW_S of them. `first`: the trial's attempt there.
    """
    if job.trial.steps:
        return job.trial.steps
    measured = [epoch for epoch in first.epochs if not epoch["warmup"]]
    own = resolved.workers // resolved.processes
    wave, ahead = max(1, own), own * job.trial.prefetch
    step_s = max(float(measured[-1]["steady_step_s"]), 1e-6)
    wanted_s = LONGEST_WINDOW_S
    if (error_pct := first.result.step_error_pct) is not None:
        seen_s = step_s * sum(epoch["steady_steps"] for epoch in measured)
        wanted_s = seen_s * (error_pct / STEP_ERROR_PCT) ** 2
    steady = max(FEWEST_STEPS, math.ceil(min(max(wanted_s, WINDOW_S), LONGEST_WINDOW_S) / step_s))
    whole = wave + math.ceil(steady / wave) * wave + ahead
    return min(whole, int(measured[-1]["steps"]))
