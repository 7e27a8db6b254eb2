"""Checks of the GPUs: the driver, what it lists, whom they let in, who else is on them, what can be read of them."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gpubench.doctor import remedies
from gpubench.doctor.context import (
    CheckContext,
    CheckResult,
    FindingVerdict,
    make_doubt,
    make_failure,
    make_ok,
)
from gpubench.node.limits.kept import put_back_left_settings
from gpubench.node.watch.idle import sample_gpus_before_sweep
from gpubench.node.watch.metrics import BUFFERS
from gpubench.node.watch.nvml import NoNvml
from gpubench.node.watch.nvml_calls import CALLS, COMPUTE_MODE, POWER
from gpubench.run import busy_gpus
from gpubench.run.gpu_limits import describe_left_limits
from gpubench.schema.missing import Unmeasured

ON_CPU = "a sweep runs on the CPU"
_BUFFERS = {"power_w": "power", "gpu_util_pct": "GPU time", "gpu_mem_util_pct": "GPU memory"}


def check_driver(context: CheckContext) -> Iterable[CheckResult]:
    """The driver's version, or why there is none."""
    if isinstance(context.nvml, NoNvml):
        reason = context.nvml.reason
        remedy = remedies.choose_remedy(reason, remedies.NVML, "nvidia-smi should say more")
        yield make_doubt("driver", f"{reason}: {ON_CPU}", remedy)
    else:
        yield make_ok("driver", f"{context.nvml.driver}")


def check_listed_gpus(context: CheckContext) -> Iterable[CheckResult]:
    """GPUs that may be used, those that are hidden, and those that don't answer."""
    for index, why in context.nvml.unreadable.items():
        remedy = remedies.choose_remedy(why, remedies.NVML, "nvidia-smi and dmesg should say more")
        yield make_failure(f"NVML's GPU {index}", f"left out: {why}", remedy)
    if isinstance(context.nvml, NoNvml):
        return
    whole = [device for device in context.nvml.devices if device.parent is None]
    gpus, spec = context.machine.gpus, context.environ.get("CUDA_VISIBLE_DEVICES")
    under = "" if spec is None else f" under CUDA_VISIBLE_DEVICES={spec!r}"
    if not gpus:
        remedy = "unset CUDA_VISIBLE_DEVICES, or let it name GPUs that nvidia-smi -L lists" if whole else ""
        yield make_doubt("visible", f"none of {len(whole)}{under}: {ON_CPU}", remedy)
        return
    models = Counter((gpu.name, gpu.memory_mib) for gpu in gpus)
    what = ", ".join(f"{count} × {name}, {mib:,} MiB" for (name, mib), count in models.items())
    if len(models) == 1:
        yield make_ok("visible", f"{len(gpus)} of {len(whole)}{under}: {what}")
    else:
        found = f"{len(gpus)} of {len(whole)}{under}: {what}: rows of several kinds don't compare"
        yield make_doubt("visible", found, "keep a sweep to one kind with --gpu-ids or CUDA_VISIBLE_DEVICES")
    if cut := [gpu.uuid for gpu in gpus if gpu.parent]:
        found = (
            f"{context.describe_gpus(cut)}: slices, for which the driver tells no utilisation and no power"
        )
        yield make_doubt("MIG", found, "a whole GPU (sudo nvidia-smi -mig 0)")


def check_left_limits(_: CheckContext) -> Iterable[CheckResult]:
    """Puts back what sweeps that were killed have left on GPUs, with the processes that would have."""
    for left in put_back_left_settings():
        line = describe_left_limits(left)
        yield (
            make_failure("left limits", line, left.remedy) if left.trouble else make_ok("left limits", line)
        )


def check_compute_modes(context: CheckContext) -> Iterable[CheckResult]:
    """Whether processes are let in."""
    words: Mapping[str, tuple[FindingVerdict, str]] = {
        "shared": ("ok", ""),
        "prohibited": ("no", ", nothing can run there"),
        "exclusive": ("doubt", ": one process at a time, so jobs can't share a GPU"),
    }

    def read_mode(uuid: str) -> str:
        try:
            return context.nvml.ask(COMPUTE_MODE, uuid)
        except Unmeasured as reason:
            return str(reason)

    for mode, uuids in _group_gpus_by_answer(context, read_mode).items():
        verdict, what = words.get(mode, ("doubt", "; whether processes are let in shows below"))
        remedy = remedies.choose_remedy(mode, remedies.NVML, "sudo nvidia-smi -c DEFAULT")
        yield CheckResult(
            name="compute mode",
            verdict=verdict,
            found=f"{context.describe_gpus(uuids)}: {mode}{what}",
            remedy="" if verdict == "ok" else remedy,
            forbids=mode == "prohibited" and len(uuids) == len(context.machine.gpus),
        )


