"""What the driver is asked of each GPU: a table of calls. A new reading is one entry in CALLS.

The stand-in without a driver, the tests' own and the readings of `gpubench doctor` follow from it. Units are in the
names: `_w` watts, `_j` joules, `_mib` MiB, `_mhz` MHz, `_pct` per cent, `_c` °C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import pynvml

from gpubench.schema.missing import Unmeasured

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

ComputeMode = Literal["shared", "exclusive", "prohibited"]
"""Any number of processes, one at a time, none."""
GpuProcesses = list[tuple[int, float | None]]
"""Processes: pid and MiB. None: the driver does not say how much."""

_COMPUTE_MODES: dict[int, ComputeMode] = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "shared",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive",
}
_POWER_INSTANT = 186
"""nvmlFieldValue of a power reading that is no average; the drivers' own number, since 530 or so."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Utilisation:
    """Per cent of the driver's last sampling period (1/6 s to 1 s, by product)."""

    gpu_pct: float
    """Time in which at least one kernel ran."""
    memory_pct: float
    """Time in which device memory was read or written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NvmlCall(Generic[T]):
    """One question about one GPU, and how `gpubench doctor` tells of it. Its answer holds for now."""

    name: str
    label: str
    """How a message names it."""
    ways: tuple[Callable[[Any], T], ...]
    """From pynvml's handle of a GPU, the best first: the next one answers where one fails. A way that a driver does not
    know, and never will, is given up."""
    idle: T
    """What a GPU answers on which nothing runs: what tests' own NVML begins with."""
    doctor_name: str = ""
    """How `gpubench doctor` names it, where that is not the label."""
    shows: Callable[[T], str] | None = None
    """An answer in words. Raises Unmeasured for one that is none. None: `gpubench doctor` tells it in another way."""
    without: str = ""
    """What it costs where the driver does not tell, or what stands in for it then."""
    is_column_lost: bool = False
    """Whether a column stays empty then."""


# ---------------------------------------------------------------- how pynvml is asked


def _read_utilisation(handle: Any) -> Utilisation:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return Utilisation(gpu_pct=float(rates.gpu), memory_pct=float(rates.memory))


def _make_process_list(processes: Any) -> GpuProcesses:
    return [(p.pid, None if p.usedGpuMemory is None else p.usedGpuMemory / MIB) for p in processes]


def _read_instant_power(handle: Any) -> float:
    field = pynvml.nvmlDeviceGetFieldValues(handle, [_POWER_INSTANT])[0]
    if field.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(field.nvmlReturn)
    return float(field.value.uiVal) / 1000


def _read_compute_mode(handle: Any) -> ComputeMode:
    mode = pynvml.nvmlDeviceGetComputeMode(handle)
    if mode not in _COMPUTE_MODES:
        raise Unmeasured(f"compute mode: {mode} is unknown")
    return _COMPUTE_MODES[mode]


def _read_power_range(handle: Any) -> tuple[float, float]:
    lowest, highest = pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle)
    return lowest / 1000, highest / 1000


def _read_clock_range(handle: Any) -> tuple[int, int]:
    memory_mhz = max(pynvml.nvmlDeviceGetSupportedMemoryClocks(handle))
    clocks = pynvml.nvmlDeviceGetSupportedGraphicsClocks(handle, memory_mhz)
    return int(min(clocks)), int(max(clocks))


def _read_pcie(handle: Any) -> str:
    generation = pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
    return f"gen {generation} x{pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle)}"


# ---------------------------------------------------------------- how answers are shown


def _format_power(watts: float) -> str:
    if watts <= 0:
        raise Unmeasured("the driver tells a power of 0 W")
    return f"{watts:.0f} W"


def _format_throttling(mask: int) -> str:
    return ", ".join(name for name, bit in THROTTLE_REASONS.items() if mask & bit) or "none now"


# ---------------------------------------------------------------- the calls

