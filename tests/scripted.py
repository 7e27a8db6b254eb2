"""Trials that play a script in place of training: every ending of a trial, without a process or a GPU."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec import structs

from gpubench.basics.stacks import ProcessStack
from gpubench.node.cgroup import find_oom_kill_counter
from gpubench.node.environment import Gpu, Machine
from gpubench.node.launch.fork_server import never_stop
from gpubench.node.watch.nvml import NoNvml
from gpubench.node.watch.nvml_calls import PROCESSES, NvmlCall
from gpubench.schema import trial_fields
from gpubench.schema.events import (
    Answer,
    Begin,
    End,
    Error,
    Event,
    Filling,
    Hello,
    Proceed,
    RankExit,
    Result,
    Settle,
    Steps,
    StopFilling,
    Warm,
)  # fmt: skip
from gpubench.schema.order import DataSpec, SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.trial import Trial
from gpubench.schema.validation import convert_value
from gpubench.schema.window import count_warm_up_steps, count_window_steps

T = TypeVar("T")


@dataclass(kw_only=True)
class Until:
    """Says nothing more before all of this has come."""

    told: type[Answer] | None = None
    """That every rank (of StopFilling: the first) is answered this."""
    at: float = 0.0
    """This monotonic second."""
    is_either: bool = False
    """Whether one of both is enough."""
    is_told: bool = False
    """Whether that answer has come, for the script to read once it goes on."""


Line = Event | Until
Script = Callable[[TrialOrder], Iterator[Line]]
"""What a trial's processes say, one event after the other. It may write to the log in between."""

_kills = find_oom_kill_counter()
SIGKILLED = "was ended by SIGKILL " + (
    f"(not by the kernel for memory: it counts no such kill in {_kills.where})"
    if _kills
    else "(the host may have run out of memory)"
)
"""How a reason tells on this machine of a process that somebody killed."""
EPOCH_S = 0.5
HANG = Until(at=math.inf)
"""Says nothing more and does not end."""


def order(**fields: Any) -> TrialOrder:
    """A small order on the CPU of whole epochs, with any field by name; `train_images` is its data's."""
    images = fields.pop("train_images", 100)
    epochs = WholeEpochs(epochs=fields.pop("epochs", 3), warmup_epochs=fields.pop("warmup_epochs", 1))
    asked = {"model": "lenet", "batch_size": 16, "memory_format": "contiguous", "lr": 0.01}
    asked |= {name: fields.pop(name) for name in TRIAL_FIELDS if name in fields}
    values: dict[str, Any] = {
        "trial": convert_value(asked, Trial), "jobs": 1, "device": "cpu", "gpu_uuids": (), "ranks": 1, "workers": 0,
        "cpu_ids": (0,), "threads_per_rank": 1, "protocol": epochs, "seed": 0,
        "log": Path(os.devnull), "scratch": Path(os.devnull), "gmacs_per_image": None,
        "data": DataSpec(kind="none", input_size=28, num_classes=4, train_images=images),
    }  # fmt: skip
    return TrialOrder(**values | fields)


TRIAL_FIELDS = frozenset(trial_fields.FIELDS) - set(TrialOrder.__struct_fields__)
"""Fields of the trial that the order has under no other meaning."""


def at(moment: float) -> Until:
    """Says nothing more before this monotonic second."""
    return Until(at=moment)


def steps_per_epoch(order: TrialOrder) -> int:
    assert order.data.train_images is not None
    return order.data.train_images // order.trial.batch_size


