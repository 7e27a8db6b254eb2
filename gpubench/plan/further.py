"""A sweep's further rounds: what each measures again, and in which order. Pure.

Processes of one configuration differ, so each round measures every trial once more, in processes of its own and in the
same way.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gpubench.plan.plan import Unit
from gpubench.plan.state import Planned
from gpubench.schema.record import FINAL, Record, ending


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
