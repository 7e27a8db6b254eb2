"""Checks what a trial's ranks send, where it enters the parent: each event by its bounds, then by those before it.

A rank runs what users wrote, which may write anything: a message that no rank of this trial sends ends the trial.

What holds of every rank stands here; what its work is told by belongs to its kind (`training_events.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

from gpubench.basics.quoted import clean
from gpubench.node.launch.training_events import TrainingEvents
from gpubench.schema.events import Error, Hello, OfRank, RankExit, Told
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import InvalidValueError, reader
from gpubench.schema.workload import WORKLOADS, Workload

_read_event: Callable[[object], Told] = reader(Told)


class InvalidEventError(Exception):
    """A message that no rank sends by itself. The message says what is wrong with it."""


class WorkEventOrder(Protocol):
    """What the ranks of a trial tell of one kind of work."""

    def violation(self, event: Told) -> str:
        """Why the event does not follow from those before; empty where it does, which is then noted."""


EVENTS: dict[Workload, Callable[[TrialOrder, Callable[[], float]], WorkEventOrder]] = {
    "training": TrainingEvents
}
"""By the kind of work: a literal registry. Each gets the order, and a clock of monotonic seconds."""


class EventChecker:
    """The ranks of one trial."""

    def __init__(self, order: TrialOrder, clock: Callable[[], float]) -> None:
        """`order`: what the trial was given, now. `clock`: monotonic seconds, as the ranks read them."""
        self._work = EVENTS[order.trial.workload](order, clock)
        self._last_word = WORKLOADS[order.trial.workload].last_word
        self._said: list[set[type[OfRank]]] = [set() for _ in range(order.ranks)]
        """Of each rank what is said once, and has been."""

    def check(self, rank: int, data: bytes) -> Told:
        """The event in a message that came from `rank`. Raises InvalidEventError."""
        event = _parse(data)
        if event.rank != rank:
            raise InvalidEventError(f"{event.event!r} of rank {event.rank}")
        if why := self._violation(event):
            raise InvalidEventError(f"{event.event!r} {why}")
        return event

    def _violation(self, event: Told) -> str:
        kinds, kind = self._said[event.rank], type(event)
        if RankExit in kinds:
            return "twice" if kind is RankExit else "after its end"
        if kind in (RankExit, Error, Hello):
            if kind in kinds:
                return "twice"
        elif Hello not in kinds or {self._last_word, Error} & kinds:
            return "out of turn"
        elif why := self._work.violation(event):
            return why
        if kind in (RankExit, Error, Hello, self._last_word):
            kinds.add(kind)
        return ""


def _parse(data: bytes) -> Told:
    """The event of one message. Raises InvalidEventError."""
    try:
        message = json.loads(data)
        if b"\\ud" in data.lower():  # half of a pair, which no file can hold
            json.dumps(message, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise InvalidEventError(_describe_bytes(data)) from None
    try:
        return _read_event(message)
    except InvalidValueError as error:
        if error.path in ((), ("event",)):
            raise InvalidEventError(_describe_bytes(data)) from None
        place = clean(".".join(error.path), 60)
        raise InvalidEventError(
            f"{message['event']!r} with {place} out of order ({clean(error.problem, 100)})"
        ) from None


def _describe_bytes(data: bytes) -> str:
    return f"{len(data):,} bytes that are no message ({clean(repr(data[:60]))})"


def garbled_reason(rank: int, what: str) -> str:
    """The reason where something came from a rank that gpubench's own code in it does not say."""
    return (
        f"rank {rank} told gpubench what none of its ranks tells: {what}; does the model write to open files that it "
        "has not opened itself, or change what Python's own modules do?"
    )
