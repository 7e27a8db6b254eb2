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
STEP_ERROR_PCT = 1.0
"""What a window's own steps may leave open of its mean: half of the 2 % within which people ask to know the mean of
several processes. Processes differ by more where steps vary as much, so that longer windows would buy little."""


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
    number: int,
    rounds: Mapping[int, Mapping[str, Record]],
    retry: frozenset[str] = frozenset(),
) -> list[Planned]:
    """The units of round `number`, the second or a later one, in random order.

    Those whose jobs all ended ok in the first, and in no round between ended otherwise: what fails or runs out of
    memory is not tried again unasked. `rounds`: number of a round -> trial id -> the attempt that counts in it.
    """
    first, here = rounds.get(1, {}), rounds.get(number, {})
    between = [rounds[other] for other in rounds if 1 < other < number]
    found = []
    for unit in units:
        if _ended(unit, first) != "ok" or not all(_ended(unit, other) in _GOES_ON for other in between):
            continue
        status = _ended(unit, here)
        if status in FINAL and status not in retry:
            found.append(Planned(unit, "done", status))
        elif status in ("failed", "timeout") and status not in retry:
            why = next(here[job.trial_id].reason for job in unit.jobs if here[job.trial_id].status == status)
            found.append(Planned(unit, "failed", why, ended=status))
        else:
            found.append(Planned(unit, "run"))
    return sorted(found, key=lambda item: _place(item.unit, number))


_GOES_ON = frozenset({"ok", "missing", "interrupted"})
"""How a unit may have ended in a further round and still be measured in the next."""


def _ended(unit: Unit, chosen: Mapping[str, Record]) -> str:
    """How a unit ended in a round; `missing` where it has not run."""
    statuses = [chosen[job.trial_id].status for job in unit.jobs if job.trial_id in chosen]
    return ending(statuses) if len(statuses) == len(unit.jobs) else "missing"


def _place(unit: Unit, number: int) -> float:
    """Where in a round a unit stands: drawn for it alone, so that no unit moves when another one drops out.

    Every second further round goes the way of the one before back: so each unit is measured once before and once after
    any other, a trial alone before and after its group, and a steady drift of the machine cancels.
    """
    is_back = number % 2 == 1
    way = number - 1 if is_back else number
    drawn = random.Random(f"{unit.jobs[0].trial.seed}, round {way}, {unit.unit_id}").random()
    return -drawn if is_back else drawn


def window_steps(job: Job, resolved: Resolved, first: Record) -> int:
    """How many steps a further round measures: at most an epoch's.

    As many steady ones as leave STEP_ERROR_PCT of their mean open, if they vary as they did in the first round, from
    WINDOW_S to LONGEST_WINDOW_S of them. `first`: the trial's attempt there.
    """
    if job.trial.steps:
        return job.trial.steps
    measured = [epoch for epoch in first.epochs if not epoch["warmup"]]
    if not measured:  # a file that was edited: nothing tells how long a step takes
        return max(1, resolved.train_images // job.trial.batch_size)
    last = measured[-1]
    # Earlier versions left some of these out.
    per_epoch = int(last.get("steps") or max(1, resolved.train_images // job.trial.batch_size))
    own = resolved.workers // resolved.processes
    wave, ahead = max(1, own), own * job.trial.prefetch
    step_s = max(float(last.get("steady_step_s") or last["epoch_time_s"] / per_epoch), 1e-6)
    wanted_s = LONGEST_WINDOW_S
    if (error_pct := first.result.step_error_pct) is not None:
        seen_s = step_s * sum(epoch.get("steady_steps") or 0 for epoch in measured)
        wanted_s = seen_s * (error_pct / STEP_ERROR_PCT) ** 2
    steady = max(FEWEST_STEPS, math.ceil(min(max(wanted_s, WINDOW_S), LONGEST_WINDOW_S) / step_s))
    whole = wave + math.ceil(steady / wave) * wave + ahead
    return min(whole, per_epoch)
