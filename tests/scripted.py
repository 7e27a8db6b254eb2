"""Trials that play a script in place of training: every ending of a trial, without a process or a GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar, cast

from gpubench.basics.stacks import Stack
from gpubench.node.environment import Gpu, Machine
from gpubench.node.launch.client import never
from gpubench.node.watch.memory_kills import memory_kills
from gpubench.node.watch.nvml import NoNvml
from gpubench.node.watch.nvml_calls import PROCESSES, Call

T = TypeVar("T")
Spec = dict[str, Any]
Event = dict[str, Any]
Script = Callable[[Spec], Iterator[Event]]
"""What a trial's processes say, one event after the other. It may write to the log in between."""

_kills = memory_kills()
SIGKILLED = "was ended by SIGKILL " + (
    f"(not by the kernel for memory: it counts no such kill in {_kills.where})"
    if _kills
    else "(the host may have run out of memory)"
)
"""How a reason tells on this machine of a process that somebody killed."""
EPOCH_S = 0.5
HANG: Event = {"event": "hang"}
"""Says nothing more and does not end."""


def told(word: str) -> Event:
    """Says nothing more until every rank (of `stop`: the first) has been told this: `go` or `stop`."""
    return {"event": "until", "told": word}


def at(moment: float) -> Event:
    """Says nothing more before this monotonic second."""
    return {"event": "until", "at": moment}


def hello(spec: Spec) -> Iterator[Event]:
    for rank in range(spec["ranks"]):
        yield {"event": "hello", "rank": rank, "pid": os.getpid(), "cuda": None, "torch": "2.0"}


def epoch(spec: Spec, number: int, train_loss: float = 1.0, seconds: float | None = None) -> Iterator[Event]:
    """One epoch of so many seconds (EPOCH_S) by its own account; it passes at once."""
    per_epoch = spec["data_spec"]["train_images"] // spec["batch_size"]
    t0 = time.monotonic()
    window = {"epoch": number, "measured": number >= spec["warmup_epochs"], "steps": per_epoch}
    for rank in range(spec["ranks"]):
        yield {"event": "begin", "rank": rank, **window}
    for rank in range(spec["ranks"]):
        t1 = t0 + (EPOCH_S if seconds is None else seconds)
        yield steps(rank, number, per_epoch, t1 - t0, wait_s=0.1)
        figures = {"t0": t0, "t1": t1, "first_batch_s": 0.01, "train_loss": train_loss}
        yield {"event": "end", "rank": rank, **window, **figures}


def steps(rank: int, number: int, count: int, seconds: float, *, wait_s: float = 0.0) -> Event:
    """The steps of one rank's epoch: equally long, and each with its part of the waits."""
    ended = [int(1e6 * seconds * (k + 1) / count) for k in range(count)]
    waits = [round(1e6 * wait_s / count)] * count
    return {"event": "steps", "rank": rank, "epoch": number, "end_us": ended, "wait_us": waits}


def result(spec: Spec) -> Iterator[Event]:
    yield {"event": "settle", "rank": 0}
    for rank in range(spec["ranks"]):
        yield {
            "event": "result", "rank": rank, "at": time.monotonic(),
            "steps_per_epoch": spec["data_spec"]["train_images"] // spec["batch_size"],
            "step_ms": {"p50": 5.0, "p95": 9.0}, "quality": None, "memory": {}, "phases": {"start": 0.1},
            "params_m": 0.06, "gmacs_per_image": 0.001,
        }  # fmt: skip


def trains(spec: Spec) -> Iterator[Event]:
    return trains_for(EPOCH_S)(spec)


def trains_for(*seconds: float) -> Script:
    """Trains with epochs of so many seconds, by turns; as a job of a group it waits for the others, and fills."""

    def script(spec: Spec) -> Iterator[Event]:
        yield from warms_up(spec, seconds[0])
        for number, took in zip(range(spec["warmup_epochs"], spec["epochs"]), cycle(seconds), strict=False):
            yield from epoch(spec, number, seconds=took)
        yield from fills(spec)
        yield from result(spec)

    return script


def lasts(seconds: float, warmup_s: float = 0.0) -> Script:
    """Trains one measured epoch that really takes so many seconds, as each epoch of its warm-up does."""

    def script(spec: Spec) -> Iterator[Event]:
        yield from warms_up(spec, warmup_s, really=True)
        number, count = spec["warmup_epochs"], spec["data_spec"]["train_images"] // spec["batch_size"]
        window = {"rank": 0, "epoch": number, "measured": True, "steps": count}
        t0 = time.monotonic()
        yield {"event": "begin", **window}
        yield at(t0 + seconds)
        t1 = time.monotonic()
        yield steps(0, number, count, t1 - t0)
        yield {"event": "end", "t0": t0, "t1": t1, **window, "first_batch_s": 0.0, "train_loss": 1.0}
        yield from fills(spec)
        yield from result(spec)

    return script


