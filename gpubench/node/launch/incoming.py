"""Messages of ranks, checked where they enter the parent: a rank runs what users wrote, which may write anything."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from gpubench.basics.quoted import clean
from gpubench.schema.events import Told
from gpubench.schema.validation import why_wrong

_ANY: TypeAdapter[Told] = TypeAdapter(
    Annotated[Told, Field(discriminator="event")], config=ConfigDict(extra="forbid", strict=True)
)


class UnreadableError(Exception):
    """A message that no rank sends by itself. The message says what is wrong with it."""


def read(data: bytes) -> Told:
    """The event of one message. Raises UnreadableError."""
    try:
        return _ANY.validate_json(data)
    except ValidationError as error:
        raise UnreadableError(_wrong(data, error)) from None


def _wrong(data: bytes, error: ValidationError) -> str:
    """What is wrong with a message, in a few words."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid" or not first["loc"]:
        return f"{len(data):,} bytes that are no message ({clean(repr(data[:60]))})"
    name, *place = (clean(str(part), 60) for part in first["loc"])
    why = why_wrong(first["type"], first.get("ctx", {}))
    return f"{name!r} with {'.'.join(place) or 'fields'} out of order ({clean(why, 100)})"


def garbled(rank: int, what: str) -> str:
    """The reason where something came from a rank that gpubench's own code in it does not say."""
    return (
        f"rank {rank} told gpubench what none of its ranks tells: {what}; does the model write to open files that it "
        "has not opened itself, or change what Python's own modules do?"
    )
