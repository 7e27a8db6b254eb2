"""One NVML for several watchers of the same GPUs: what one of them was just told will do for the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from gpubench.monitor.nvml import ComputeMode, Device, History, Memory, Nvml, NvmlError, Utilisation
from gpubench.monitor.pacing import Clock

T = TypeVar("T")

MOMENT_S = 0.05
"""An answer as young as this serves all that ask, half a period of the fastest: the watchers of jobs that start
together ask at about the same time. The counter of energy moves every 0.1 s."""


class SharedNvml:
    """Remembers what it was told of a GPU for a moment, and why it was told nothing."""

    def __init__(self, nvml: Nvml, clock: Clock, moment_s: float = MOMENT_S) -> None:
        """`nvml`: the driver's own; `clock`: the watchers'."""
        self.own = nvml
        self._clock = clock
        self._moment_s = moment_s
        self._told: dict[tuple[str, str], tuple[float, Any]] = {}
        """Call and uuid -> when it was asked, and the answer or NvmlError."""

    # ------------------------------------------------------------ remembered

    def utilisation(self, uuid: str) -> Utilisation:
        return self._recent("utilisation", self.own.utilisation, uuid)

    def memory(self, uuid: str) -> Memory:
        return self._recent("memory", self.own.memory, uuid)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        return list(self._recent("processes", self.own.processes, uuid))

    def power_w(self, uuid: str) -> float:
        return self._recent("power_w", self.own.power_w, uuid)

    def energy_j(self, uuid: str) -> float:
        return self._recent("energy_j", self.own.energy_j, uuid)

    def sm_clock_mhz(self, uuid: str) -> float:
        return self._recent("sm_clock_mhz", self.own.sm_clock_mhz, uuid)

    def temperature_c(self, uuid: str) -> float:
        return self._recent("temperature_c", self.own.temperature_c, uuid)

    def throttle_mask(self, uuid: str) -> int:
        return self._recent("throttle_mask", self.own.throttle_mask, uuid)

    # ------------------------------------------------------------ passed through

    @property
    def devices(self) -> Sequence[Device]:
        return self.own.devices

    @property
    def driver(self) -> str | None:
        return self.own.driver

    @property
    def unreadable(self) -> Mapping[int, str]:
        return self.own.unreadable

    @property
    def power_source(self) -> str:
        return self.own.power_source

    def desktop(self, uuid: str) -> list[tuple[int, float | None]]:
        return self.own.desktop(uuid)

    def max_sm_clock_mhz(self, uuid: str) -> float:
        return self.own.max_sm_clock_mhz(uuid)

    def compute_mode(self, uuid: str) -> ComputeMode:
        return self.own.compute_mode(uuid)

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        # Each watcher wants what came since its own last time. All three buffers together cost it less than a
        # thousandth of a core's time: not worth remembering.
        return self.own.history(uuid, what, after_s)

    def _recent(self, name: str, call: Callable[[str], T], uuid: str) -> T:
        now = self._clock()
        told = self._told.get((name, uuid))
        if told is None or now - told[0] >= self._moment_s:
            told = now, _answer(call, uuid)
            self._told[name, uuid] = told
        answer = told[1]
        if isinstance(answer, NvmlError):
            # A new one: raised again and again, the same would gather its tracebacks.
            raise NvmlError(str(answer), answer.kind)
        return cast("T", answer)


def _answer(call: Callable[[str], T], uuid: str) -> T | NvmlError:
    try:
        return call(uuid)
    except NvmlError as reason:
        return reason


def afresh(nvml: Nvml) -> Nvml:
    """The driver's own NVML, for what must not be a moment old."""
    return nvml.own if isinstance(nvml, SharedNvml) else nvml
