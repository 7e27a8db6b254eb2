"""An NVML that says what a test tells it to, and fails where a test tells it to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpubench.monitor.nvml import Device, Memory, NvmlError, Utilisation


def gpu(index: int, *, name: str = "NVIDIA H200", memory_mib: int = 143771) -> Device:
    return Device(
        index=index,
        uuid=f"GPU-{index}{index}",
        name=name,
        memory_mib=memory_mib,
        pci_bus_id=f"0000:{index:02}",
    )


@dataclass
class FakeNvml:
    devices: Sequence[Device] = (gpu(0), gpu(1))
    driver: str | None = "580.1"
    util: dict[str, float] = field(default_factory=dict)
    mem_util: dict[str, float] = field(default_factory=dict)
    used: dict[str, float] = field(default_factory=dict)
    power: dict[str, float] = field(default_factory=dict)
    procs: dict[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    """Names of calls that fail."""

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

    def _fail(self, call: str) -> None:
        if call in self.broken:
            raise NvmlError(f"{call}: Not Supported")