def warms_up(spec: Spec, seconds: float | None = None, *, really: bool = False) -> Iterator[Event]:
    """Until every job of the group is warm, where there are several. `really`: an epoch passes before the next."""
    yield from hello(spec)
    for number in range(spec["warmup_epochs"]):
        yield from epoch(spec, number, seconds=seconds)
        if really and seconds:
            yield at(time.monotonic() + seconds)
    if spec.get("jobs", 1) > 1:
        for rank in range(spec["ranks"]):
            yield {"event": "ready", "rank": rank}
        yield told("go")


def fills(spec: Spec) -> Iterator[Event]:
    """Trains on until every job of the group has measured its epochs, where there are several."""
    if spec.get("jobs", 1) > 1:
        yield {"event": "filling", "rank": 0, "at": time.monotonic()}
        yield told("stop")


def diverges(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    for number in range(spec["epochs"]):
        yield from epoch(spec, number, train_loss=float("nan"))
    yield from result(spec)


def runs_out_of_gpu_memory(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    yield from out_of_memory()


def runs_out_when_measured(spec: Spec) -> Iterator[Event]:
    """Fits while it warms up, and no longer once all train."""
    yield from warms_up(spec)
    yield from out_of_memory()


def out_of_memory() -> Iterator[Event]:
    yield {
        "event": "error",
        "rank": 0,
        "kind": "oom",
        "reason": "OutOfMemoryError: CUDA out of memory",
        "at": 1.0,
    }
    yield {"event": "rank-exit", "rank": 0, "code": 1}


def raises(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    yield {"event": "error", "rank": 0, "kind": "failed", "reason": "ValueError: no such layer", "at": 1.0}
    yield {"event": "rank-exit", "rank": 0, "code": 1}


def is_killed(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    with Path(spec["log"]).open("a") as log:
        log.write("loading\nthe kernel was not amused\n\n")
    yield {"event": "rank-exit", "rank": 0, "code": -9}


def vanishes(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)


def hangs(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    yield from epoch(spec, 0)
    yield HANG


class Scripted:
    """A `Launcher`: `choose` gives each trial its script, by its order."""

    def __init__(self, choose: Callable[[Spec], Script] = lambda _: trains) -> None:
        self.choose = choose
        self.launched: list[Spec] = []
        self.left = 0
        """Trials that have been started and not ended."""

    @property
    def batches(self) -> list[int]:
        return [spec["batch_size"] for spec in self.launched]

    def launch(self, spec: Spec, should_stop: Callable[[], bool] = never) -> ScriptedTrial:  # noqa: ARG002
        self.launched.append(spec)
        self.left += 1
        return ScriptedTrial(self, spec, self.choose(spec)(spec))

    def close(self) -> None:
        assert self.left == 0, "a trial was not ended"


class ScriptedTrial:
    """A `Running` trial. Its process id is that of the tests."""

    pid = os.getpid()

    open_files: Sequence[int] = ()
    """None: a script is never waited for."""

    def __init__(self, launcher: Scripted, spec: Spec, script: Iterator[Event]) -> None:
        self._launcher = launcher
        self._ranks: int = spec["ranks"]
        self._script = script
        self._said: set[str] = set()
        self._replies: list[tuple[int, str]] = []
        """To which rank, and each word of it."""
        self._until: Event = {"event": "until"}
        self._hanging = False
        self._over = False
        self._is_ended = False

    def events(self, timeout: float) -> list[Event]:
        if self._hanging or not self._goes_on():
            time.sleep(min(max(timeout, 0), 0.01))
            return []
        event = next(self._script, None)
        if event is HANG:
            self._hanging = True
            return []
        if event is not None and event.get("event") == "until":
            self._until = event
            return []
        self._over = event is None
        self._said |= {event["event"]} if event else set()
        return [event] if event else []

    def reply(self, rank: int, message: dict[str, Any]) -> None:
        assert "stop" not in message or "filling" in self._said, "it is told to stop while it measures"
        assert "go" not in message or {"ready", "settle"} & self._said, "it is let go before it is warm"
        self._replies += [(rank, word) for word in message]

    def _goes_on(self) -> bool:
        """Whether what the script waits for last has come."""
        word = self._until.get("told")
        ranks = range(1 if word == "stop" else self._ranks)
        heard = word is None or all((rank, word) in self._replies for rank in ranks)
        return heard and time.monotonic() >= self._until.get("at", 0)

    @property
    def ended(self) -> bool:
        return self._over

    def stacks(self) -> list[Stack]:
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

    def ask(self, call: Call[T], uuid: str) -> T:
        return cast("T", list(self.mib.items())) if call is PROCESSES else NoNvml.ask(self, call, uuid)
