"""What NVML tells of each GPU: every call that the watcher makes, tried, and what a failing one costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpubench.environment import Gpu
from gpubench.monitor.missing import Unmeasured
from gpubench.monitor.nvml import THROTTLE_REASONS, History, Nvml
from gpubench.runner.doctor import remedies
from gpubench.runner.doctor.finding import Finding
from gpubench.runner.doctor.scene import Scene, named

GROUP = "readings of the GPUs"
COUNTER_PAUSE_S = 0.25
"""Between two readings of the energy counter, which counts on every 0.1 s."""

Read = Callable[[Nvml, str], str]
"""From NVML and a GPU's uuid: what it told, in words. Raises Unmeasured."""
ReadAll = Callable[[Nvml, Sequence[str]], dict[str, "str | Unmeasured"]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One call, and what hangs on it."""

    name: str
    read: ReadAll
    lost: str
    """What it costs where nothing stands in for it."""
    stand_ins: tuple[str, ...] = ()
    """Names of readings of which any one stands in for it."""
    instead: str = ""
    """What it costs where one does."""
    suffix: Callable[[Nvml], str] = lambda _: ""
    """What stands behind the values, once for all GPUs."""
    minor: bool = False
    """Whether no column rests on it."""


def each(read: Read) -> ReadAll:
    """The reading of one GPU, for all of them."""

    def read_all(nvml: Nvml, uuids: Sequence[str]) -> dict[str, str | Unmeasured]:
        found: dict[str, str | Unmeasured] = {}
        for uuid in uuids:
            try:
                found[uuid] = read(nvml, uuid)
            except Unmeasured as reason:
                found[uuid] = reason
        return found

    return read_all


def _utilisation(nvml: Nvml, uuid: str) -> str:
    found = nvml.utilisation(uuid)
    return f"{found.gpu_pct:.0f} %, memory {found.memory_pct:.0f} %"


def _buffer(*kinds: History) -> Read:
    def read(nvml: Nvml, uuid: str) -> str:
        counts = []
        for what in kinds:
            samples = nvml.history(uuid, what, 0.0)
            if not samples:
                raise Unmeasured("the driver keeps no buffer of it")
            counts.append(f"{len(samples)} samples over {samples[-1][0] - samples[0][0]:.1f} s")
        return counts[0]

    return read


def _memory(nvml: Nvml, uuid: str) -> str:
    found = nvml.memory(uuid)
    apart = (
        "the driver's reserve not told apart" if found.reserved_mib is None else "the driver's reserve apart"
    )
    return f"{found.used_mib:,.0f} MiB in use, {apart}"


def _power(nvml: Nvml, uuid: str) -> str:
    watts = nvml.power_w(uuid)
    if watts <= 0:
        raise Unmeasured("the driver tells a power of 0 W")
    return f"{watts:.0f} W"


def _throttle(nvml: Nvml, uuid: str) -> str:
    mask = nvml.throttle_mask(uuid)
    return ", ".join(name for name, bit in THROTTLE_REASONS.items() if mask & bit) or "none now"


def _energy(nvml: Nvml, uuids: Sequence[str]) -> dict[str, str | Unmeasured]:
    """Two readings of all GPUs with one pause between them: a counter that does not count is none."""
    before: dict[str, float] = {}

    def first(nvml: Nvml, uuid: str) -> str:
        before[uuid] = nvml.energy_j(uuid)
        return ""

    def second(nvml: Nvml, uuid: str) -> str:
        joules = nvml.energy_j(uuid) - before[uuid]
        if joules <= 0:
            raise Unmeasured(f"it moved by {joules:g} J within {COUNTER_PAUSE_S:g} s")
        return f"{joules:.0f} J"

    found = each(first)(nvml, uuids)
    if before:
        time.sleep(COUNTER_PAUSE_S)
    return found | each(second)(nvml, list(before))


_NO_UTILISATION = "gpu_util_pct, gpu_mem_util_pct and gpu_busy_s_per_epoch stay empty"
_NO_POWER = "power_w and energy_sampled_j stay empty"

READINGS: tuple[Reading, ...] = (
    Reading(
        name="utilisation",
        read=each(_utilisation),
        lost=_NO_UTILISATION,
        stand_ins=("utilisation buffer",),
        instead="the driver's buffer stands in, except for windows under 0.5 s",
    ),
    Reading(
        name="utilisation buffer",
        read=each(_buffer("gpu_util_pct", "gpu_mem_util_pct")),
        lost=_NO_UTILISATION,
        stand_ins=("utilisation",),
        instead="utilisation is polled at 10 Hz, and peaks between two polls are missed",
    ),
    Reading(
        name="device memory",
        read=each(_memory),
        lost="where memory is not told by process either, gpu_mem_mib is what torch's allocator reserved",
        minor=True,
    ),
    Reading(
        name="processes",
        read=each(lambda nvml, uuid: f"{len(nvml.processes(uuid))}"),
        lost="gpu_mem_mib is what torch's allocator reserved, and strangers can't be seen",
        stand_ins=("device memory",),
        instead="gpu_mem_mib is the growth of device memory, and strangers can't be seen",
    ),
    Reading(
        name="desktops",
        read=each(lambda nvml, uuid: f"{len(nvml.desktop(uuid))}"),
        lost="a desktop on the GPU goes unnoticed",
        minor=True,
    ),
    Reading(
        name="power",
        read=each(_power),
        suffix=lambda nvml: f" ({nvml.power_source})",
        lost=f"{_NO_POWER}, and idle_power_w",
        stand_ins=("power buffer",),
        instead="the driver's buffer stands in; idle_power_w stays empty",
    ),
    Reading(
        name="power buffer",
        read=each(_buffer("power_w")),
        lost=_NO_POWER,
        stand_ins=("power",),
        instead="power is polled at 10 Hz",
    ),
    Reading(
        name="energy counter",
        read=_energy,
        suffix=lambda _: f" more within {COUNTER_PAUSE_S:g} s",
        lost="energy_j stays empty",
        stand_ins=("power buffer", "power"),
        instead="energy_j is the integral of sampled power (energy_source says so)",
    ),
    Reading(
        name="SM clock",
        read=each(lambda nvml, uuid: f"{nvml.sm_clock_mhz(uuid):.0f} MHz"),
        lost="sm_clock_mhz stays empty, and a slow clock goes unnoticed",
    ),
    Reading(
        name="highest SM clock",
        read=each(lambda nvml, uuid: f"{nvml.max_sm_clock_mhz(uuid):.0f} MHz"),
        lost="a clock far below it goes unnoticed",
        minor=True,
    ),
    Reading(
        name="throttle reasons",
        read=each(_throttle),
        lost="throttled_pct and throttle_reasons stay empty",
    ),
    Reading(
        name="temperature",
        read=each(lambda nvml, uuid: f"{nvml.temperature_c(uuid):.0f} °C"),
        lost="temperature_c stays empty",
    ),
)
"""One for each call that the watcher makes."""


def readings(scene: Scene) -> Iterable[Finding]:
    """Every call, on every GPU that may be used."""
    gpus = scene.machine.gpus
    if not gpus:
        return
    uuids = [gpu.uuid for gpu in gpus]
    told = {reading.name: reading.read(scene.nvml, uuids) for reading in READINGS}
    works = {name: {u for u, what in found.items() if isinstance(what, str)} for name, found in told.items()}
    for reading in READINGS:
        fine = [uuid for uuid in uuids if uuid in works[reading.name]]
        if fine:
            values = [str(told[reading.name][uuid]) for uuid in fine]
            shown = values[0] if len(set(values)) == 1 else " | ".join(values)
            where = "" if len(fine) == len(uuids) else f"{named(gpus, fine)}: "
            yield Finding(
                group=GROUP,
                name=reading.name,
                verdict="ok",
                found=f"{where}{shown}{reading.suffix(scene.nvml)}",
            )
        reasons: dict[str, list[str]] = {}
        for uuid in uuids:
            if uuid not in works[reading.name]:
                reasons.setdefault(str(told[reading.name][uuid]), []).append(uuid)
        for reason, failing in reasons.items():
            yield _failed(scene, gpus, reading, reason, failing, works)


def _failed(
    scene: Scene,
    gpus: Sequence[Gpu],
    reading: Reading,
    reason: str,
    uuids: Sequence[str],
    works: dict[str, set[str]],
) -> Finding:
    stood_in_for = any(set(uuids) <= works[name] for name in reading.stand_ins)
    cut = any(scene.devices()[uuid].parent for uuid in uuids)
    otherwise = "nvidia-smi and dmesg should say more"
    if "keeps no buffer" in reason or "it moved by" in reason or "power of 0 W" in reason:
        otherwise = "nothing on this product, unless a newer driver offers it"
    return Finding(
        group=GROUP,
        name=reading.name,
        verdict="doubt" if stood_in_for or reading.minor else "no",
        found=f"{named(gpus, uuids)}: {reason}: {reading.instead if stood_in_for else reading.lost}",
        remedy="a whole GPU: MIG slices are not told everything"
        if cut
        else remedies.remedy(reason, remedies.NVML, otherwise),
    )