def hello(order: TrialOrder) -> Iterator[Line]:
    """The first word of each rank."""
    for rank in range(order.ranks):
        yield Hello(rank=rank, pid=os.getpid(), cuda=None, torch="2.0", decoder="torchvision 1.0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """An epoch, or so many steps of a stream, and the seconds that it takes."""

    number: int
    steps: int
    measured: bool
    seconds: float


def spans(order: TrialOrder, *seconds: float) -> list[Span]:
    """What is trained alone. `seconds`: of an epoch's images; of whole epochs by turns, the first one's to warm up."""
    count = steps_per_epoch(order)
    protocol = order.protocol
    if isinstance(protocol, WholeEpochs):
        warm = protocol.warmup_epochs
        took = [seconds[0]] * warm + list(islice(cycle(seconds), protocol.epochs - warm))
        return [Span(number=k, steps=count, measured=k >= warm, seconds=each) for k, each in enumerate(took)]
    step_s = seconds[0] / count
    lengths = (
        count_warm_up_steps(0),
        protocol.steps or count_window_steps(protocol.window_s or 0.0, step_s, 1, 1),
    )
    return [
        Span(number=k, steps=length, measured=k > 0, seconds=length * step_s)
        for k, length in enumerate(lengths)
    ]


def plays(
    order: TrialOrder, span: Span, *, t0: float | None = None, really: bool = False, train_loss: float = 1.0
) -> Iterator[Line]:
    """One span, by its own account from `t0` (now) on. It passes at once, or `really` takes its seconds."""
    begun = time.monotonic() if t0 is None else t0
    is_stream = isinstance(order.protocol, SteadyWindow)
    silent_s = span.seconds if is_stream and span.measured else 0.0
    for rank in range(order.ranks):
        yield Begin(rank=rank, epoch=span.number, measured=span.measured, steps=span.steps, seconds=silent_s)
    t1 = begun + span.seconds
    if really:
        yield at(t1)
        t1 = time.monotonic()
    for rank in range(order.ranks):
        yield steps(rank, span.number, span.steps, t1 - begun, wait_s=0.0 if really else 0.1)
        yield End(
            rank=rank, epoch=span.number, measured=span.measured, steps=span.steps, t0=begun, t1=t1,
            first_batch_s=0.01, train_loss=train_loss,
        )  # fmt: skip


def epoch(order: TrialOrder, number: int) -> Iterator[Line]:
    """One epoch of EPOCH_S seconds; of a stream the warm-up or the window."""
    return plays(order, spans(order, EPOCH_S)[number])


def steps(rank: int, number: int, count: int, seconds: float, *, wait_s: float = 0.0) -> Steps:
    """The steps of one rank's epoch: equally long, and each with its part of the waits."""
    ended = [int(1e6 * seconds * (k + 1) / count) for k in range(count)]
    waits = [round(1e6 * wait_s / count)] * count
    return Steps(rank=rank, epoch=number, end_us=ended, wait_us=waits)


RESULT = Result(
    rank=0, steps_per_epoch=6, breakdown=None, no_exchange=None, exchange_mib=None,
    quality=None, memory=None, cpu_probe_ms=2.0, phases={"start": 0.1}, at=1.0, params_m=0.06, gmacs_per_image=0.001,
)  # fmt: skip


def result(order: TrialOrder) -> Iterator[Line]:
    yield Settle(rank=0)
    for rank in range(order.ranks):
        yield structs.replace(RESULT, rank=rank, at=time.monotonic(), steps_per_epoch=steps_per_epoch(order))


def trains_for(*seconds: float, train_loss: float = 1.0) -> Script:
    """Trains with epochs of so many seconds, by turns, or with a stream as fast as the first of them.

    As a job of a group it waits for the others, and goes on until these have measured, too.
    """

    def script(order: TrialOrder) -> Iterator[Line]:
        yield from warms_up(order, seconds[0], train_loss=train_loss)
        span = Span(number=0, steps=1, measured=True, seconds=0.0)
        t0 = time.monotonic()
        for span in measured(order, *seconds):
            t0 = time.monotonic()
            yield from plays(order, span, t0=t0, train_loss=train_loss)
        yield from fills(order, span, t0 + span.seconds)
        yield from result(order)

    return script


def lasts(seconds: float, warmup_s: float = 0.0) -> Script:
    """Trains one measured epoch or window that really takes so many seconds, as each epoch of its warm-up does."""

    def script(order: TrialOrder) -> Iterator[Line]:
        yield from warms_up(order, warmup_s, really=True)
        span = replace(measured(order, EPOCH_S)[0], seconds=seconds)
        yield from plays(order, span, really=True)
        yield from fills(order, span, time.monotonic())
        yield from result(order)

    return script


def measured(order: TrialOrder, *seconds: float) -> list[Span]:
    return [span for span in spans(order, *seconds) if span.measured]


def warms_up(
    order: TrialOrder, seconds: float = EPOCH_S, *, really: bool = False, train_loss: float = 1.0
) -> Iterator[Line]:
    """Until every job of the group is warm, where there are several. `really`: it takes so long."""
    yield from hello(order)
    for span in spans(order, seconds):
        if not span.measured:
            yield from plays(order, span, really=really, train_loss=train_loss)
    if order.jobs > 1:
        for rank in range(order.ranks):
            yield Warm(rank=rank)
        yield Until(told=Proceed)


def fills(order: TrialOrder, span: Span, t1: float) -> Iterator[Line]:
    """Trains on until every job of the group has measured, where there are several.

    `span`: what it has measured last, until `t1`. A stream is measured on, in spans of as many steps.
    """
    if order.jobs == 1:
        return
    yield Filling(rank=0, at=time.monotonic())
    if isinstance(order.protocol, WholeEpochs):
        yield Until(told=StopFilling)
        return
    while True:
        look = Until(told=StopFilling, at=t1, is_either=True)
        yield look
        if look.is_told:
            return
        span = replace(span, number=span.number + 1)
        yield from plays(order, span, t0=t1)
        t1 += span.seconds


trains = trains_for(EPOCH_S)
diverges = trains_for(EPOCH_S, train_loss=math.nan)


def runs_out_of_gpu_memory(order: TrialOrder) -> Iterator[Line]:
    yield from hello(order)
    yield from out_of_memory()


def runs_out_when_measured(order: TrialOrder) -> Iterator[Line]:
    """Fits while it warms up, and no longer once all train."""
    yield from warms_up(order)
    yield from out_of_memory()


def out_of_memory() -> Iterator[Line]:
    yield Error(rank=0, kind="oom", reason="OutOfMemoryError: CUDA out of memory", at=1.0)
    yield exits(1)


def exits(code: int, rank: int = 0) -> RankExit:
    return RankExit(rank=rank, code=code, killed=False, at=1.0)


def raises(order: TrialOrder) -> Iterator[Line]:
    yield from hello(order)
    yield Error(rank=0, kind="failed", reason="ValueError: no such layer", at=1.0)
    yield exits(1)


def is_killed(order: TrialOrder) -> Iterator[Line]:
    yield from hello(order)
    with order.log.open("a") as log:
        log.write("loading\nthe kernel was not amused\n\n")
    yield exits(-9)


def vanishes(order: TrialOrder) -> Iterator[Line]:
    yield from hello(order)


def hangs(order: TrialOrder) -> Iterator[Line]:
    yield from hello(order)
    yield from epoch(order, 0)
    yield HANG


class Scripted:
    """In place of a `ForkServer`: `choose` gives each trial its script, by its order."""

    def __init__(self, choose: Callable[[TrialOrder], Script] = lambda _: trains) -> None:
        self.claim_turn = choose
        self.launched: list[TrialOrder] = []
        self.left = 0
        """Trials that have been started and not ended."""

    @property
    def batches(self) -> list[int]:
        return [order.trial.batch_size for order in self.launched]

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never_stop) -> ScriptedTrial:  # noqa: ARG002
        self.launched.append(order)
        self.left += 1
        return ScriptedTrial(self, order, self.claim_turn(order)(order))

    def close(self) -> None:
        assert self.left == 0, "a trial was not ended"


