"""Checks what a trial's ranks send, where it enters the parent: each event by the bounds of its fields.

A rank runs what users wrote, which may print into any file that it finds open: what is no message ends the trial.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from gpubench.basics.quoted import clean_line
from gpubench.schema.events import Told
from gpubench.schema.validation import InvalidValueError, make_converter

_read_event: Callable[[object], Told] = make_converter(Told)


class InvalidEventError(Exception):
    """A message that no rank sends by itself. The message says what is wrong with it."""


def parse_event(rank: int, data: bytes) -> Told:
    """The event in a message that came from `rank`. Raises InvalidEventError."""
    try:
        event = _read_event(json.loads(data))
    except (InvalidValueError, ValueError, RecursionError) as error:
        why = clean_line(str(error), 100)
        raise InvalidEventError(f"{len(data):,} bytes, {clean_line(repr(data[:60]))} ({why})") from None
    if event.rank != rank:
        raise InvalidEventError(f"{event.event!r} of rank {event.rank}")
    return event


def format_garbled_reason(rank: int, what: str) -> str:
    """The reason where something came from a rank that gpubench's own code in it does not say."""
    return (
        f"rank {rank} sent what is no message of gpubench: {what}; does the model write to open files that it has not "
        "opened itself?"
    )
