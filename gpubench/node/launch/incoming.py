"""Messages of ranks, checked where they enter the parent: a rank runs what users wrote, which may write anything."""

from __future__ import annotations

import json
from collections.abc import Callable

from gpubench.basics.quoted import clean
from gpubench.schema.events import Told
from gpubench.schema.validation import InvalidValueError, reader


class UnreadableError(Exception):
    """A message that no rank sends by itself. The message says what is wrong with it."""


def read(data: bytes) -> Told:
    """The event of one message. Raises UnreadableError."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableError(_no_message(data)) from None
    try:
        return _read(message)
    except InvalidValueError as error:
        if error.path in ((), ("event",)):
            raise UnreadableError(_no_message(data)) from None
        place = clean(".".join(error.path), 60)
        raise UnreadableError(
            f"{message['event']!r} with {place} out of order ({clean(error.problem, 100)})"
        ) from None


_read: Callable[[object], Told] = reader(Told)


def _no_message(data: bytes) -> str:
    return f"{len(data):,} bytes that are no message ({clean(repr(data[:60]))})"


def garbled(rank: int, what: str) -> str:
    """The reason where something came from a rank that gpubench's own code in it does not say."""
    return (
        f"rank {rank} told gpubench what none of its ranks tells: {what}; does the model write to open files that it "
        "has not opened itself, or change what Python's own modules do?"
    )
