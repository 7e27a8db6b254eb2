"""A look at GPUs before anything of ours runs on them: what they draw, how busy they are, who is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean

from gpubench.node.watch import host
from gpubench.node.watch.nvml import Nvml
from gpubench.node.watch.nvml_calls import DESKTOP, POWER, PROCESSES, UTILISATION, GpuProcesses, NvmlCall
from gpubench.node.watch.pacing import Clock, Schedule
from gpubench.schema.gpu_look import IN_USE_PCT, PERIOD_S, GpuLook, GpuProcess
from gpubench.schema.missing import Unmeasured

LIMIT_S = 4.0
"""How long a look may go on while power falls. Importing torch takes longer, and goes on meanwhile."""
FALLING = 0.05
"""A fall by more than this share within one look is no idle power yet."""
_REACH_S = 0.2
"""How far back a first sample may reach, to before the look."""
_EDGE = 3
"""Samples that are averaged at either end of a look, to tell whether power falls."""


def sample_gpus_before_sweep(
    nvml: Nvml,
    uuids: Sequence[str],
    seconds: float = 1.0,
    *,
    clock: Clock = time.monotonic,
    wall: Clock = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, GpuLook]:
    """Looks at these GPUs at 10 Hz for `seconds`: uuid -> what was seen.

    Nothing of ours runs on them now, but something that ended moments ago may have: clocks and power take seconds to
    come down, and the driver clears the memory of a process that is gone, which counts as work of nobody (139 GB on an
    H200: 13 % of the second after it). So the look goes on while power falls or the GPU is busy, up to LIMIT_S, and
    both figures are means over its last `seconds`: a minimum would take noise for idleness. A GPU on which a process
    is seen meanwhile is not waited for: that it rests for a second between two epochs makes it nobody's. Power that
    falls to the end is none, with that reason. A driver that holds power on a plateau for longer than a look can't be
    seen through: the figure is what the GPU drew before the sweep, and at most that much too high.
    """
    began, began_wall = clock(), wall()
    count = max(2, round(seconds / PERIOD_S))
    gpus = [_LookedAtGpu(nvml, uuid) for uuid in uuids]
    schedule = Schedule({"look": PERIOD_S}, began)
    while gpus:
        sleep(max(0.0, schedule.next_deadline - clock()))
        schedule.take_due(clock())
        for gpu in gpus:
            gpu.take_reading()
        spent = clock() - began
        since = max(began_wall, wall() - seconds)
        is_whole = spent >= seconds - PERIOD_S / 2
        busy = [
            gpu for gpu in gpus if gpu.in_use_pct is None and fmean(gpu.polls[-count:] or [0.0]) >= IN_USE_PCT
        ]
        for gpu in busy if is_whole else ():
            gpu.note_if_in_use(count, since)
        settling = any(_is_power_falling(gpu.watts[-count:]) for gpu in gpus) or any(
            gpu.in_use_pct is None for gpu in busy
        )
        if spent >= LIMIT_S or (is_whole and not settling):
            break
    return {gpu.uuid: gpu.make_look(count, since) for gpu in gpus}


def _is_power_falling(watts: Sequence[float]) -> bool:
    if len(watts) < 2 * _EDGE:
        return False
    return fmean(watts[-_EDGE:]) < (1 - FALLING) * fmean(watts[:_EDGE])


class _LookedAtGpu:
    """What was read of one GPU so far."""

    def __init__(self, nvml: Nvml, uuid: str) -> None:
        self.uuid = uuid
        self.watts: list[float] = []
        self.polls: list[float] = []
        self.in_use_pct: float | None = None
        """How busy it was when a process was first seen at work."""
        self._nvml = nvml
        self._failed = 0
        self._missing: dict[str, str] = {}

    def take_reading(self) -> None:
        try:
            self.watts.append(self._nvml.ask(POWER, self.uuid))
        except Unmeasured as reason:
            self._missing["power_w"] = str(reason)
            self._failed += 1
        try:
            self.polls.append(self._nvml.ask(UTILISATION, self.uuid).gpu_pct)
        except Unmeasured as reason:
            self._missing["util_pct"] = str(reason)

    def note_if_in_use(self, count: int, since: float) -> None:
        util = self._average_utilisation(count, since)
        if util is not None and util >= IN_USE_PCT and self._list_processes("compute", PROCESSES):
            self.in_use_pct = util

    def make_look(self, count: int, since: float) -> GpuLook:
        """By the last `count` readings, and the driver's own since then (seconds since 1970)."""
        watts, power = self.watts[-count:], None
        if watts and _is_power_falling(watts):
            self._missing["power_w"] = (
                f"power was still falling, from {watts[0]:.0f} to {watts[-1]:.0f} W within the last second: "
                "something ran here moments ago"
            )
        elif watts and fmean(watts) <= 0:
            self._missing["power_w"] = "the driver tells a power of 0 W"
        elif watts:
            power = fmean(watts)
            self._missing.pop("power_w", None)  # one reading of many failed
        util = self._average_utilisation(count, since) if self.in_use_pct is None else self.in_use_pct
        if util is not None:
            self._missing.pop("util_pct", None)
        return GpuLook(
            power_w=power,
            util_pct=util,
            compute=self._list_processes("compute", PROCESSES),
            desktop=self._list_processes("desktop", DESKTOP),
            readings=(len(watts), self._failed),
            missing=self._missing,
        )

    def _average_utilisation(self, count: int, since: float) -> float | None:
        """From the driver's buffer, which misses nothing, where it has samples of the look; else of the polls."""
        try:
            samples = self._nvml.read_driver_samples(self.uuid, "gpu_util_pct", since + _REACH_S)
        except Unmeasured:  # the polls stand in for it
            samples = []
        polls = self.polls[-count:]
        # A poll is the driver's own mean of up to a second: the first ones speak of the time before the look.
        values = [value for _, value in samples] or polls[len(polls) // 2 :]
        return fmean(values) if values else None

    def _list_processes(self, what: str, call: NvmlCall[GpuProcesses]) -> tuple[GpuProcess, ...] | None:
        try:
            processes = self._nvml.ask(call, self.uuid)
        except Unmeasured as reason:
            self._missing[what] = str(reason)
            return None
        self._missing.pop(what, None)
        return tuple(GpuProcess(pid=pid, name=host.read_process_name(pid), mib=mib) for pid, mib in processes)
