"""Trials that play a script in place of training: every ending of a trial, without a process or a GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpubench.environment import Gpu, Machine
from gpubench.monitor.nvml import NoNvml

Spec = dict[str, Any]
Event = dict[str, Any]
Script = Callable[[Spec], Iterator[Event]]
"""What a trial's processes say, one event after the other. It may write to the log in between."""

EPOCH_S = 0.5
HANG: Event = {"event": "hang"}
"""Says nothing more and does not end."""


def hello(spec: Spec) -> Iterator[Event]:
    for rank in range(spec["ranks"]):
        yield {"event": "hello", "rank": rank, "pid": os.getpid(), "cuda": None, "torch": "2.0"}


def epoch(spec: Spec, number: int, train_loss: float = 1.0) -> Iterator[Event]:
    """One epoch of EPOCH_S seconds by its own account; it passes at once."""
    per_epoch = spec["data_spec"]["train_images"] // spec["batch_size"]
    t0 = time.monotonic()
    window = {"epoch": number, "measured": number >= spec["warmup_epochs"], "steps": per_epoch}
    for rank in range(spec["ranks"]):
        yield {"event": "begin", "rank": rank, **window}
    for rank in range(spec["ranks"]):
        told = {
            "t0": t0,
            "t1": t0 + EPOCH_S,
            "data_wait_s": 0.1,
            "first_batch_s": 0.01,
            "train_loss": train_loss,
        }
        yield {"event": "end", "rank": rank, **window, **told}


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
    yield from hello(spec)
    for number in range(spec["epochs"]):
        yield from epoch(spec, number)
    yield from result(spec)


def diverges(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
    for number in range(spec["epochs"]):
        yield from epoch(spec, number, train_loss=float("nan"))
    yield from result(spec)


def runs_out_of_gpu_memory(spec: Spec) -> Iterator[Event]:
    yield from hello(spec)
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

    def launch(self, spec: Spec) -> ScriptedTrial:
        self.launched.append(spec)
        self.left += 1
        return ScriptedTrial(self, self.choose(spec)(spec))

    def close(self) -> None:
        assert self.left == 0, "a trial was not ended"


class ScriptedTrial:
    """A `Running` trial. Its process id is that of the tests."""

    pid = os.getpid()

    def __init__(self, launcher: Scripted, script: Iterator[Event]) -> None:
        self._launcher = launcher
        self._script = script
        self._hanging = False
        self._over = False
        self._is_ended = False

    def events(self, timeout: float) -> list[Event]:
        if self._hanging:
            time.sleep(min(max(timeout, 0), 0.01))
            return []
        event = next(self._script, None)
        if event is HANG:
            self._hanging = True
            return []
        self._over = event is None
        return [event] if event else []

    def reply(self, rank: int, message: dict[str, Any]) -> None:
        pass

    @property
    def ended(self) -> bool:
        return self._over

    def end(self) -> None:
        if not self._is_ended:
            self._launcher.left -= 1
        self._is_ended = True


def computer(gpus: int = 0, name: str = "NVIDIA H200") -> Machine:
    """A machine with so many GPUs, by ids of our own."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    found = [Gpu(index=i, uuid=f"GPU-{i}{i}", name=name, memory_mib=143771) for i in range(gpus)]
    return Machine(
        host="here", gpus=tuple(found), driver="580.1" if gpus else None, cpu_name="CPU", cpu_ids=cpus,
        cpu_count=len(cpus),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Driver(NoNvml):
    """An NVML that knows the memory of processes and nothing else: pid -> MiB, on every GPU."""

    reason: str = "not asked in this test"
    mib: Mapping[int, float] = field(default_factory=dict)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:  # noqa: ARG002
        return list(self.mib.items())
