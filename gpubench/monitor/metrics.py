"""What is sampled, how often, which column it becomes. A new metric is one line in one of these tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpubench.monitor.nvml import Nvml

RATES_S = 0.1
"""Period of what costs microseconds: utilisation, power, device memory."""
TOTALS_S = 1.0
"""Period of what costs milliseconds: CPU time of the process tree, GPU memory by process."""

Reduce = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class GpuMetric:
    """One reading of one GPU, every RATES_S."""

    name: str
    """Unit included; the `metric` of the samples file."""
    read: Callable[[Nvml, str], float]
    """From NVML and the GPU's uuid. Raises NvmlError."""


DEVICE_MEMORY = "gpu_device_mem_mib"


def device_memory(nvml: Nvml, uuid: str) -> float:
    """MiB in use on the GPU, whoever uses them."""
    return nvml.memory(uuid).used_mib


GPU_METRICS: tuple[GpuMetric, ...] = (
    GpuMetric("gpu_util_pct", lambda nvml, uuid: nvml.utilisation(uuid).gpu_pct),
    GpuMetric("gpu_mem_util_pct", lambda nvml, uuid: nvml.utilisation(uuid).memory_pct),
    GpuMetric(DEVICE_MEMORY, device_memory),
    GpuMetric("power_w", lambda nvml, uuid: nvml.power_w(uuid)),
)

# Every TOTALS_S and at the edges of windows.
PROCESS_MEMORY = "gpu_process_mem_mib"
CPU_BUSY = "cpu_busy_s"
CPU_STOLEN = "cpu_stolen_s"
CPU_TREE = "cpu_tree_s"
# Once, after the measured window.
TREE_MEMORY = "host_mem_mib"


@dataclass(frozen=True, slots=True)
class GpuColumn:
    """A column of the results, made of one metric's samples inside the measured windows."""

    name: str
    metric: str
    over_time: Reduce
    over_gpus: Reduce
    source: str


GPU_COLUMNS: tuple[GpuColumn, ...] = (
    GpuColumn("gpu_util_pct", "gpu_util_pct", fmean, fmean, "NVML utilisation, gpu"),
    GpuColumn("gpu_util_max_pct", "gpu_util_pct", max, max, "NVML utilisation, gpu"),
    GpuColumn("gpu_mem_util_pct", "gpu_mem_util_pct", fmean, fmean, "NVML utilisation, memory"),
    GpuColumn("gpu_mem_util_max_pct", "gpu_mem_util_pct", max, max, "NVML utilisation, memory"),
    GpuColumn(
        "power_w", "power_w", fmean, sum, "NVML power usage (mean of the last second on Ampere and later)"
    ),
)

NOT_YET: tuple[str, ...] = ("energy_j", "energy_source", "sm_clock_mhz", "throttled_pct", "temperature_c")
"""Columns that this version leaves empty."""
