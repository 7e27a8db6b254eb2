"""What NVML tells of each GPU: every call that the watcher makes, tried, and what a failing one costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, name_gpus
from gpubench.doctor.finding import CheckResult, ok
from gpubench.node.environment import Gpu
from gpubench.node.watch.nvml import History, Nvml
from gpubench.node.watch.nvml_calls import (
    CALLS,
    NO_POWER,
    NO_UTILISATION,
    POWER,
    UTILISATION,
    Call,
    DoctorReading,
)
from gpubench.schema.missing import Unmeasured

COUNTER_PAUSE_S = 0.25
"""Between two readings of the energy counter, which counts on every 0.1 s."""

Answers = dict[str, "str | Unmeasured"]
"""GPU's uuid -> what it told, in words, or why it told nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingProbe:
    """A reading, and how it is tried."""

    reading: DoctorReading[Any]
    read: Callable[[Nvml, Sequence[str]], Answers]
    suffix: Callable[[Nvml], str] = lambda _: ""
    """What stands behind the values, once for all GPUs."""


def _per_gpu(uuids: Sequence[str], read: Callable[[str], str]) -> Answers:
    answers: Answers = {}
    for uuid in uuids:
        try:
            answers[uuid] = read(uuid)
        except Unmeasured as reason:
            answers[uuid] = reason
    return answers


def _call(call: Call[Any], reading: DoctorReading[Any]) -> ReadingProbe:
    def read(nvml: Nvml, uuids: Sequence[str]) -> Answers:
        return _per_gpu(uuids, lambda uuid: reading.shows(nvml.ask(call, uuid)))

    return ReadingProbe(
        reading=reading,
        read=read,
        suffix=(lambda nvml: f" ({nvml.power_source})") if call is POWER else (lambda _: ""),
    )


def _counter(call: Call[float], reading: DoctorReading[float]) -> ReadingProbe:
    """Two readings of all GPUs with one pause between them."""

    def read(nvml: Nvml, uuids: Sequence[str]) -> Answers:
        before: dict[str, float] = {}

        def first(uuid: str) -> str:
            before[uuid] = nvml.ask(call, uuid)
            return ""

        def second(uuid: str) -> str:
            more = nvml.ask(call, uuid) - before[uuid]
            if more <= 0:
                raise Unmeasured(f"it moved by {reading.shows(more)} within {COUNTER_PAUSE_S:g} s")
            return reading.shows(more)

        answers = _per_gpu(uuids, first)
        if before:
            time.sleep(COUNTER_PAUSE_S)
        return answers | _per_gpu(list(before), second)

    return ReadingProbe(reading=reading, read=read, suffix=lambda _: f" more within {COUNTER_PAUSE_S:g} s")


def _buffer(kinds: Sequence[History], reading: DoctorReading[Any]) -> ReadingProbe:
    def read_one(nvml: Nvml, uuid: str) -> str:
        counts = []
        for what in kinds:
            samples = nvml.history(uuid, what, 0.0)
            if not samples:
                raise Unmeasured("the driver keeps no buffer of it")
            counts.append(f"{len(samples)} samples over {samples[-1][0] - samples[0][0]:.1f} s")
        return counts[0]

    return ReadingProbe(
        reading=reading, read=lambda nvml, uuids: _per_gpu(uuids, lambda uuid: read_one(nvml, uuid))
    )


_BUFFERS: dict[str, ReadingProbe] = {
    UTILISATION.name: _buffer(
        ("gpu_util_pct", "gpu_mem_util_pct"),
        DoctorReading(
            name="utilisation buffer",
            shows=str,
            lost=NO_UTILISATION,
            stand_ins=("utilisation",),
            instead="utilisation is polled at 10 Hz, and peaks between two polls are missed",
        ),
    ),
    POWER.name: _buffer(
        ("power_w",),
        DoctorReading(
            name="power buffer",
            shows=str,
            lost=NO_POWER,
            stand_ins=("power",),
            instead="power is polled at 10 Hz",
        ),
    ),
}
"""Call -> what the driver keeps of it by itself."""


def _reading_probes() -> Iterable[ReadingProbe]:
    for call in CALLS.values():
        if call.reading is not None:
            yield (_counter if call.reading.counts else _call)(call, call.reading)
        if call.name in _BUFFERS:
            yield _BUFFERS[call.name]


READINGS: tuple[ReadingProbe, ...] = tuple(_reading_probes())
"""Every call that doctor tells of so, and the driver's buffers, each after its call."""


def readings(context: CheckContext) -> Iterable[CheckResult]:
    """Every call, on every GPU that may be used."""
    gpus = context.machine.gpus
    if not gpus:
        return
    uuids = [gpu.uuid for gpu in gpus]
    answers_by_reading = {tried.reading.name: tried.read(context.nvml, uuids) for tried in READINGS}
    works = {
        name: {u for u, what in answers.items() if isinstance(what, str)}
        for name, answers in answers_by_reading.items()
    }
    for tried in READINGS:
        reading = tried.reading
        fine = [uuid for uuid in uuids if uuid in works[reading.name]]
        if fine:
            values = [str(answers_by_reading[reading.name][uuid]) for uuid in fine]
            shown = values[0] if len(set(values)) == 1 else " | ".join(values)
            where = "" if len(fine) == len(uuids) else f"{name_gpus(gpus, fine)}: "
            yield ok(reading.name, f"{where}{shown}{tried.suffix(context.nvml)}")
        reasons: dict[str, list[str]] = {}
        for uuid in uuids:
            if uuid not in works[reading.name]:
                reasons.setdefault(str(answers_by_reading[reading.name][uuid]), []).append(uuid)
        for reason, failing in reasons.items():
            yield _failing_result(gpus, reading, reason, failing, works)


def _failing_result(
    gpus: Sequence[Gpu],
    reading: DoctorReading[Any],
    reason: str,
    uuids: Sequence[str],
    works: dict[str, set[str]],
) -> CheckResult:
    stood_in_for = any(set(uuids) <= works[name] for name in reading.stand_ins)
    cut = any(gpu.parent for gpu in gpus if gpu.uuid in uuids)
    otherwise = "nvidia-smi and dmesg should say more"
    if "keeps no buffer" in reason or "it moved by" in reason or "power of 0 W" in reason:
        otherwise = "nothing on this product, unless a newer driver offers it"
    return CheckResult(
        name=reading.name,
        verdict="doubt" if stood_in_for or reading.minor else "no",
        found=f"{name_gpus(gpus, uuids)}: {reason}: {reading.instead if stood_in_for else reading.lost}",
        remedy="a whole GPU: MIG slices are not told everything"
        if cut
        else remedies.remedy(reason, remedies.NVML, otherwise),
    )
