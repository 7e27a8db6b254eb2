"""The one seam to NVIDIA's management library. Everything else in gpubench sees `Nvml` alone.

NVML must not be carried across a fork: open it in the process that watches.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import pynvml

from gpubench.node.environment import Gpu
from gpubench.node.watch.nvml_calls import (
    CLOCK_RANGE,
    MEMORY,
    MIB,
    POWER,
    POWER_LIMIT,
    POWER_RANGE,
    SETTINGS,
    TEMPERATURE,
    UTILISATION,
    NvmlCall,
)
from gpubench.schema.gpu_look import AllowedLimits
from gpubench.schema.missing import Unmeasured

T = TypeVar("T")

History = Literal["gpu_util_pct", "gpu_mem_util_pct", "power_w"]
"""What the driver keeps a buffer of by itself."""

_HISTORY: dict[str, tuple[int, float]] = {
    "power_w": (pynvml.NVML_TOTAL_POWER_SAMPLES, 1e-3),
    "gpu_util_pct": (pynvml.NVML_GPU_UTILIZATION_SAMPLES, 1.0),
    "gpu_mem_util_pct": (pynvml.NVML_MEMORY_UTILIZATION_SAMPLES, 1.0),
}
"""The driver's kind of sample, and its unit in ours."""
_PERMANENT = (
    pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
)  # fmt: skip
"""Answers that will not change: an older driver or product, a container's rights. Others may pass."""


class NvmlError(Unmeasured):
    """An NVML call that gave no figure; its text says which call and why."""


class NoRightError(NvmlError):
    """This user may not set that."""


class Nvml(Protocol):
    """Just what is needed. Each call raises NvmlError with the reason where it has no figure."""

    @property
    def devices(self) -> Sequence[Gpu]:
        """All GPUs in NVML's order, each followed by its MIG slices. Read once, when NVML is opened."""

    @property
    def driver(self) -> str | None:
        """Version of the driver; None: no driver."""

    @property
    def unreadable(self) -> Mapping[int, str]:
        """NVML index -> why that GPU is left out of `devices` (fallen off the bus, no permission)."""

    @property
    def power_source(self) -> str:
        """Which of the driver's readings POWER gives."""

    def ask(self, call: NvmlCall[T], uuid: str) -> T:
        """The answer of one device, now."""

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        """The driver's own samples after `after_s`: (seconds since 1970, value), oldest first; none: empty.

        Each stands for the time since the one before. Seen on an H200: utilisation every 0.2 s and 14 s deep,
        2 ms a call; power every 0.02 s and 2.4 s deep, 0.5 ms a call.
        """


class NvmlSetter(Nvml, Protocol):
    """One that changes GPUs, too. Only who guards what was set before opens it (`gpubench.node.limits`).

    Each call raises NvmlError where the driver refuses it, NoRightError where that is for want of rights.
    """

    def set_power_limit(self, uuid: str, watts: float) -> None: ...

    def limit_clock(self, uuid: str, lowest_mhz: int, highest_mhz: int) -> None:
        """Keeps the multiprocessors' clock between these (`nvidia-smi -lgc`)."""

    def free_clock(self, uuid: str) -> None:
        """Takes that back, whoever asked for it (`nvidia-smi -rgc`)."""


@dataclass(frozen=True, slots=True)
class NoNvml:
    """Stands in where there is no driver: no devices, and every call says why."""

    reason: str
    devices: Sequence[Gpu] = ()
    driver: str | None = None
    unreadable: Mapping[int, str] = field(default_factory=dict)

    @property
    def power_source(self) -> str:
        return self.reason

    def ask(self, call: NvmlCall[T], uuid: str) -> T:  # noqa: ARG002
        raise NvmlError(self.reason)

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:  # noqa: ARG002
        raise NvmlError(self.reason)


