"""The one seam to NVIDIA's management library. Everything else in gpubench sees `Nvml` alone.

NVML must not be carried across a fork: open it in the process that watches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pynvml

from gpubench.monitor.missing import Unmeasured

MIB = 1 << 20

THROTTLE_REASONS: dict[str, int] = {
    "power cap": 0x4,
    "hardware slowdown": 0x8,
    "sync boost": 0x10,
    "heat": 0x20,
    "heat (hardware)": 0x40,
    "power brake": 0x80,
}
"""What lowers a busy GPU's clocks -> its bit in the driver's mask. Idle (0x1), clocks that somebody has set (0x2)
and the display's (0x100) are settings, not accidents. Source: nvml.h, nvmlClocksEventReason*."""

History = Literal["gpu_util_pct", "gpu_mem_util_pct", "power_w"]
"""What the driver keeps a buffer of by itself."""

_HISTORY: dict[str, tuple[int, float]] = {
    "power_w": (pynvml.NVML_TOTAL_POWER_SAMPLES, 1e-3),
    "gpu_util_pct": (pynvml.NVML_GPU_UTILIZATION_SAMPLES, 1.0),
    "gpu_mem_util_pct": (pynvml.NVML_MEMORY_UTILIZATION_SAMPLES, 1.0),
}
"""The driver's kind of sample, and its unit in ours."""
ComputeMode = Literal["shared", "exclusive", "prohibited"]
"""Any number of processes, one at a time, none."""

_COMPUTE_MODES: dict[int, ComputeMode] = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "shared",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive",
}
_NEVER = (
    pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
)  # fmt: skip
"""Answers that will not change: an older driver or product, a container's rights. Others may pass."""
_POWER_INSTANT = 186
"""nvmlFieldValue of a power reading that is no average; the drivers' own number, since 530 or so."""


Kind = Literal["lost", "unclear", "refused"]
"""What a failed call says of its GPU: that it has fallen off the bus or must be reset, nothing that is of use, or
that this one answer can't be had."""

_KINDS: dict[int, Kind] = {
    pynvml.NVML_ERROR_GPU_IS_LOST: "lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "lost",
    pynvml.NVML_ERROR_UNKNOWN: "unclear",
}


