"""What is told of a trial and what its ranks are answered, message by message: each with its fields and their bounds.

Ranks, their leader and the fork server make these; `node/launch/` reads them and checks what comes in against the
bounds, since a rank runs what users wrote, and that may write anything to any descriptor that it finds open. The last
ones are the parent's own, and no message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen, Predicate

from gpubench.basics.quoted import LONGEST
from gpubench.schema.field import Bounds

LARGEST_US = 1 << 60
"""Microseconds that fit into what keeps them."""
CLOCK_GRAIN_US = 1000
"""By how much a device's clock may tell of a wait that was none."""

Finite = Annotated[float, Bounds(finite=True)]
Number = Annotated[Finite, Ge(0)]
Percent = Annotated[Finite, Ge(0), Le(100)]
Count = Annotated[int, Ge(0), Lt(1 << 53)]
Positive = Annotated[int, Gt(0), Lt(1 << 53)]
Words = Annotated[str, MaxLen(8 * LONGEST)]
Version = Annotated[str, MaxLen(100)]
Micros = Annotated[int, Ge(0), Lt(LARGEST_US)]
Wait = Annotated[int, Ge(-CLOCK_GRAIN_US), Lt(LARGEST_US)]
Phase = Annotated[str, Predicate(re.compile(r"[a-z0-9_]{1,40}").fullmatch)]
GpuIndex = Annotated[str, Predicate(re.compile(r"[0-9]{1,3}").fullmatch)]
"""Of one of the trial's GPUs, from 0, as text: a key in JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfRank:
    """Something that is told of one rank."""

    rank: Count


# ---------------------------------------------------------------- what a rank tells


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello(OfRank):
    """The first word of each rank."""

    event: Literal["hello"] = "hello"
    pid: Positive
    cuda: Version | None
    torch: Version
    decoder: Version
    """What decodes image files there, and its version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Begin(OfRank):
    """A window begins: an epoch, or so many steps of a stream."""

    event: Literal["begin"] = "begin"
    epoch: Count
    """Number of the window, from 0."""
    steps: Positive
    measured: bool
    seconds: Number = 0.0
    """About how long it will take, where the rank tells nothing meanwhile; 0: it tells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepsDone(OfRank):
    """So many steps of the window are done."""

    event: Literal["progress"] = "progress"
    epoch: Count
    step: Count


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps(OfRank):
    """Some steps of a window, after it: when each ended, counted from t0, and how long it waited for its batch."""

    event: Literal["steps"] = "steps"
    epoch: Count
    end_us: Annotated[Sequence[Micros], MinLen(1)]
    wait_us: Annotated[Sequence[Wait], MinLen(1)]


@dataclass(frozen=True, kw_only=True, slots=True)
class End(OfRank):
    """A window has ended."""

    event: Literal["end"] = "end"
    epoch: Count
    measured: bool
    t0: Number
    t1: Number
    steps: Positive
    first_batch_s: Number
    train_loss: float
    """Any: training may diverge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluated(OfRank):
    """What the evaluation after a window gave, on the way to an accuracy."""

    event: Literal["quality"] = "quality"
    epoch: Count
    top1_pct: Percent


@dataclass(frozen=True, kw_only=True, slots=True)
class AskMemory(OfRank):
    """The rank waits for what the driver says of the trial's memory."""

    event: Literal["ask-memory"] = "ask-memory"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settle(OfRank):
    """All ranks hold still, until the parent has read their memory."""

    event: Literal["settle"] = "settle"


@dataclass(frozen=True, kw_only=True, slots=True)
class Warm(OfRank):
    """The rank of a job of a group has warmed up, and waits for the other jobs."""

    event: Literal["ready"] = "ready"