class PynvmlNvml:
    """The real library. Build it with `open_nvml`."""

    def __init__(self) -> None:
        """Raises NvmlError where there is no driver, or it does not answer."""
        _call_nvml("NVML", pynvml.nvmlInit)
        self._handles: dict[str, Any] = {}
        self.driver: str | None = _decode_text(
            _call_nvml("driver version", pynvml.nvmlSystemGetDriverVersion)
        )
        self.unreadable: dict[int, str] = {}
        """NVML index -> why that GPU is left out (fallen off the bus, no permission)."""
        self.devices: tuple[Gpu, ...] = tuple(self._list_gpus())
        self._unsupported: set[tuple[str, str, int]] = set()
        """Call, GPU and number of the way that the driver does not know, and never will."""

    def ask(self, call: NvmlCall[T], uuid: str) -> T:
        handle = self._find_handle(uuid)
        *better, last = call.ways
        for number, way in enumerate(better):
            if (call.name, uuid, number) in self._unsupported:
                continue
            try:
                return way(handle)
            except pynvml.NVMLError as error:
                if error.value in _PERMANENT:
                    self._unsupported.add((call.name, uuid, number))
        return _call_nvml(call.label, last, handle)

    @property
    def power_source(self) -> str:
        is_mean = any(name == POWER.name for name, *_ in self._unsupported)
        kind = "power usage, on Ampere and later a mean of 1 s" if is_mean else "field 186, instant"
        return f"NVML {kind}"

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        handle = self._find_handle(uuid)
        kind, scale = _HISTORY[what]
        try:
            value_type, samples = pynvml.nvmlDeviceGetSamples(handle, kind, int(after_s * 1e6))
        except pynvml.NVMLError_NotFound:
            return []  # nothing new; or, where it never has anything, nothing at all
        except pynvml.NVMLError as error:
            raise _make_nvml_error(f"buffer of {what}", error) from error
        read = _VALUE.get(value_type)
        if read is None:
            raise NvmlError(f"buffer of {what}: values of unknown type {value_type}")
        # A buffer that is not full yet has empty places, with no time on them.
        dated = [(s.timeStamp / 1e6, getattr(s.sampleValue, read) * scale) for s in samples if s.timeStamp]
        return sorted(dated)

    def _find_handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            self._handles[uuid] = _call_nvml(f"GPU {uuid}", pynvml.nvmlDeviceGetHandleByUUID, uuid)
        return self._handles[uuid]

    def _list_gpus(self) -> list[Gpu]:
        devices: list[Gpu] = []
        for index in range(_call_nvml("device count", pynvml.nvmlDeviceGetCount)):
            try:
                handle = _call_nvml(f"GPU {index}", pynvml.nvmlDeviceGetHandleByIndex, index)
                whole = self._make_gpu(handle, index, parent=None)
            except NvmlError as error:
                # A GPU that has fallen off the bus must not take its neighbours with it.
                self.unreadable[index] = str(error)
                continue
            devices += [whole, *self._list_mig_slices(handle, whole)]
        return devices

    def _make_gpu(self, handle: Any, index: int, parent: Gpu | None) -> Gpu:
        uuid = _decode_text(_call_nvml("uuid", pynvml.nvmlDeviceGetUUID, handle))
        self._handles[uuid] = handle
        return Gpu(
            index=index,
            uuid=uuid,
            name=_decode_text(_call_nvml("name", pynvml.nvmlDeviceGetName, handle)),
            memory_mib=_call_nvml("memory", pynvml.nvmlDeviceGetMemoryInfo, handle).total // MIB,
            reserved_mib=_read_reserved_mib(handle),
            parent=parent.uuid if parent else None,
        )

    def _list_mig_slices(self, handle: Any, whole: Gpu) -> list[Gpu]:
        try:
            most = _call_nvml("MIG", pynvml.nvmlDeviceGetMaxMigDeviceCount, handle)
        except NvmlError:
            return []  # a GPU that can't be cut
        slices = []
        for index in range(most):
            try:
                slice_handle = _call_nvml("MIG", pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
                slices.append(self._make_gpu(slice_handle, whole.index, parent=whole))
            except NvmlError:  # an empty place: NVML has no other way to say so
                continue
        return slices


class PynvmlSetter(PynvmlNvml):
    """The real library, as `NvmlSetter`."""

    def set_power_limit(self, uuid: str, watts: float) -> None:
        limit = pynvml.nvmlDeviceSetPowerManagementLimit
        _call_nvml("power limit", limit, self._find_handle(uuid), round(watts * 1000))

    def limit_clock(self, uuid: str, lowest_mhz: int, highest_mhz: int) -> None:
        lock = pynvml.nvmlDeviceSetGpuLockedClocks
        _call_nvml("clock limit", lock, self._find_handle(uuid), lowest_mhz, highest_mhz)

    def free_clock(self, uuid: str) -> None:
        _call_nvml("clock limit", pynvml.nvmlDeviceResetGpuLockedClocks, self._find_handle(uuid))


_VALUE = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
}
"""Type of a sample's value -> which part of the union holds it."""


