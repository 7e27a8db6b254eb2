"""One NVML for several watchers of the same GPUs: what one of them was just told will do for the others."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from gpubench.node.watch.nvml import History, Nvml, NvmlError
from gpubench.node.watch.nvml_calls import Call
from gpubench.node.watch.pacing import Clock

T = TypeVar("T")

CACHE_S = 0.05
"""An answer as young as this serves all that ask, half a period of the fastest: the watchers of jobs that start
together ask at about the same time. The counter of energy moves every 0.1 s."""


class CachedNvml:
    """Remembers what it was told of a GPU for a moment, and why it was told nothing."""

    def __init__(self, nvml: Nvml, clock: Clock) -> None:
        """`nvml`: the driver's own; `clock`: the watchers'."""
        self.direct = nvml
        self.devices, self.driver, self.unreadable = nvml.devices, nvml.driver, nvml.unreadable
        self._clock = clock
        self._answers: dict[tuple[str, str], tuple[float, Any]] = {}
        """Call and uuid -> when it was asked, and the answer or NvmlError."""

    def ask(self, call: Call[T], uuid: str) -> T:
        if not call.is_cacheable:
            return self.direct.ask(call, uuid)
        now = self._clock()
        remembered = self._answers.get((call.name, uuid))
        if remembered is None or now - remembered[0] >= CACHE_S:
            remembered = now, _answer(self.direct, call, uuid)
            self._answers[call.name, uuid] = remembered
        answer = remembered[1]
        if isinstance(answer, NvmlError):
            # A new one: raised again and again, the same would gather its tracebacks.
            raise NvmlError(str(answer), answer.kind)
        # A list that one asker changes is not the next one's.
        return cast("T", list(answer) if isinstance(answer, list) else answer)

    @property
    def power_source(self) -> str:
        return self.direct.power_source

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        # Each watcher wants what came since its own last time. All three buffers together cost it less than a
        # thousandth of a core's time: not worth remembering.
        return self.direct.history(uuid, what, after_s)


def _answer(nvml: Nvml, call: Call[T], uuid: str) -> T | NvmlError:
    try:
        return nvml.ask(call, uuid)
    except NvmlError as reason:
        return reason


def uncached(nvml: Nvml) -> Nvml:
    """The driver's own NVML, for what must not be a moment old."""
    return nvml.direct if isinstance(nvml, CachedNvml) else nvml
