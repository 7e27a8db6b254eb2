"""The one seam to NVIDIA's management library. Everything else in gpubench sees `Nvml` alone.

NVML must not be carried across a fork: open it in the process that watches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pynvml

from gpubench.monitor.missing import Unmeasured

MIB = 1 << 20


class NvmlError(Unmeasured):
    """An NVML call that gave no figure; its text says which call and why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """A GPU, or a MIG slice of one, as the driver lists it."""

    index: int
    """NVML's number, in order of PCI bus ids. A MIG slice has its parent's."""
    uuid: str
    name: str
    memory_mib: int
    pci_bus_id: str
    parent: str | None = None
    """uuid of the GPU that a MIG slice is cut from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Utilisation:
    """Per cent of the driver's last sampling period (1/6 s to 1 s, by product)."""

    gpu_pct: float
    """Time in which at least one kernel ran."""
    memory_pct: float
    """Time in which device memory was read or written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Memory of a device, whoever uses it."""

    used_mib: float
    """Without the driver's own reserve where the driver tells them apart."""
    reserved_mib: float | None
    """What the driver keeps for itself; None: an old driver that counts it as used."""


class Nvml(Protocol):
    """Just the calls that are needed. Each raises NvmlError with the reason where it has no figure."""

    @property
    def devices(self) -> Sequence[Device]:
        """All GPUs in NVML's order, each followed by its MIG slices. Read once, when NVML is opened."""

    @property
    def driver(self) -> str | None:
        """Version of the driver; None: no driver."""

    def utilisation(self, uuid: str) -> Utilisation:
        """Of one device, now."""

    def memory(self, uuid: str) -> Memory:
        """Of one device, now."""

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        """Compute processes on one device: pid and MiB. None: the driver does not say how much.

        Pids are those of the driver's pid namespace, which inside a container may not be ours.
        """

    def power_w(self, uuid: str) -> float:
        """Watts that one device draws: on Ampere and later the driver's mean over the last second."""


@dataclass(frozen=True, slots=True)
class NoNvml:
    """Stands in where there is no driver: no devices, and every call says why."""

    reason: str

    @property
    def devices(self) -> Sequence[Device]:
        return ()

    @property
    def driver(self) -> str | None:
        return None

    def utilisation(self, uuid: str) -> Utilisation:  # noqa: ARG002
        raise NvmlError(self.reason)

    def memory(self, uuid: str) -> Memory:  # noqa: ARG002
        raise NvmlError(self.reason)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:  # noqa: ARG002
        raise NvmlError(self.reason)

    def power_w(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)


class PynvmlNvml:
    """The real library. Build it with `open_nvml`."""

    def __init__(self) -> None:
        """Raises NvmlError where there is no driver, or it does not answer."""
        _call("NVML", pynvml.nvmlInit)
        self._handles: dict[str, Any] = {}
        self.driver: str | None = _text(_call("driver version", pynvml.nvmlSystemGetDriverVersion))
        self.unreadable: dict[int, str] = {}
        """NVML index -> why that GPU is left out (fallen off the bus, no permission)."""
        self.devices: tuple[Device, ...] = tuple(self._list())
        self._memory_v2 = True

    def utilisation(self, uuid: str) -> Utilisation:
        rates = _call("utilisation", pynvml.nvmlDeviceGetUtilizationRates, self._handle(uuid))
        return Utilisation(gpu_pct=float(rates.gpu), memory_pct=float(rates.memory))

    def memory(self, uuid: str) -> Memory:
        handle = self._handle(uuid)
        if self._memory_v2:
            try:
                info = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
                return Memory(used_mib=info.used / MIB, reserved_mib=info.reserved / MIB)
            except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
                self._memory_v2 = False  # a driver before 510
            except pynvml.NVMLError as error:
                raise NvmlError(f"memory: {error}") from error
        info = _call("memory", pynvml.nvmlDeviceGetMemoryInfo, handle)
        return Memory(used_mib=info.used / MIB, reserved_mib=None)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        found = _call("compute processes", pynvml.nvmlDeviceGetComputeRunningProcesses, self._handle(uuid))
        return [(p.pid, None if p.usedGpuMemory is None else p.usedGpuMemory / MIB) for p in found]

    def power_w(self, uuid: str) -> float:
        return float(_call("power", pynvml.nvmlDeviceGetPowerUsage, self._handle(uuid))) / 1000

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            self._handles[uuid] = _call(f"GPU {uuid}", pynvml.nvmlDeviceGetHandleByUUID, uuid)
        return self._handles[uuid]

    def _list(self) -> list[Device]:
        devices: list[Device] = []
        for index in range(_call("device count", pynvml.nvmlDeviceGetCount)):
            try:
                handle = _call(f"GPU {index}", pynvml.nvmlDeviceGetHandleByIndex, index)
                whole = self._device(handle, index, parent=None)
            except NvmlError as error:
                # A GPU that has fallen off the bus must not take its neighbours with it.
                self.unreadable[index] = str(error)
                continue
            devices += [whole, *self._slices(handle, whole)]
        return devices

    def _device(self, handle: Any, index: int, parent: Device | None) -> Device:
        uuid = _text(_call("uuid", pynvml.nvmlDeviceGetUUID, handle))
        self._handles[uuid] = handle
        bus = "" if parent else _text(_call("PCI", pynvml.nvmlDeviceGetPciInfo, handle).busId)
        return Device(
            index=index,
            uuid=uuid,
            name=_text(_call("name", pynvml.nvmlDeviceGetName, handle)),
            memory_mib=_call("memory", pynvml.nvmlDeviceGetMemoryInfo, handle).total // MIB,
            pci_bus_id=parent.pci_bus_id if parent else bus,
            parent=parent.uuid if parent else None,
        )

    def _slices(self, handle: Any, whole: Device) -> list[Device]:
        try:
            most = _call("MIG", pynvml.nvmlDeviceGetMaxMigDeviceCount, handle)
        except NvmlError:
            return []  # a GPU that can't be cut
        slices = []
        for place in range(most):
            try:
                slice_handle = _call("MIG", pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
                slices.append(self._device(slice_handle, whole.index, parent=whole))
            except NvmlError:  # an empty place: NVML has no other way to say so
                continue
        return slices


def open_nvml() -> Nvml:
    """The real NVML, or a `NoNvml` that carries the reason where there is no driver or library."""
    try:
        return PynvmlNvml()
    except NvmlError as error:
        return NoNvml(str(error))


def _call(what: str, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except pynvml.NVMLError as error:
        raise NvmlError(f"{what}: {error}") from error


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