UTILISATION: NvmlCall[Utilisation] = NvmlCall(
    name="utilisation",
    label="utilisation",
    ways=(_read_utilisation,),
    idle=Utilisation(gpu_pct=0.0, memory_pct=0.0),
    shows=lambda utilisation: f"{utilisation.gpu_pct:.0f} %, memory {utilisation.memory_pct:.0f} %",
    without="the driver's buffer stands in, except for windows under 0.5 s",
)
MEMORY: NvmlCall[float] = NvmlCall(
    name="memory",
    label="memory",
    ways=(lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used / MIB,),
    idle=0.0,
    doctor_name="device memory",
    shows=lambda mib: f"{mib:,.0f} MiB in use, the driver's reserve apart",
    without="where memory is not told by process either, gpu_mem_mib is what torch's allocator reserved",
)
"""MiB of a device that are in use, whoever uses them, without what the driver keeps for itself."""
PROCESSES: NvmlCall[GpuProcesses] = NvmlCall(
    name="processes",
    label="compute processes",
    ways=(lambda handle: _make_process_list(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),),
    idle=[],
    doctor_name="processes",
    shows=lambda processes: f"{len(processes)}",
    without="gpu_mem_mib is the growth of device memory, and strangers can't be seen",
)
"""Pids are those of the driver's pid namespace, which inside a container may not be ours."""
DESKTOP: NvmlCall[GpuProcesses] = NvmlCall(
    name="desktop",
    label="graphics processes",
    ways=(lambda handle: _make_process_list(pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle)),),
    idle=[],
    doctor_name="desktops",
    shows=lambda processes: f"{len(processes)}",
    without="a desktop on the GPU goes unnoticed",
)
POWER: NvmlCall[float] = NvmlCall(
    name="power_w",
    label="power",
    ways=(_read_instant_power, lambda handle: float(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000),
    idle=0.0,
    shows=_format_power,
    without="the driver's buffer stands in; idle_power_w stays empty",
)
"""What is drawn now; by drivers that don't tell, the mean over the last second."""
ENERGY: NvmlCall[float] = NvmlCall(
    name="energy_j",
    label="energy counter",
    ways=(lambda handle: float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000,),
    idle=0.0,
    shows=lambda joules: f"{joules:.0f} J",
    without="energy_j is the integral of sampled power (energy_source says so)",
)
"""Since the driver was loaded; counts on every 0.1 s. A call costs 4 to 6 ms of CPU time."""
SM_CLOCK: NvmlCall[float] = NvmlCall(
    name="sm_clock_mhz",
    label="SM clock",
    ways=(lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),),
    idle=1980.0,
    shows=lambda mhz: f"{mhz:.0f} MHz",
    without="sm_clock_mhz stays empty, and a slow clock goes unnoticed",
    is_column_lost=True,
)
"""The clock of the multiprocessors."""
MAX_SM_CLOCK: NvmlCall[float] = NvmlCall(
    name="max_sm_clock_mhz",
    label="highest SM clock",
    ways=(lambda handle: float(pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),),
    idle=1980.0,
    shows=lambda mhz: f"{mhz:.0f} MHz",
    without="a clock far below it goes unnoticed",
)
"""That this product allows. About 2 ms a call."""
THROTTLE: NvmlCall[int] = NvmlCall(
    name="throttle_mask",
    label="throttle reasons",
    ways=(lambda handle: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),),
    idle=0,
    shows=_format_throttling,
    without="throttled_pct and throttle_reasons stay empty",
    is_column_lost=True,
)
"""What lowers the clocks now, as bits of THROTTLE_REASONS and others."""
TEMPERATURE: NvmlCall[float] = NvmlCall(
    name="temperature_c",
    label="temperature",
    ways=(lambda handle: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),),
    idle=40.0,
    shows=lambda celsius: f"{celsius:.0f} °C",
    without="temperature_c stays empty",
    is_column_lost=True,
)
"""The temperature of the GPU's core."""
COMPUTE_MODE: NvmlCall[ComputeMode] = NvmlCall(
    name="compute_mode", label="compute mode", ways=(_read_compute_mode,), idle="shared"
)
"""Whom a GPU lets in."""

# ---------------------------------------------------------------- what a GPU is set to

