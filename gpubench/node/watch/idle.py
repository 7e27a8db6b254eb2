"""A look at GPUs before anything of ours runs on them: what they draw, how busy they are, who is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    watts: dict[str, list[float]] = {uuid: [] for uuid in uuids}
    polls: dict[str, list[float]] = {uuid: [] for uuid in uuids}
    missing: dict[str, dict[str, str]] = {uuid: {} for uuid in uuids}
    failed = dict.fromkeys(uuids, 0)
    in_use: dict[str, float] = {}
    schedule = Schedule({"look": PERIOD_S}, began)
    while uuids:
        sleep(max(0.0, schedule.next_deadline - clock()))
        schedule.take_due(clock())
        for uuid in uuids:
            try:
                watts[uuid].append(nvml.ask(POWER, uuid))
            except Unmeasured as reason:
                missing[uuid]["power_w"] = str(reason)
                failed[uuid] += 1
            try:
                polls[uuid].append(nvml.ask(UTILISATION, uuid).gpu_pct)
            except Unmeasured as reason:
                missing[uuid]["util_pct"] = str(reason)
        spent = clock() - began
        since = max(began_wall, wall() - seconds)
        is_whole = spent >= seconds - PERIOD_S / 2
        busy = [
            uuid
            for uuid in uuids
            if uuid not in in_use and fmean(polls[uuid][-count:] or [0.0]) >= IN_USE_PCT
        ]
        for uuid in busy if is_whole else ():
            util = _average_utilisation(nvml, uuid, polls[uuid][-count:], since)
            if (
                util is not None
                and util >= IN_USE_PCT
                and _list_gpu_processes("compute", nvml, PROCESSES, uuid, {})
            ):
                in_use[uuid] = util
        settling = any(_is_power_falling(watts[uuid][-count:]) for uuid in uuids) or not in_use.keys() >= set(
            busy
        )
        if spent >= LIMIT_S or (is_whole and not settling):
            break
    looks = {
        uuid: _make_look(
            nvml, uuid, watts[uuid][-count:], polls[uuid][-count:], since, missing[uuid], failed[uuid]
        )
        for uuid in uuids
    }
    return looks | {uuid: replace(looks[uuid], util_pct=util) for uuid, util in in_use.items()}


def _is_power_falling(watts: Sequence[float]) -> bool:
    if len(watts) < 2 * _EDGE:
        return False
    return fmean(watts[-_EDGE:]) < (1 - FALLING) * fmean(watts[:_EDGE])


def _make_look(
    nvml: Nvml,
    uuid: str,
    watts: Sequence[float],
    polls: Sequence[float],
    since: float,
    missing: dict[str, str],
    failed: int,
) -> GpuLook:
    power = None
    if watts and _is_power_falling(watts):
        missing["power_w"] = (
            f"power was still falling, from {watts[0]:.0f} to {watts[-1]:.0f} W within the last second: "
            "something ran here moments ago"
        )
    elif watts and fmean(watts) <= 0:
        missing["power_w"] = "the driver tells a power of 0 W"
    elif watts:
        power = fmean(watts)
        missing.pop("power_w", None)  # one reading of many failed
    util = _average_utilisation(nvml, uuid, polls, since)
    if util is not None:
        missing.pop("util_pct", None)
    return GpuLook(
        power_w=power,
        util_pct=util,
        compute=_list_gpu_processes("compute", nvml, PROCESSES, uuid, missing),
        desktop=_list_gpu_processes("desktop", nvml, DESKTOP, uuid, missing),
        readings=(len(watts), failed),
        missing=missing,
    )


def _average_utilisation(nvml: Nvml, uuid: str, polls: Sequence[float], since: float) -> float | None:
    """From the driver's buffer, which misses nothing, where it has samples of the look; else of the polls."""
    try:
        samples = nvml.read_driver_samples(uuid, "gpu_util_pct", since + _REACH_S)
    except Unmeasured:  # the polls stand in for it
        samples = []
    # A poll is the driver's own mean of up to a second: the first ones speak of the time before the look.
    values = [value for _, value in samples] or polls[len(polls) // 2 :]
    return fmean(values) if values else None


def _list_gpu_processes(
    what: str, nvml: Nvml, call: NvmlCall[GpuProcesses], uuid: str, missing: dict[str, str]
) -> tuple[GpuProcess, ...] | None:
    try:
        return tuple(
            GpuProcess(pid=pid, name=host.read_process_name(pid), mib=mib)
            for pid, mib in nvml.ask(call, uuid)
        )
    except Unmeasured as reason:
        missing[what] = str(reason)
        return None
