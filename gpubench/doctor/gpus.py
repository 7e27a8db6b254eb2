"""GPUs: the driver, what it lists, what CUDA_VISIBLE_DEVICES leaves, whom they let in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gpubench.doctor import remedies
from gpubench.doctor.context import CheckContext, name_gpus
from gpubench.doctor.finding import CheckResult, doubt, no, ok
from gpubench.node.watch.nvml import NoNvml
from gpubench.node.watch.nvml_calls import COMPUTE_MODE
from gpubench.schema.missing import Unmeasured

ON_CPU = "a sweep runs on the CPU"


def driver(context: CheckContext, dev: Path = Path("/dev")) -> Iterable[CheckResult]:
    """The driver's version, or why there is none; a GPU without a working driver is no machine without a GPU."""
    if isinstance(context.nvml, NoNvml):
        device_files = sorted(path.name for path in dev.glob("nvidia[0-9]*"))
        yield CheckResult(
            name="driver",
            verdict="no" if device_files else "doubt",
            found=f"{context.nvml.reason}{f', though {device_files[0]} is in {dev}' if device_files else ''}: {ON_CPU}",
            remedy=remedies.remedy(context.nvml.reason, remedies.NVML, "nvidia-smi should say more"),
        )
    else:
        yield ok("driver", f"{context.nvml.driver}")


def listed(context: CheckContext) -> Iterable[CheckResult]:
    """GPUs that may be used, those that are hidden, and those that don't answer."""
    for index, why in context.nvml.unreadable.items():
        yield no(
            f"NVML's GPU {index}",
            f"left out: {why}",
            remedies.remedy(why, remedies.NVML, "nvidia-smi and dmesg should say more"),
        )
    if isinstance(context.nvml, NoNvml):
        return
    whole = [device for device in context.nvml.devices if device.parent is None]
    gpus, spec = context.machine.gpus, context.environ.get("CUDA_VISIBLE_DEVICES")
    under = "" if spec is None else f" under CUDA_VISIBLE_DEVICES={spec!r}"
    if not gpus:
        yield doubt(
            "visible",
            f"none of {len(whole)}{under}: {ON_CPU}",
            "unset CUDA_VISIBLE_DEVICES, or let it name GPUs that nvidia-smi -L lists" if whole else "",
        )
        return
    models = Counter((gpu.name, gpu.memory_mib) for gpu in gpus)
    what = ", ".join(f"{count} × {name}, {mib:,} MiB" for (name, mib), count in models.items())
    yield ok("visible", f"{len(gpus)} of {len(whole)}{under}: {what}")
    if len(models) > 1:
        yield doubt(
            "kinds",
            "GPUs of several kinds: rows of different --gpu-ids don't compare",
            "keep a sweep to one kind with --gpu-ids or CUDA_VISIBLE_DEVICES",
        )


def slices(context: CheckContext) -> Iterable[CheckResult]:
    """MIG."""
    cut = [gpu.uuid for gpu in context.machine.gpus if gpu.parent]
    if cut:
        yield doubt(
            "MIG",
            f"{name_gpus(context.machine.gpus, cut)}: slices, for which the driver tells no utilisation and "
            "no power; neighbours on the same GPU share its clocks",
            "a whole GPU (sudo nvidia-smi -mig 0)",
        )


def compute_modes(context: CheckContext) -> Iterable[CheckResult]:
    """Whether processes are let in."""
    uuids_by_mode: dict[str, list[str]] = {}
    for gpu in context.machine.gpus:
        try:
            mode: str = context.nvml.ask(COMPUTE_MODE, gpu.uuid)
        except Unmeasured as reason:
            mode = str(reason)
        uuids_by_mode.setdefault(mode, []).append(gpu.uuid)
    for mode, uuids in uuids_by_mode.items():
        where = name_gpus(context.machine.gpus, uuids)
        if mode == "shared":
            yield ok("compute mode", f"{where}: shared")
        elif mode == "prohibited":
            yield no(
                "compute mode",
                f"{where}: prohibited, nothing can run there",
                "sudo nvidia-smi -c DEFAULT",
                forbids=len(uuids) == len(context.machine.gpus),
            )
        elif mode == "exclusive":
            yield doubt(
                "compute mode",
                f"{where}: one process at a time, so jobs can't share a GPU",
                "sudo nvidia-smi -c DEFAULT",
            )
        else:
            yield doubt(
                "compute mode",
                f"{where}: {mode}; whether processes are let in shows below",
                remedies.remedy(mode, remedies.NVML, "nvidia-smi -q -d COMPUTE should say more"),
            )