POWER_LIMIT: NvmlCall[float] = NvmlCall(
    name="power_limit_w",
    label="power limit",
    ways=(lambda handle: pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000,),
    idle=700.0,
    shows=lambda watts: f"{watts:g} W",
    without="gpu_power_limit_w stays empty, and none can be set",
    is_column_lost=True,
)
"""That somebody has set last; less may be enforced for other reasons."""
DEFAULT_POWER_LIMIT: NvmlCall[float] = NvmlCall(
    name="default_power_limit_w",
    label="default power limit",
    ways=(lambda handle: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,),
    idle=700.0,
    shows=lambda watts: f"{watts:g} W",
    without="gpu_default_limit_w stays empty",
    is_column_lost=True,
)
POWER_RANGE: NvmlCall[tuple[float, float]] = NvmlCall(
    name="power_range_w",
    label="power range",
    ways=(_read_power_range,),
    idle=(200.0, 700.0),
    shows=lambda watts: f"{watts[0]:g} to {watts[1]:g} W",
    without="power_limit_w can't be set",
)
CLOCK_RANGE: NvmlCall[tuple[int, int]] = NvmlCall(
    name="clock_range_mhz",
    label="clock range",
    ways=(_read_clock_range,),
    idle=(345, 1980),
    shows=lambda mhz: f"{mhz[0]} to {mhz[1]} MHz",
    without="sm_clock_limit_mhz can't be set",
)
"""Of the multiprocessors, with the memory at its fastest."""
APPLICATION_CLOCK: NvmlCall[float] = NvmlCall(
    name="application_clock_mhz",
    label="application clock",
    ways=(lambda handle: float(pynvml.nvmlDeviceGetApplicationsClock(handle, pynvml.NVML_CLOCK_SM)),),
    idle=1980.0,
    shows=lambda mhz: f"{mhz:.0f} MHz",
    without="gpu_application_clock_mhz stays empty",
    is_column_lost=True,
)
"""Of the multiprocessors. Of clocks that are locked (nvidia-smi -lgc) no call of the driver tells."""
PERSISTENCE: NvmlCall[bool] = NvmlCall(
    name="persistence",
    label="persistence mode",
    ways=(lambda handle: bool(pynvml.nvmlDeviceGetPersistenceMode(handle)),),
    idle=True,
    shows=lambda is_on: "on" if is_on else "off",
    without="gpu_persistence stays empty",
    is_column_lost=True,
)
ECC: NvmlCall[bool] = NvmlCall(
    name="ecc",
    label="ECC",
    ways=(lambda handle: bool(pynvml.nvmlDeviceGetEccMode(handle)[0]),),
    idle=True,
    shows=lambda is_on: "on" if is_on else "off",
    without="gpu_ecc stays empty",
    is_column_lost=True,
)
"""Error correction of its memory."""
PCIE: NvmlCall[str] = NvmlCall(
    name="pcie",
    label="PCIe",
    ways=(_read_pcie,),
    idle="gen 5 x16",
    shows=lambda link: link,
    without="gpu_pcie stays empty",
    is_column_lost=True,
)
"""The fastest link that GPU and slot allow: an idle one may be slower."""

CALLS: Mapping[str, NvmlCall[Any]] = {
    call.name: call
    for call in (
        UTILISATION, MEMORY, PROCESSES, DESKTOP, POWER, ENERGY, SM_CLOCK, MAX_SM_CLOCK, THROTTLE, TEMPERATURE,
        COMPUTE_MODE, POWER_LIMIT, DEFAULT_POWER_LIMIT, POWER_RANGE, CLOCK_RANGE, APPLICATION_CLOCK, PERSISTENCE, ECC,
        PCIE,
    )
}  # fmt: skip
SETTINGS: Mapping[str, NvmlCall[Any]] = {
    "gpu_power_limit_w": POWER_LIMIT,
    "gpu_default_limit_w": DEFAULT_POWER_LIMIT,
    "gpu_application_clock_mhz": APPLICATION_CLOCK,
    "gpu_compute_mode": COMPUTE_MODE,
    "gpu_persistence": PERSISTENCE,
    "gpu_ecc": ECC,
    "gpu_pcie": PCIE,
}
"""Column -> what a GPU is set to, whoever has set it."""
