"""What one trial's ranks tell, in its order: an event that doesn't follow from those before is none of a rank's.

What holds of every rank stands here; what its work is told by belongs to its kind (`training_events.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpubench.node.launch.incoming import UnreadableError, read
from gpubench.node.launch.training_events import TrainingEvents
from gpubench.schema.events import Error, Hello, OfRank, RankExit, Told
from gpubench.schema.order import TrialOrder
from gpubench.schema.workload import WORKLOADS, Workload


class WorkEvents(Protocol):
    """What the ranks of a trial tell of one kind of work."""

    def why_not(self, event: Told) -> str:
        """Why the event does not follow from those before; empty where it does, which is then noted."""


EVENTS: dict[Workload, Callable[[TrialOrder, Callable[[], float]], WorkEvents]] = {"training": TrainingEvents}
"""By the kind of work: a literal registry. Each gets the order, and a clock of monotonic seconds."""


class Conversation:
    """The ranks of one trial."""

    def __init__(self, order: TrialOrder, clock: Callable[[], float]) -> None:
        """`order`: what the trial was given, now. `clock`: monotonic seconds, as the ranks read them."""
        self._work = EVENTS[order.trial.workload](order, clock)
        self._last_word = WORKLOADS[order.trial.workload].last_word
        self._said: list[set[type[OfRank]]] = [set() for _ in range(order.ranks)]
        """Of each rank what is said once, and has been."""

    def take(self, rank: int, data: bytes) -> Told:
        """The event in a message that came from `rank`. Raises UnreadableError."""
        event = read(data)
        if event.rank != rank:
            raise UnreadableError(f"{event.event!r} of rank {event.rank}")
        if why := self._why_not(event):
            raise UnreadableError(f"{event.event!r} {why}")
        return event

    def _why_not(self, event: Told) -> str:
        said, kind = self._said[event.rank], type(event)
        if RankExit in said:
            return "twice" if kind is RankExit else "after its end"
        if kind in (RankExit, Error, Hello):
            if kind in said:
                return "twice"
        elif Hello not in said or {self._last_word, Error} & said:
            return "out of turn"
        elif why := self._work.why_not(event):
            return why
        if kind in (RankExit, Error, Hello, self._last_word):
            said.add(kind)
        return ""
