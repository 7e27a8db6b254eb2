"""Who else is on the GPUs just now."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, name_gpus
from gpubench.doctor.finding import CheckResult
from gpubench.node.watch.idle import look_at_gpus
from gpubench.run import busy_gpus

GROUP = "others on the GPUs"


def others(context: CheckContext, seconds: float = 1.0) -> Iterable[CheckResult]:
    """What a sweep would find when it looks around before it starts."""
    if not context.machine.gpus:
        return
    looks = look_at_gpus(context.nvml, [gpu.uuid for gpu in context.machine.gpus], seconds)
    ruling = busy_gpus.rule(looks, {gpu.uuid: gpu.index for gpu in context.machine.gpus})
    for busy in ruling.busy:
        yield CheckResult(
            group=GROUP,
            name="busy",
            verdict="no",
            found=f"{busy}: a sweep on it is refused",
            remedy="wait, take other GPUs with --gpu-ids, or measure all the same with --allow-busy",
            forbids=len(ruling.busy) == len(looks),
        )
    for note in ruling.notes:
        yield CheckResult(
            group=GROUP,
            name="processes",
            verdict="doubt",
            found=note,
            remedy="end it, or take other GPUs; rows that it may have touched carry a doubt",
        )
    for line in ruling.unknown:
        yield CheckResult(
            group=GROUP,
            name="busy or not",
            verdict="doubt",
            found=f"{line}; a busy stranger would not be refused",
            remedy=remedies.remedy(line, remedies.NVML, "nvidia-smi should say more"),
        )
    without: dict[str, list[str]] = {}
    for uuid, look in looks.items():
        if look.power_w is None:
            without.setdefault(look.missing.get("power_w", "no sample"), []).append(uuid)
    for reason, uuids in without.items():
        yield CheckResult(
            group=GROUP,
            name="idle power",
            verdict="doubt",
            found=f"{name_gpus(context.machine.gpus, uuids)}: {reason}: idle_power_w stays empty",
            remedy=remedies.remedy(
                reason, remedies.NVML, "where something has just run, try again in a minute"
            ),
        )
    if not ruling.busy and all(look.compute == () and not look.desktop for look in looks.values()):
        yield CheckResult(group=GROUP, name="processes", verdict="ok", found="nobody else")
    if ruling.idle_power_w:
        watts = ", ".join(f"{power:.0f}" for power in ruling.idle_power_w.values())
        yield CheckResult(group=GROUP, name="idle power", verdict="ok", found=f"{watts} W")
