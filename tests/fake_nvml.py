"""An NVML that says what a test tells it to, and fails where a test tells it to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpubench.node.environment import Gpu
from gpubench.node.watch.nvml import History, NvmlError
from gpubench.node.watch.nvml_calls import CALLS, NvmlCall, Utilisation

T = TypeVar("T")


def refused(call: str, said: str) -> NvmlError:
    """A call that fails, as the seam puts it. `test_nvml.py` shows that the real library is put so."""
    return NvmlError(f"{call}: {said}")


def gpu(index: int, *, name: str = "NVIDIA H200", memory_mib: int = 143771) -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}{index}",
        name=name,
        memory_mib=memory_mib,
    )


def calls_of_the_seam() -> set[str]:
    """Every call of `Nvml`, so that a test that goes through them all can't forget a new one."""
    return {*CALLS, "history"}


def running(
    gpu_pct: Mapping[str, float], memory_pct: Mapping[str, float] | None = None
) -> dict[str, Utilisation]:
    """Answers to UTILISATION."""
    told = memory_pct or {}
    return {u: Utilisation(gpu_pct=pct, memory_pct=told.get(u, 0.0)) for u, pct in gpu_pct.items()}


@dataclass
class FakeNvml:
    devices: Sequence[Gpu] = (gpu(0), gpu(1))
    driver: str | None = "580.1"
    power_source: str = "NVML field 186, instant"
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Call -> uuid -> answer. What is not told is as on a GPU on which nothing runs."""
    buffers: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    """(uuid, what) -> (seconds since 1970, value), oldest first."""
    unreadable: dict[int, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Names of calls that fail."""
    error: str = "Not Supported"
    """What a failing call says."""

    def ask(self, call: NvmlCall[T], uuid: str) -> T:
        self.fail(call.name, uuid)
        answer: T = self.answer(call.name, uuid)
        return answer

    def answer(self, name: str, uuid: str) -> Any:
        """Of a call that does not fail; for those below to know better."""
        return self.answers.get(name, {}).get(uuid, CALLS[name].idle)

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        self.fail("history", uuid)
        return [(t, value) for t, value in self.buffers.get((uuid, what), []) if t > after_s]

    def fail(self, call: str, uuid: str) -> None:  # noqa: ARG002
        """Raises NvmlError where the call fails; for those below to know better."""
        if call in self.broken:
            raise refused(call, self.error)


class Counted:
    """Passes all on to an NVML and counts its calls."""

    def __init__(self, inner: FakeNvml) -> None:
        self.inner = inner
        self.made: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def ask(self, call: NvmlCall[T], uuid: str) -> T:
        self.made[call.name] += 1
        return self.inner.ask(call, uuid)

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        self.made["history"] += 1
        return self.inner.read_driver_samples(uuid, what, after_s)
