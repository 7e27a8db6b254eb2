"""Who else is on the GPUs just now."""

from __future__ import annotations

from collections.abc import Iterable

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, name_gpus
from gpubench.doctor.finding import CheckResult, doubt, no, ok
from gpubench.node.watch.idle import look_at_gpus
from gpubench.run import busy_gpus


def others(context: CheckContext, seconds: float = 1.0) -> Iterable[CheckResult]:
    """What a sweep would find when it looks around before it starts."""
    if not context.machine.gpus:
        return
    looks = look_at_gpus(context.nvml, [gpu.uuid for gpu in context.machine.gpus], seconds)
    ruling = busy_gpus.rule(looks, {gpu.uuid: gpu.index for gpu in context.machine.gpus})
    for busy in ruling.busy:
        yield no(
            "busy",
            f"{busy}: a sweep on it is refused",
            "wait, take other GPUs with --gpu-ids, or measure all the same with --allow-busy",
            forbids=len(ruling.busy) == len(looks),
        )
    for note in ruling.notes:
        yield doubt(
            "processes", note, "end it, or take other GPUs; rows that it may have touched carry a doubt"
        )
    for line in ruling.unknown:
        yield doubt(
            "busy or not",
            f"{line}; a busy stranger would not be refused",
            remedies.remedy(line, remedies.NVML, "nvidia-smi should say more"),
        )
    without: dict[str, list[str]] = {}
    for uuid, look in looks.items():
        if look.power_w is None:
            without.setdefault(look.missing.get("power_w", "no sample"), []).append(uuid)
    for reason, uuids in without.items():
        yield doubt(
            "idle power",
            f"{name_gpus(context.machine.gpus, uuids)}: {reason}: idle_power_w stays empty",
            remedies.remedy(reason, remedies.NVML, "where something has just run, try again in a minute"),
        )
    if not ruling.busy and all(look.compute == () and not look.desktop for look in looks.values()):
        yield ok("processes", "nobody else")
    if ruling.idle_power_w:
        watts = ", ".join(f"{power:.0f}" for power in ruling.idle_power_w.values())
        yield ok("idle power", f"{watts} W")
