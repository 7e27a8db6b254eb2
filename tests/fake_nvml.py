"""An NVML that says what a test tells it to, and fails where a test tells it to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.monitor.nvml import ComputeMode, Device, History, Kind, Memory, Nvml, NvmlError, Utilisation

KINDS: dict[str, Kind] = {"GPU is lost": "lost", "GPU requires restart": "lost", "Unknown Error": "unclear"}
"""What the driver says -> what that means for the GPU; of anything else nothing."""


def refused(call: str, said: str) -> NvmlError:
    """A call that fails, as the seam puts it. `test_nvml.py` shows that the real library is put so."""
    return NvmlError(f"{call}: {said}", KINDS.get(said, "refused"))


def gpu(index: int, *, name: str = "NVIDIA H200", memory_mib: int = 143771) -> Device:
    return Device(
        index=index,
        uuid=f"GPU-{index}{index}",
        name=name,
        memory_mib=memory_mib,
        pci_bus_id=f"0000:{index:02}",
    )


def calls_of_the_seam() -> set[str]:
    """Every call of `Nvml`, so that a test that goes through them all can't forget a new one."""
    return {name for name, thing in vars(Nvml).items() if callable(thing) and not name.startswith("_")}


@dataclass
class FakeNvml:
    devices: Sequence[Device] = (gpu(0), gpu(1))
    driver: str | None = "580.1"
    power_source: str = "NVML field 186, instant"
    util: dict[str, float] = field(default_factory=dict)
    mem_util: dict[str, float] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    power: dict[str, float] = field(default_factory=dict)
    procs: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    graphics: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    energy: dict[str, float] = field(default_factory=dict)
    clock: dict[str, float] = field(default_factory=dict)
    throttled: dict[str, int] = field(default_factory=dict)
    buffers: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    """(uuid, what) -> (seconds since 1970, value), oldest first."""
    modes: dict[str, ComputeMode] = field(default_factory=dict)
    unreadable: dict[int, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Names of calls that fail."""
    error: str = "Not Supported"
    """What a failing call says."""

    def utilisation(self, uuid: str) -> Utilisation:
        self._fail("utilisation")
        return Utilisation(gpu_pct=self.util.get(uuid, 0.0), memory_pct=self.mem_util.get(uuid, 0.0))

    def memory(self, uuid: str) -> Memory:
        self._fail("memory")
        return Memory(used_mib=self.used.get(uuid, 0.0), reserved_mib=600.0)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        self._fail("processes")
        return list(self.procs.get(uuid, []))

    def power_w(self, uuid: str) -> float:
        self._fail("power")
        return self.power.get(uuid, 0.0)

    def desktop(self, uuid: str) -> list[tuple[int, float | None]]:
        self._fail("desktop")
        return list(self.graphics.get(uuid, []))

    def energy_j(self, uuid: str) -> float:
        self._fail("energy")
        return self.energy.get(uuid, 0.0)

    def sm_clock_mhz(self, uuid: str) -> float:
        self._fail("clock")
        return self.clock.get(uuid, 1980.0)

    def max_sm_clock_mhz(self, uuid: str) -> float:  # noqa: ARG002
        self._fail("max clock")
        return 1980.0

    def temperature_c(self, uuid: str) -> float:  # noqa: ARG002
        self._fail("temperature")
        return 40.0

    def throttle_mask(self, uuid: str) -> int:
        self._fail("throttle")
        return self.throttled.get(uuid, 0)

    def compute_mode(self, uuid: str) -> ComputeMode:
        self._fail("compute mode")
        return self.modes.get(uuid, "shared")

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        self._fail("history")
        return [(t, value) for t, value in self.buffers.get((uuid, what), []) if t > after_s]

    def _fail(self, call: str) -> None:
        if call in self.broken:
            raise refused(call, self.error)


class Counted:
    """Passes all on to an NVML and counts its calls."""

    def __init__(self, inner: FakeNvml) -> None:
        self.inner = inner
        self.made: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        thing = getattr(self.inner, name)
        if name not in calls_of_the_seam():
            return thing

        def call(*args: Any) -> Any:
            self.made[name] += 1
            return thing(*args)

        return call