_LOST, _UNCLEAR = ("GPU is lost", "GPU requires restart"), "Unknown Error"
"""What the driver says of a GPU that has fallen off the bus, or waits for a reset; and what some drivers say of one."""


def list_gpus_lost_at_start(nvml: Nvml) -> dict[int, str]:
    """NVML's index -> the driver's words, of GPUs that were lost when NVML was opened: they are not in `devices`."""
    return {n: why for n, why in nvml.unreadable.items() if any(words in why for words in (*_LOST, _UNCLEAR))}


def explain_lost_gpu(nvml: Nvml, uuid: str) -> str | None:
    """What the driver says of a GPU that it has lost; None where the GPU answers, or fails for another reason."""
    answers = []
    calls: Sequence[NvmlCall[Any]] = (MEMORY, UTILISATION, TEMPERATURE)
    for call in calls:
        try:
            nvml.ask(call, uuid)
        except NvmlError as error:
            answers.append(str(error))
    lost = (words for words in _LOST for answer in answers if words in answer)
    is_silent = sum(_UNCLEAR in answer for answer in answers) == 3  # once it may be a passing trouble
    return next(lost, _UNCLEAR if is_silent else None)


def read_common_settings(nvml: Nvml, uuids: Iterable[str]) -> dict[str, Any]:
    """Column of `SETTINGS` -> what all of these GPUs are set to; without those in which they differ, or don't tell."""
    common: dict[str, Any] = {}
    for column, call in SETTINGS.items():
        with contextlib.suppress(Unmeasured):
            if len(answers := {nvml.ask(call, uuid) for uuid in uuids}) == 1:
                common[column] = answers.pop()
    return common


def read_allowed_limits(nvml: Nvml, uuid: str) -> AllowedLimits:
    """What may be set on a GPU."""
    missing: dict[str, str] = {}

    def ask(name: str, call: NvmlCall[T]) -> T | None:
        try:
            return nvml.ask(call, uuid)
        except Unmeasured as reason:
            missing[name] = str(reason)
            return None

    return AllowedLimits(
        power_w=ask("power_w", POWER_LIMIT),
        power_range_w=ask("power_range_w", POWER_RANGE),
        clock_range_mhz=ask("clock_range_mhz", CLOCK_RANGE),
        missing=missing,
    )


def open_nvml() -> Nvml:
    """The real NVML, or a `NoNvml` that carries the reason where there is no driver or library."""
    try:
        return PynvmlNvml()
    except NvmlError as error:
        return NoNvml(str(error))


def open_nvml_setter() -> NvmlSetter:
    """The real NVML, to change GPUs with it. Raises NvmlError where there is no driver or library."""
    return PynvmlSetter()


def _call_nvml(what: str, function: Callable[..., T], *args: Any) -> T:
    try:
        return function(*args)
    except pynvml.NVMLError as error:
        raise _make_nvml_error(what, error) from error


def _read_reserved_mib(handle: Any) -> int | None:
    """What the driver keeps of a GPU's memory, in MiB; None: it does not say."""
    try:
        kept: int = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).reserved
    except pynvml.NVMLError:
        return None
    return kept // MIB


def _make_nvml_error(what: str, error: pynvml.NVMLError) -> NvmlError:
    kind = NoRightError if error.value == pynvml.NVML_ERROR_NO_PERMISSION else NvmlError
    return kind(f"{what}: {error}")


def _decode_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
