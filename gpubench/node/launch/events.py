"""What a rank tells, event by event: each with its fields and what they may hold. Checked where it enters the parent.

A rank runs what users wrote, and that may write anything to any descriptor that it finds open.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator

from gpubench.basics.quoted import LONGEST, clean

LARGEST_US = 1 << 60
"""Microseconds that fit into what keeps them."""
CLOCK_GRAIN_US = 1000
"""By how much a device's clock may tell of a wait that was none."""

Number = Annotated[FiniteFloat, Field(ge=0)]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]
Positive = Annotated[int, Field(gt=0, lt=1 << 53)]
Words = Annotated[str, Field(max_length=8 * LONGEST)]
Micros = Annotated[int, Field(ge=0, lt=LARGEST_US)]
Wait = Annotated[int, Field(ge=-CLOCK_GRAIN_US, lt=LARGEST_US)]


class UnreadableError(Exception):
    """A message that no rank sends by itself. The message says what is wrong with it."""


class _Event(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    rank: Count


class Hello(_Event):
    """The first word of each rank."""

    event: Literal["hello"]
    pid: Positive
    cuda: Annotated[str, Field(max_length=100)] | None
    torch: Annotated[str, Field(max_length=100)]


class Begin(_Event):
    """A window begins: an epoch, or the first steps of one."""

    event: Literal["begin"]
    epoch: Count
    steps: Positive
    measured: bool


class ProgressEvent(_Event):
    """So many steps of the window are done."""

    event: Literal["progress"]
    epoch: Count
    step: Count


class Steps(_Event):
    """Some steps of a window, after it: when each ended, counted from t0, and how long it waited for its batch."""

    event: Literal["steps"]
    epoch: Count
    end_us: Annotated[list[Micros], Field(min_length=1)]
    wait_us: Annotated[list[Wait], Field(min_length=1)]


class End(_Event):
    """A window has ended."""

    event: Literal["end"]
    epoch: Count
    measured: bool
    t0: Number
    t1: Number
    steps: Positive
    first_batch_s: Number
    train_loss: float
    """Any: training may diverge."""


class Quality(_Event):
    """What the evaluation after a window gave, on the way to an accuracy."""

    event: Literal["quality"]
    epoch: Count
    top1_pct: Annotated[FiniteFloat, Field(ge=0, le=100)]


class Question(_Event):
    """Something that the parent answers or only notes."""

    event: Literal["ask-memory", "settle", "ready"]


class Filling(_Event):
    """A job of a group has measured its windows, and trains on."""

    event: Literal["filling"]
    at: Number


class StepTimes(BaseModel):
    """Percentiles of the measured steps, in milliseconds."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    p50: Number
    p95: Number


class Parts(BaseModel):
    """Medians of the parts of a step, in milliseconds, and what marking them cost."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    copy_ms: FiniteFloat
    forward_ms: FiniteFloat
    backward_ms: FiniteFloat
    optimizer_ms: FiniteFloat
    comm_ms: FiniteFloat | None
    comm_hidden_ms: FiniteFloat | None
    step_ms: Annotated[FiniteFloat, Field(gt=0)]
    cost_pct: FiniteFloat | None

    @model_validator(mode="after")
    def _exchange_is_whole(self) -> Self:
        if (self.comm_ms is None) != (self.comm_hidden_ms is None):
            raise ValueError("one part of the exchange without the other")
        return self


class Held(BaseModel):
    """What torch's allocator held on one device, in MiB."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    peak: Number
    at_settle: Number
    allocated_peak: Number


class AllocatorMemory(BaseModel):
    """What torch's allocator held on the fullest device, and on each, by its place among the trial's GPUs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    allocated_mib: Number
    reserved_mib: Number
    retries: Count
    devices: dict[Annotated[str, Field(pattern=r"^\d{1,3}$")], Held]


class Result(_Event):
    """The last word of a rank that trained to the end."""

    event: Literal["result"]
    steps_per_epoch: Positive
    step_ms: StepTimes | None
    step_drift_pct: FiniteFloat | None
    parts: Parts | None
    no_exchange: Words | None
    exchange_mib: Number | None
    until_top1: Number | None
    quality: tuple[Annotated[FiniteFloat, Field(ge=0, le=100)], FiniteFloat | None] | None
    memory: AllocatorMemory | None
    phases: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")], FiniteFloat]
    at: Number
    params_m: Number | None = None
    gmacs_per_image: Number | None = None
    gmacs_missing: Words | None = None


class Error(_Event):
    """Why a rank ends without a result."""

    event: Literal["error"]
    kind: Literal["failed", "oom"]
    reason: Words
    at: Number


class RankExit(_Event):
    """How a rank's process ended: its exit code, or less than zero for a signal. The leader tells."""

    event: Literal["rank-exit"]
    code: Annotated[int, Field(gt=-1000, lt=1000)]
    killed: bool
    at: Number


Event = Hello | Begin | ProgressEvent | Steps | End | Quality | Question | Filling | Result | Error | RankExit
_ANY: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def read(data: bytes) -> Event:
    """The event of one message. Raises UnreadableError."""
    try:
        return _ANY.validate_json(data)
    except ValidationError as error:
        raise UnreadableError(_wrong(data, error)) from None


def _wrong(data: bytes, error: ValidationError) -> str:
    """What is wrong with a message, in a few words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid" or not first["loc"]:
        return f"{len(data):,} bytes that are no message ({clean(repr(data[:60]))})"
    name, *place = (clean(str(part), 60) for part in first["loc"])
    return f"{name!r} with {'.'.join(place) or 'fields'} out of order ({clean(first['msg'], 100)})"


def plain(event: Event) -> dict[str, Any]:
    """The event by the names of its fields, as those who reckon with it read it."""
    return event.model_dump()


def garbled(rank: int, what: str) -> str:
    """The reason where something came from a rank that gpubench's own code in it does not say."""
    return (
        f"rank {rank} told gpubench what none of its ranks tells: {what}; does the model write to open files that it "
        "has not opened itself, or change what Python's own modules do?"
    )
