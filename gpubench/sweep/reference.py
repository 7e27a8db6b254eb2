"""The reference: a trial that each node measures in each round, so that it can be told how nodes differ.

Whoever takes it from the plan in a round has measured it for its node; each other node measures it once more, before
the first unit that it runs in that round. In the first round it waits for the measurement of the plan to be stored,
which all others add to: then it comes before the next unit, or at the end of the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self

from gpubench.basics.errors import UsageError
from gpubench.plan.plan import Plan, Unit
from gpubench.plan.state import Planned
from gpubench.plan.unit_label import unit_label
from gpubench.results.counting import counting, node_of
from gpubench.results.locks.unit_locks import Lot
from gpubench.sweep.joining import Joining

Turn = Literal["run", "done", "waits"]
"""What becomes of a node's reference in a round. `done`: by this sweep, or another one of this node that is at it; or
it did not end ok when the plan measured it, or this node can't run it. `waits`: nobody has measured it for the plan
yet."""


def reference_of(plan: Plan) -> Unit:
    """The first trial alone of a plan, on one node. Raises UsageError where there is none."""
    for unit in plan.units:
        if not unit.is_group and unit.jobs[0].trial.nodes == 1:
            return unit
    raise UsageError("--reference takes a trial alone on one node, and the plan has none")


@dataclass(kw_only=True, slots=True)
class Reference:
    """That of one sweep's node."""

    unit: Unit
    joining: Joining
    owed: set[int] = field(default_factory=set)
    """Rounds in which this sweep has run something, and in which it is still to be measured."""
    _done: set[int] = field(default_factory=set)
    """Rounds in which nothing is left to do."""

    @classmethod
    def of(cls, joining: Joining) -> Self:
        return cls(unit=reference_of(joining.work.plan), joining=joining)

    @property
    def node(self) -> str:
        """As records name it."""
        return str(self.joining.work.bench.environment.get("host") or "")

    def first(self, planned: Sequence[Planned]) -> list[Planned]:
        """In the same order, but that with it, and with what is taken with it, a round begins."""
        lots = self.joining.lots
        return sorted(planned, key=lambda item: lots[item.unit.unit_id] != lots[self.unit.unit_id])

    def turn(self, number: int) -> Turn:
        """What becomes of it in this round, as far as is known."""
        if number in self._done:
            return "done"
        work = self.joining.work
        (job,) = self.unit.jobs
        if not self._can_run():
            return "done"
        if job.trial_id not in work.chosen():
            self.joining.read([self.unit])
        first = work.chosen().get(job.trial_id)
        if first is None:
            return "waits"
        mine = (
            record
            for record in counting(work.alike()).values()
            if record.trial_id == job.trial_id and record.round == number and node_of(record) == self.node
        )
        if first.status != "ok" or any(record.status != "interrupted" for record in mine):
            self._done.add(number)
            return "done"
        return "run"

    def _can_run(self) -> bool:
        """Whether this node has room for it, and the GPUs that it needs."""
        work = self.joining.work
        return work.resolved(self.unit) is not None and not work.bench.lost_to(self.unit)

    def take(self, number: int) -> bool:
        """Whether it is this sweep's in this round, until `give_back`: not where another one of this node is at it."""
        own = self.joining.lot(self.unit, number)
        lot = Lot(own.unit_id, number, f"{own.machine} on {self.node}")
        if self.joining.units.take_beside(lot) != "mine":
            self._done.add(number)
            return False
        self.joining.read([self.unit])  # whoever had it before has stored it before it was given back
        if self.turn(number) != "run":
            self.joining.units.give_back_beside()
            return False
        return True

    def give_back(self, number: int) -> None:
        """Has it no more; it is not tried again in this round."""
        self._done.add(number)
        self.joining.units.give_back_beside()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody measures it for the plan now."""
        return self.joining.units.is_held(self.joining.lot(self.unit, 1))


def words(plan: Plan, unit: Unit) -> str:
    """What is said of it before a sweep starts."""
    return f"reference: {unit_label(plan, unit)} is measured on each node that joins, in each round"
