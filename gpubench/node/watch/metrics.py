"""What is sampled, how often, which column it becomes. A new metric is one line in one of these tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from gpubench.node.watch import nvml_calls
from gpubench.node.watch.nvml import History, Nvml
from gpubench.node.watch.nvml_calls import THROTTLE_REASONS, NvmlCall

RATES_S = 0.1
"""Period of what costs microseconds: utilisation, power, device memory, clocks."""
TOTALS_S = 1.0
"""Period of what costs milliseconds: CPU time of the process tree, GPU memory by process."""
TOTALS_GAP_S = 2.5 * TOTALS_S
"""Totals that lie further apart tell nothing of the time between them."""
ENERGY_S = 20.0
"""Period of the energy counter, 3 to 6 ms of CPU time a call. What counts are its readings at windows' edges."""
EDGES_SHARE = 0.0025
EDGES_SAVED_S = 0.05
"""At the edges of windows the counters are read out of turn: all CPU counters, and the energy counters of all GPUs,
each for at most this share of a core's time, of which so much can be saved up. So many short epochs don't make the
watcher busy: what lies between two readings is then on the line between them."""
TOTALS_FRESH_S = 0.02
ENERGY_FRESH_S = 0.05
"""One epoch's end is the next one's beginning: a reading as young as this serves both. The counter of energy moves
every 0.1 s."""

LATE_S = 8.0
"""So long after a trial a meter is still read that shows late what is drawn, with the GPU's power or the CPUs' load."""

Reduce = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class GpuMetric:
    """One reading of one GPU, every RATES_S or TOTALS_S."""

    name: str
    """Unit included; the `metric` of the samples file."""
    call: NvmlCall[Any]
    value: Callable[[Any], float] = float
    """Takes the figure out of the answer."""

    def read(self, nvml: Nvml, uuid: str) -> float:
        """The figure of this GPU, now. Raises NvmlError."""
        return self.value(nvml.ask(self.call, uuid))


DEVICE_MEMORY = GpuMetric("gpu_device_mem_mib", nvml_calls.MEMORY)
"""In use on the GPU, whoever uses it."""
POWER = "power_w"
SM_CLOCK = "sm_clock_mhz"
THROTTLE = "throttle_mask"
TEMPERATURE = "temperature_c"

POWER_METRIC = GpuMetric(POWER, nvml_calls.POWER)

RATES: tuple[GpuMetric, ...] = (
    GpuMetric("gpu_util_pct", nvml_calls.UTILISATION, lambda utilisation: utilisation.gpu_pct),
    GpuMetric("gpu_mem_util_pct", nvml_calls.UTILISATION, lambda utilisation: utilisation.memory_pct),
    DEVICE_MEMORY,
    POWER_METRIC,
    GpuMetric(SM_CLOCK, nvml_calls.SM_CLOCK),
    GpuMetric(THROTTLE, nvml_calls.THROTTLE),
)
"""Every RATES_S."""

TOTALS: tuple[GpuMetric, ...] = (GpuMetric(TEMPERATURE, nvml_calls.TEMPERATURE),)
"""Every TOTALS_S."""

# Every TOTALS_S and at the edges of windows.
PROCESS_MEMORY = "gpu_process_mem_mib"
CPU_BUSY = "cpu_busy_s"
CPU_STOLEN = "cpu_stolen_s"
CPU_TREE = "cpu_tree_s"
CPU_HOST = "cpu_host_busy_s"
"""Busy seconds of all CPUs of the affinity, where a trial may use fewer of them and none in particular."""
# Every RATES_S, where a meter is to be aligned and there is no GPU, by whose power it would be.
CPU_LOAD = "cpu_load_s"
"""Busy seconds of the CPUs that the trial may run on."""
# Every ENERGY_S and at the edges of windows.
ENERGY = "energy_counter_j"
# Once, after the measured window.
TREE_MEMORY = "host_mem_mib"


@dataclass(frozen=True, slots=True)
class DriverBuffer:
    """Samples that the driver takes by itself, fetched before its buffer runs over."""

    name: str
    """The name of our series."""
    what: History
    period_s: float
    """How often it is fetched. An H200 holds 14 s of utilisation and 2.4 s of power."""
    max_gap_s: float
    """More than this without a sample, and the series does not cover the window."""


BUFFERS: tuple[DriverBuffer, ...] = (
    DriverBuffer("power_buffer_w", "power_w", 1.5, 0.25),
    DriverBuffer("gpu_util_buffer_pct", "gpu_util_pct", 10.0, 1.5),
    DriverBuffer("gpu_mem_util_buffer_pct", "gpu_mem_util_pct", 10.0, 1.5),
)
BUFFER: dict[str, DriverBuffer] = {buffer.what: buffer for buffer in BUFFERS}


@dataclass(frozen=True, slots=True)
class GpuColumn:
    """A column of the results, made of one metric's samples inside the measured windows."""

    name: str
    metric: str
    over_time: Reduce
    over_gpus: Reduce
    source: str
    period_s: float = RATES_S


GPU_COLUMNS: tuple[GpuColumn, ...] = (
    GpuColumn("gpu_util_pct", "gpu_util_pct", fmean, fmean, "NVML utilisation, gpu"),
    GpuColumn("gpu_util_max_pct", "gpu_util_pct", max, max, "NVML utilisation, gpu"),
    GpuColumn("gpu_mem_util_pct", "gpu_mem_util_pct", fmean, fmean, "NVML utilisation, memory"),
    GpuColumn("gpu_mem_util_max_pct", "gpu_mem_util_pct", max, max, "NVML utilisation, memory"),
    GpuColumn("sm_clock_mhz", SM_CLOCK, fmean, fmean, "NVML SM clock"),
    GpuColumn("temperature_c", TEMPERATURE, max, max, "NVML temperature of the GPU's core", TOTALS_S),
)

THROTTLED = sum(THROTTLE_REASONS.values())
"""Bits of the mask that lower a busy GPU's clocks."""