def check_others_on_gpus(context: CheckContext, seconds: float = 1.0) -> Iterable[CheckResult]:
    """What a sweep would find when it looks around before it starts."""
    if not context.machine.gpus:
        return
    looks = sample_gpus_before_sweep(context.nvml, [gpu.uuid for gpu in context.machine.gpus], seconds)
    ruling = busy_gpus.classify_gpu_use(looks, {gpu.uuid: gpu.index for gpu in context.machine.gpus})
    for busy in ruling.busy:
        remedy = "wait, take other GPUs with --gpu-ids, or measure all the same with --allow-busy"
        is_all = len(ruling.busy) == len(looks)
        yield make_failure("busy", f"{busy}: a sweep on it is refused", remedy, forbids=is_all)
    for note in ruling.notes:
        remedy = "end it, or take other GPUs; rows that it may have touched carry a doubt"
        yield make_doubt("processes", note, remedy)
    for line in (*ruling.unknown, *ruling.idle.missing.values()):
        remedy = "nvidia-smi should say more; where something has just run, try again in a minute"
        yield make_doubt("idle or not", line, remedies.choose_remedy(line, remedies.NVML, remedy))
    if not ruling.busy and all(look.compute == () and not look.desktop for look in looks.values()):
        yield make_ok("processes", "nobody else")
    if ruling.idle.watts:
        yield make_ok("idle power", f"{', '.join(f'{watts:.0f}' for watts in ruling.idle.watts.values())} W")


def check_gpu_readings(context: CheckContext) -> Iterable[CheckResult]:
    """Every call that the watcher makes and every buffer of the driver, tried on every GPU that may be used."""
    nvml = context.nvml

    def ask(call: Any, uuid: str) -> str:
        source = f" ({nvml.power_source})" if call is POWER else ""
        return f"{call.shows(nvml.ask(call, uuid))}{source}"

    def fetch(buffer: Any, uuid: str) -> str:
        if not (samples := nvml.read_driver_samples(uuid, buffer.what, 0.0)):
            raise Unmeasured("the driver keeps no buffer of it")
        return f"{len(samples)} samples over {samples[-1][0] - samples[0][0]:.1f} s"

    for call in CALLS.values():
        if call.shows is not None:
            verdict: FindingVerdict = "no" if call.is_column_lost else "doubt"
            yield from _check_reading(
                context, call.doctor_name or call.label, functools.partial(ask, call), verdict, call.without
            )
    for buffer in BUFFERS:
        name, read = f"{_BUFFERS[buffer.what]} buffer", functools.partial(fetch, buffer)
        yield from _check_reading(context, name, read, "doubt", "it is polled at 10 Hz")


def _check_reading(
    context: CheckContext, name: str, read: Callable[[str], str], verdict: FindingVerdict, cost: str
) -> Iterator[CheckResult]:
    """One line for the GPUs that answer, and one for each reason why others don't, with what that costs."""
    reasons: set[str] = set()

    def read_or_explain(uuid: str) -> str:
        try:
            return read(uuid)
        except Unmeasured as reason:
            reasons.add(str(reason))
            return str(reason)

    answers = _group_gpus_by_answer(context, read_or_explain)
    if values := {answer: uuids for answer, uuids in answers.items() if answer not in reasons}:
        answering = [uuid for uuids in values.values() for uuid in uuids]
        where = f"{context.describe_gpus(answering)}: " if reasons else ""
        yield make_ok(name, where + " | ".join(values))
    otherwise = "nothing on this product, unless a newer driver offers it; MIG slices are not told everything"
    for reason, uuids in answers.items():
        if reason in reasons:
            found = f"{context.describe_gpus(uuids)}: {reason}: {cost}"
            remedy = remedies.choose_remedy(reason, remedies.NVML, otherwise)
            yield CheckResult(name=name, verdict=verdict, found=found, remedy=remedy)


def _group_gpus_by_answer(context: CheckContext, read: Callable[[str], str]) -> dict[str, list[str]]:
    """Answer -> the GPUs that give it, by UUID."""
    uuids_by_answer: dict[str, list[str]] = {}
    for gpu in context.machine.gpus:
        uuids_by_answer.setdefault(read(gpu.uuid), []).append(gpu.uuid)
    return uuids_by_answer