class NvmlError(Unmeasured):
    """An NVML call that gave no figure; its text says which call and why."""

    def __init__(self, text: str, kind: Kind = "refused") -> None:
        super().__init__(text)
        self.kind = kind


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

    @property
    def unreadable(self) -> Mapping[int, str]:
        """NVML index -> why that GPU is left out of `devices` (fallen off the bus, no permission)."""

    @property
    def power_source(self) -> str:
        """Which of the driver's readings `power_w` gives."""

    def utilisation(self, uuid: str) -> Utilisation:
        """Of one device, now."""

    def memory(self, uuid: str) -> Memory:
        """Of one device, now."""

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        """Compute processes on one device: pid and MiB. None: the driver does not say how much.

        Pids are those of the driver's pid namespace, which inside a container may not be ours.
        """

    def desktop(self, uuid: str) -> list[tuple[int, float | None]]:
        """Graphics processes on one device, as `processes`."""

    def power_w(self, uuid: str) -> float:
        """Watts that one device draws now; by drivers that don't tell, the mean over the last second."""

    def energy_j(self, uuid: str) -> float:
        """Joules since the driver was loaded; counts on every 0.1 s. A call costs 4 to 6 ms of CPU time."""

    def sm_clock_mhz(self, uuid: str) -> float:
        """Clock of the multiprocessors, now."""

    def max_sm_clock_mhz(self, uuid: str) -> float:
        """The highest that this product allows. About 2 ms a call."""

    def temperature_c(self, uuid: str) -> float:
        """Of the GPU's core, now."""

    def throttle_mask(self, uuid: str) -> int:
        """What lowers the clocks now, as bits of THROTTLE_REASONS and others."""

    def compute_mode(self, uuid: str) -> ComputeMode:
        """Whom one device lets in."""

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        """The driver's own samples after `after_s`: (seconds since 1970, value), oldest first; none: empty.

        Each stands for the time since the one before. Seen on an H200: utilisation every 0.2 s and 14 s deep,
        2 ms a call; power every 0.02 s and 2.4 s deep, 0.5 ms a call.
        """


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

    @property
    def unreadable(self) -> Mapping[int, str]:
        return {}

    @property
    def power_source(self) -> str:
        return self.reason

    def utilisation(self, uuid: str) -> Utilisation:  # noqa: ARG002
        raise NvmlError(self.reason)

    def memory(self, uuid: str) -> Memory:  # noqa: ARG002
        raise NvmlError(self.reason)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:  # noqa: ARG002
        raise NvmlError(self.reason)

    def desktop(self, uuid: str) -> list[tuple[int, float | None]]:  # noqa: ARG002
        raise NvmlError(self.reason)

    def power_w(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)

    def energy_j(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)

    def sm_clock_mhz(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)

    def max_sm_clock_mhz(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)

    def temperature_c(self, uuid: str) -> float:  # noqa: ARG002
        raise NvmlError(self.reason)

    def throttle_mask(self, uuid: str) -> int:  # noqa: ARG002
        raise NvmlError(self.reason)

    def compute_mode(self, uuid: str) -> ComputeMode:  # noqa: ARG002
        raise NvmlError(self.reason)

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:  # noqa: ARG002
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
        self._no_instant: set[str] = set()
        """GPUs that don't tell their power of the instant, and never will."""

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
                raise _failed("memory", error) from error
        info = _call("memory", pynvml.nvmlDeviceGetMemoryInfo, handle)
        return Memory(used_mib=info.used / MIB, reserved_mib=None)

    def processes(self, uuid: str) -> list[tuple[int, float | None]]:
        found = _call("compute processes", pynvml.nvmlDeviceGetComputeRunningProcesses, self._handle(uuid))
        return [(p.pid, None if p.usedGpuMemory is None else p.usedGpuMemory / MIB) for p in found]

    def desktop(self, uuid: str) -> list[tuple[int, float | None]]:
        handle = self._handle(uuid)
        found = _call("graphics processes", pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle)
        return [(p.pid, None if p.usedGpuMemory is None else p.usedGpuMemory / MIB) for p in found]

    def power_w(self, uuid: str) -> float:
        handle = self._handle(uuid)
        if uuid not in self._no_instant:
            try:
                field = pynvml.nvmlDeviceGetFieldValues(handle, [_POWER_INSTANT])[0]
                if field.nvmlReturn == pynvml.NVML_SUCCESS:
                    return float(field.value.uiVal) / 1000
                raise pynvml.NVMLError(field.nvmlReturn)
            except pynvml.NVMLError as error:
                # The older call has its own say; of what may pass by, only for this once.
                if error.value in _NEVER:
                    self._no_instant.add(uuid)
        return float(_call("power", pynvml.nvmlDeviceGetPowerUsage, handle)) / 1000

    @property
    def power_source(self) -> str:
        kind = "power usage, on Ampere and later a mean of 1 s" if self._no_instant else "field 186, instant"
        return f"NVML {kind}"

    def energy_j(self, uuid: str) -> float:
        handle = self._handle(uuid)
        return float(_call("energy counter", pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)) / 1000

    def sm_clock_mhz(self, uuid: str) -> float:
        handle = self._handle(uuid)
        return float(_call("SM clock", pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM))

    def max_sm_clock_mhz(self, uuid: str) -> float:
        handle = self._handle(uuid)
        return float(
            _call("highest SM clock", pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM)
        )

    def temperature_c(self, uuid: str) -> float:
        handle = self._handle(uuid)
        kind = pynvml.NVML_TEMPERATURE_GPU
        return float(_call("temperature", pynvml.nvmlDeviceGetTemperature, handle, kind))

    def throttle_mask(self, uuid: str) -> int:
        handle = self._handle(uuid)
        return int(_call("throttle reasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle))

    def compute_mode(self, uuid: str) -> ComputeMode:
        mode = _call("compute mode", pynvml.nvmlDeviceGetComputeMode, self._handle(uuid))
        if mode not in _COMPUTE_MODES:
            raise NvmlError(f"compute mode: {mode} is unknown")
        return _COMPUTE_MODES[mode]

    def history(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        handle = self._handle(uuid)
        kind, scale = _HISTORY[what]
        try:
            value_type, samples = pynvml.nvmlDeviceGetSamples(handle, kind, int(after_s * 1e6))
        except pynvml.NVMLError_NotFound:
            return []  # nothing new; or, where it never has anything, nothing at all
        except pynvml.NVMLError as error:
            raise _failed(f"buffer of {what}", error) from error
        read = _VALUE.get(value_type)
        if read is None:
            raise NvmlError(f"buffer of {what}: values of unknown type {value_type}")
        # A buffer that is not full yet has empty places, with no time on them.
        found = [(s.timeStamp / 1e6, getattr(s.sampleValue, read) * scale) for s in samples if s.timeStamp]
        return sorted(found)

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


_VALUE = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
}
"""Type of a sample's value -> which part of the union holds it."""


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
        raise _failed(what, error) from error


def _failed(what: str, error: pynvml.NVMLError) -> NvmlError:
    return NvmlError(f"{what}: {error}", _KINDS.get(error.value, "refused"))


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