@dataclass(frozen=True, kw_only=True, slots=True)
class Filling(OfRank):
    """A job of a group has its window, or its epochs, and goes on while the other jobs get theirs."""

    event: Literal["filling"] = "filling"
    at: Number


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakdownTimes:
    """Medians of the parts of a step, in milliseconds, and what marking them cost."""

    copy_ms: Finite
    forward_ms: Finite
    backward_ms: Finite
    optimizer_ms: Finite
    comm_ms: Finite | None
    """None, as `comm_hidden_ms`, where the strategy does not tell of its exchange."""
    comm_hidden_ms: Finite | None
    step_ms: Annotated[Finite, Gt(0)]
    cost_pct: Finite | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What torch's allocator held on one device, in MiB."""

    peak: Number
    """Reserved, over the whole trial."""
    at_settle: Number
    """Reserved, when the parent read the processes' memory."""
    allocated_peak: Number


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocatorMemory:
    """What torch's allocator held on the fullest device, and on each, by its index among the trial's GPUs."""

    allocated_mib: Number
    reserved_mib: Number
    retries: Count
    devices: dict[GpuIndex, Held]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(OfRank):
    """The last word of a rank that trained to the end."""

    event: Literal["result"] = "result"
    steps_per_epoch: Positive
    breakdown: BreakdownTimes | None
    no_exchange: Words | None
    exchange_mib: Number | None
    quality: tuple[Percent, Finite | None] | None
    """Top-1 in per cent and cross-entropy, on the validation split."""
    memory: AllocatorMemory | None
    cpu_probe_ms: Number
    """CPU time of a fixed piece of work on the launching thread, the mean of before the loaders and after them."""
    phases: dict[Phase, Finite]
    at: Number
    params_m: Number | None = None
    gmacs_per_image: Number | None = None
    gmacs_missing: Words | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Error(OfRank):
    """Why a rank ends without a result."""

    event: Literal["error"] = "error"
    kind: Literal["failed", "oom"]
    reason: Words
    at: Number


# ---------------------------------------------------------------- what its leader tells


@dataclass(frozen=True, kw_only=True, slots=True)
class RankExit(OfRank):
    """How a rank's process ended."""

    event: Literal["rank-exit"] = "rank-exit"
    code: Annotated[int, Gt(-1000), Lt(1000)]
    """Its exit code, or less than zero for a signal."""
    killed: bool
    """Whether the leader has killed it, since another rank had failed."""
    at: Number


OfWindows = Begin | StepsDone | Steps | End | Evaluated
OfWaiting = AskMemory | Settle | Warm | Filling
Told = Hello | OfWindows | OfWaiting | Result | Error | RankExit
"""What comes as a message."""


# ---------------------------------------------------------------- what the parent finds out itself, on each node


@dataclass(frozen=True, slots=True)
class Garbled:
    """Something came from a rank that none of its ranks tells."""

    rank: int
    what: str
    event: Literal["garbled"] = "garbled"


@dataclass(frozen=True, slots=True)
class LeaderExit:
    """The trial's leader has ended: with this exit code, or less than zero for a signal."""

    code: int
    node: int = 0
    """On which of the trial's nodes."""
    event: Literal["leader-exit"] = "leader-exit"


@dataclass(frozen=True, slots=True)
class ServerExit:
    """The fork server has ended, and the trial with it; `code` as in LeaderExit."""

    code: int
    node: int = 0
    event: Literal["server-exit"] = "server-exit"


@dataclass(frozen=True, slots=True)
class KilledForMemory:
    """So many processes the kernel has killed for memory meanwhile."""

    count: int
    where: str
    node: int = 0
    event: Literal["killed-for-memory"] = "killed-for-memory"


Event = Told | Garbled | LeaderExit | ServerExit | KilledForMemory


# ---------------------------------------------------------------- what a rank is answered


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverMemory:
    """To AskMemory: GPU uuid -> MiB of the trial's processes, as the driver tells; None where it does not."""

    answer: Literal["memory"] = "memory"
    driver_mib: dict[str, float] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class GoOn:
    """To Settle and Warm: what was waited for is done."""

    answer: Literal["go"] = "go"


@dataclass(frozen=True, kw_only=True, slots=True)
class StopFilling:
    """To Filling: every job of the group has its window, or its epochs."""

    answer: Literal["stop"] = "stop"


Answer = DriverMemory | GoOn | StopFilling
