"""What is told of a trial and what its ranks are answered, message by message: each with its fields and their bounds.

Ranks, their leader and the fork server make these; `node/launch/` reads them and checks what comes in against the
bounds, since a rank runs what users wrote, and that may write anything to any descriptor that it finds open. The last
ones are the parent's own, and no message.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from gpubench.basics.quoted import LONGEST

LARGEST_US = 1 << 60
"""Microseconds that fit into what keeps them."""
CLOCK_GRAIN_US = 1000
"""By how much a device's clock may tell of a wait that was none."""

Finite = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""Neither infinite nor no number at all."""
Number = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
Positive = Annotated[int, Meta(gt=0, lt=1 << 53)]
Words = Annotated[str, Meta(max_length=8 * LONGEST)]
Version = Annotated[str, Meta(max_length=100)]
Micros = Annotated[int, Meta(ge=0, lt=LARGEST_US)]
Wait = Annotated[int, Meta(ge=-CLOCK_GRAIN_US, lt=LARGEST_US)]
Phase = Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,40}\Z")]
GpuIndex = Annotated[str, Meta(pattern=r"^[0-9]{1,3}\Z")]
"""Of one of the trial's GPUs, from 0, as text: a key in JSON."""


class Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="event"):
    """Something that is told of a trial."""

    @property
    def event(self) -> str:
        """What is told, in a word: its tag."""
        return str(self.__struct_config__.tag)


class RankMessage(Message, frozen=True, kw_only=True):
    """Something that is told of one rank."""

    rank: Count


# ---------------------------------------------------------------- what a rank tells


class Hello(RankMessage, frozen=True, kw_only=True, tag="hello"):
    """The first word of each rank."""

    pid: Positive
    cuda: Version | None = None
    torch: Version | None = None
    """None, as below, of a command: what it runs nobody knows."""
    decoder: Version | None = None
    """What decodes image files there, and its version."""


class Begin(RankMessage, frozen=True, kw_only=True, tag="begin"):
    """A window begins: an epoch, or so many steps of a stream."""

    epoch: Count
    """Number of the window, from 0."""
    steps: Positive
    measured: bool
    seconds: Number = 0.0
    """About how long it will take, where the rank tells nothing meanwhile; 0: it tells."""


class StepsDone(RankMessage, frozen=True, kw_only=True, tag="progress"):
    """So many steps of the window are done."""

    epoch: Count
    step: Count


class Steps(RankMessage, frozen=True, kw_only=True, tag="steps"):
    """Some steps of a window, after it: when each ended, counted from t0, and how long it waited for its batch."""

    epoch: Count
    end_us: Annotated[Sequence[Micros], Meta(min_length=1)]
    wait_us: Annotated[Sequence[Wait], Meta(min_length=1)]


class End(RankMessage, frozen=True, kw_only=True, tag="end"):
    """A window has ended."""

    epoch: Count
    measured: bool
    t0: Number
    t1: Number
    steps: Positive
    first_batch_s: Number
    train_loss: float
    """Any: training may diverge."""


class Evaluated(RankMessage, frozen=True, kw_only=True, tag="quality"):
    """What the evaluation after a window gave, on the way to an accuracy."""

    epoch: Count
    top1_pct: Percent


class AskMemory(RankMessage, frozen=True, kw_only=True, tag="ask-memory"):
    """The rank waits for what the driver says of the trial's memory."""


class Settle(RankMessage, frozen=True, kw_only=True, tag="settle"):
    """All ranks hold still, until the parent has read their memory."""


class Warm(RankMessage, frozen=True, kw_only=True, tag="ready"):
    """The rank of a job of a group has warmed up, and waits for the other jobs."""


class Filling(RankMessage, frozen=True, kw_only=True, tag="filling"):
    """A job of a group has its window, or its epochs, and goes on while the other jobs get theirs."""

    at: Number


class BreakdownTimes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Medians of the parts of a step, in milliseconds, and what marking them cost."""

    copy_ms: Finite
    forward_ms: Finite
    backward_ms: Finite
    optimizer_ms: Finite
    comm_ms: Finite | None
    """None, as `comm_hidden_ms`, where the strategy does not tell of its exchange."""
    comm_hidden_ms: Finite | None
    step_ms: Annotated[float, Meta(gt=0, le=sys.float_info.max)]
    cost_pct: Finite | None


class HeldMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What torch's allocator held on one device, in MiB."""

    peak: Number
    """Reserved, over the whole trial."""
    at_settle: Number
    """Reserved, when the parent read the processes' memory."""
    allocated_peak: Number


class AllocatorMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What torch's allocator held on the fullest device, and on each, by its index among the trial's GPUs."""

    allocated_mib: Number
    reserved_mib: Number
    retries: Count
    devices: dict[GpuIndex, HeldMemory]


class Result(RankMessage, frozen=True, kw_only=True, tag="result"):
    """The last word of a rank that trained to the end."""

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


class CommandStarted(RankMessage, frozen=True, kw_only=True, tag="command-started"):
    """A command has been started."""

    at: Number


class EpochBegan(RankMessage, frozen=True, kw_only=True, tag="epoch-began"):
    """An epoch of a command has begun."""

    epoch: Count
    at: Number


class EpochEnded(RankMessage, frozen=True, kw_only=True, tag="epoch-ended"):
    """An epoch of a command has ended. The next one may have begun at the same moment."""

    epoch: Count
    t0: Number
    t1: Number


class MetricSeen(RankMessage, frozen=True, kw_only=True, tag="metric"):
    """A command has printed a figure that is looked for."""

    name: Annotated[str, Meta(pattern=r"^[a-z_][a-z0-9_]{0,39}\Z")]
    value: Finite | None
    """None: what it printed last was no number."""
    at: Number


class CommandEnded(RankMessage, frozen=True, kw_only=True, tag="command-ended"):
    """A command has ended well: by itself, or as it had reached what it was to reach."""

    began: Number
    at: Number
    epochs_from: Literal["pattern", "script"] | None
    """What told its epochs apart; None: its whole run is one window."""
    reading_s: Number = 0.0
    """CPU time that it took to read what it printed and marked."""


class Error(RankMessage, frozen=True, kw_only=True, tag="error"):
    """Why a rank ends without a result."""

    kind: Literal["failed", "oom"]
    reason: Words
    at: Number


# ---------------------------------------------------------------- what its leader tells


class RankExit(RankMessage, frozen=True, kw_only=True, tag="rank-exit"):
    """How a rank's process ended."""

    code: Annotated[int, Meta(gt=-1000, lt=1000)]
    """Its exit code, or less than zero for a signal."""
    killed: bool
    """Whether the leader has killed it, since another rank had failed."""
    at: Number


OfWindows = Begin | StepsDone | Steps | End | Evaluated
OfWaiting = AskMemory | Settle | Warm | Filling
OfCommands = CommandStarted | EpochBegan | EpochEnded | MetricSeen | CommandEnded
Told = Hello | OfWindows | OfWaiting | OfCommands | Result | Error | RankExit
"""What comes as a message."""


# ---------------------------------------------------------------- what the parent finds out itself, on each node


class Garbled(Message, frozen=True, tag="garbled"):
    """Something came from a rank that none of its ranks tells."""

    rank: int
    what: str


class LeaderExit(Message, frozen=True, tag="leader-exit"):
    """The trial's leader has ended: with this exit code, or less than zero for a signal."""

    code: int
    node: int = 0
    """On which of the trial's nodes."""


class ServerExit(Message, frozen=True, tag="server-exit"):
    """The fork server has ended, and the trial with it; `code` as in LeaderExit."""

    code: int
    node: int = 0


class KilledForMemory(Message, frozen=True, tag="killed-for-memory"):
    """So many processes the kernel has killed for memory meanwhile."""

    count: int
    where: str
    node: int = 0


Event = Told | Garbled | LeaderExit | ServerExit | KilledForMemory


# ---------------------------------------------------------------- what a rank is answered


class _Answer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer"): ...


class DriverMemory(_Answer, frozen=True, kw_only=True, tag="memory"):
    """To AskMemory: GPU uuid -> MiB of the trial's processes, as the driver tells; None where it does not."""

    driver_mib: dict[str, float] | None


class Proceed(_Answer, frozen=True, kw_only=True, tag="go"):
    """To Settle and Warm: what was waited for is done."""


class StopFilling(_Answer, frozen=True, kw_only=True, tag="stop"):
    """To Filling: every job of the group has its window, or its epochs."""


Answer = DriverMemory | Proceed | StopFilling


class ParentChannel(Protocol):
    """What a rank needs of its channel to the parent."""

    def fileno(self) -> int: ...

    def send(self, message: Told) -> None: ...

    def ask(self, message: Told, timeout: float) -> Any: ...

    def receive(self, timeout: float | None = None) -> Any: ...