class ScriptedTrial:
    """In place of a `ForkedTrial`. Its process id is that of the tests."""

    pid = os.getpid()

    open_descriptors: Sequence[int] = ()
    """None: a script is never waited for."""

    def __init__(self, launcher: Scripted, order: TrialOrder, script: Iterator[Line]) -> None:
        self._launcher = launcher
        self._ranks = order.ranks
        self._script = script
        self._said: set[type[Event]] = set()
        self._replies: set[tuple[int, type[Answer]]] = set()
        self._until = Until()
        self._over = False
        self._is_ended = False

    def receive_events(self, timeout: float) -> list[Event]:
        if not self._goes_on():
            time.sleep(min(max(timeout, 0), 0.01))
            return []
        self._until.is_told = self._is_told()
        line = next(self._script, None)
        if isinstance(line, Until):
            self._until = line
            return []
        self._over = line is None
        self._said |= {type(line)} if line else set()
        return [line] if line else []

    def reply(self, rank: int, answer: Answer) -> None:
        told = type(answer)
        assert told is not StopFilling or Filling in self._said, "it is told to stop while it measures"
        assert told is not Proceed or {Warm, Settle} & self._said, "it is let go before it is warm"
        self._replies.add((rank, told))

    def _goes_on(self) -> bool:
        """Whether what the script waits for last has come."""
        come = (self._is_told(), time.monotonic() >= self._until.at)
        return any(come) if self._until.is_either else all(come)

    def _is_told(self) -> bool:
        told = self._until.told
        ranks = range(1 if told is StopFilling else self._ranks)
        return told is None or all((rank, told) in self._replies for rank in ranks)

    @property
    def has_leader_ended(self) -> bool:
        return self._over

    def request_stacks(self) -> list[ProcessStack]:
        return []

    def end(self) -> None:
        if not self._is_ended:
            self._launcher.left -= 1
        self._is_ended = True


def computer(gpus: int = 0, name: str = "NVIDIA H200", cpus: int | None = None) -> Machine:
    """A machine with so many GPUs, by ids of our own. `cpus`: how many; None: those that there are."""
    cpu_ids = tuple(sorted(os.sched_getaffinity(0))) if cpus is None else tuple(range(cpus))
    found = [Gpu(index=i, uuid=f"GPU-{i}{i}", name=name, memory_mib=143771) for i in range(gpus)]
    return Machine(
        host="here", gpus=tuple(found), driver="580.1" if gpus else None, cpu_name="CPU", cpu_ids=cpu_ids,
        cpu_count=len(cpu_ids),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Driver(NoNvml):
    """An NVML that knows the memory of processes and nothing else: pid -> MiB, on every GPU."""

    reason: str = "not asked in this test"
    mib: Mapping[int, float] = field(default_factory=dict)

    def ask(self, call: NvmlCall[T], uuid: str) -> T:
        return cast("T", list(self.mib.items())) if call is PROCESSES else NoNvml.ask(self, call, uuid)


DEATHS: tuple[tuple[Script, str], ...] = (
    (raises, "ValueError: no such layer"),
    (is_killed, f"rank 0 {SIGKILLED}; last line of its output: the kernel was not amused"),
    (vanishes, "its processes ended without a result"),
)
"""Scripts of trials that die, and the reason that is stored of each."""
