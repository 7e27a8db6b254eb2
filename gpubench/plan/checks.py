"""Combinations that make no sense, each with its reason. A new rule is a function in RULES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpubench.basics.words import many
from gpubench.datasets.facts import DataFacts
from gpubench.plan.shares import processes
from gpubench.schema import catalog
from gpubench.schema.trial import Trial


@dataclass(frozen=True, slots=True)
class Combination:
    """A trial and what its sense depends on."""

    trial: Trial
    variant: catalog.Variant
    device: str
    """cuda or cpu, resolved."""
    facts: DataFacts
    together: int = 1
    """Jobs that run at the same time, this one among them."""


def _devices(case: Combination) -> str | None:
    t = case.trial
    if case.device == "cpu":
        if t.gpus:
            count = t.ranks or t.gpus
            return (
                f"a CPU trial uses no GPUs: for {count} process{'es' if count > 1 else ''} give ranks = {count} "
                f"(--ranks {count}) in place of {'gpu_ids (--gpu-ids)' if t.gpu_ids else 'gpus (--gpus)'}"
            )
        return None
    if t.ranks is not None:
        return (
            f"ranks counts the processes of a CPU trial: give gpus = {t.ranks} (--gpus {t.ranks}) in its place, "
            "or device = cpu (--device cpu)"
        )
    if t.gpus == 0:
        return "a GPU trial needs at least one GPU"
    if t.gpu_ids is not None and (len(set(t.gpu_ids)) != len(t.gpu_ids) or len(t.gpu_ids) != t.gpus):
        return f"gpu_ids {'+'.join(map(str, t.gpu_ids))} do not name {t.gpus} different GPUs"
    return None


def _nodes(case: Combination) -> str | None:
    t = case.trial
    if t.nodes == 1:
        return None
    over = f"nodes = {t.nodes} (--nodes {t.nodes})"
    if case.together > 1:
        return "jobs that run together run on one node: leave nodes (--nodes) out"
    if not catalog.STRATEGIES[t.strategy].process_per_device:
        spanning = [name for name, strategy in catalog.STRATEGIES.items() if strategy.process_per_device]
        return (
            f"strategy {t.strategy} is one process, which can't be on {t.nodes} nodes: take "
            f"{', '.join(spanning[:-1])} or {spanning[-1]}"
        )
    if t.gpu_ids is not None:
        return f"gpu_ids (--gpu-ids) name GPUs of one node: with {over} give their number, gpus (--gpus)"
    counted, option = ("ranks", "--ranks") if case.device == "cpu" else ("gpus", "--gpus")
    if t.devices % t.nodes:
        return (
            f"{counted} = {t.devices} can't be shared equally by {t.nodes} nodes: {counted} ({option}) counts those of "
            f"all nodes, so take a multiple of {t.nodes}"
        )
    if t.cpus is not None and t.cpus % t.nodes:
        return (
            f"cpus = {t.cpus} can't be shared equally by {t.nodes} nodes: cpus (--cpus) counts those of all nodes, so "
            f"take a multiple of {t.nodes}"
        )
    return None


def _strategy(case: Combination) -> str | None:
    t = case.trial
    for name, facts in catalog.STRATEGIES.items():
        for field in facts.own_fields:
            if name != t.strategy and getattr(t, field) is not None:
                return f"{field} belongs to strategy {name}: leave it out with {t.strategy}"
    known = catalog.STRATEGIES[t.strategy]
    if known.needs_gpu and case.device == "cpu":
        return (
            f"strategy {t.strategy} needs GPUs: on a CPU take ddp with processes in their place "
            "(--strategy ddp --ranks 2), or single"
        )
    unit = "process" if case.device == "cpu" else "GPU"
    if t.devices < known.min_devices:
        units = "processes" if case.device == "cpu" else "GPUs"
        return f"strategy {t.strategy} needs at least {known.min_devices} {units}"
    if known.max_devices is not None and t.devices > known.max_devices:
        return f"strategy {t.strategy} uses one {unit}, not {t.devices}"
    if known.process_per_device and t.devices > catalog.MOST_RANKS:
        return f"a trial has {catalog.MOST_RANKS} processes at most, not {t.devices}"
    for name, values in known.cannot.items():
        value = getattr(t, name)
        if value in values:
            why = values[value] and f": {values[value]}"
            return f"{name} {value} does not work with strategy {t.strategy}{why}"
    return None


def _batch(case: Combination) -> str | None:
    t = case.trial
    share = t.devices * t.accumulate
    if t.batch_size % share:
        parts = f"{t.devices} devices × {t.accumulate} micro-batches"
        return f"a batch of {t.batch_size:,} can't be shared equally: {parts} take a multiple of {share:,}"
    images = t.train_images or case.facts.train_images
    if images > case.facts.train_images > 0 and case.variant.files != "none":
        return f"the data have only {case.facts.train_images:,} training images"
    if images and t.batch_size > images:
        broken = case.facts.skipped_images
        left_out = f": {many(broken, 'other')} can't be decoded and {'is' if broken == 1 else 'are'} left out"
        return f"a batch of {t.batch_size:,} is larger than the epoch of {many(images, 'image')}" + (
            left_out if broken else ""
        )
    return None


def _workers(case: Combination) -> str | None:
    t = case.trial
    ranks = processes(t)
    if t.workers and t.workers % ranks:
        return (
            f"{t.workers} worker{'s' if t.workers > 1 else ''} can't be shared equally by {ranks} processes: "
            f"take a multiple of {ranks}"
        )
    return None


def _gpu_only(case: Combination) -> str | None:
    t = case.trial
    if case.device != "cpu":
        return None
    if case.variant.needs_gpu:
        return f"variant {t.variant} needs a GPU: on a CPU take another (gpubench data list)"
    if t.precision in ("tf32", "fp16"):
        return f"precision {t.precision} needs a GPU: on a CPU take fp32 or bf16"
    if t.execution == "graph":
        return "execution graph needs a GPU: on a CPU take eager or compile"
    if t.gpu_mem_cap_mib is not None:
        return "a GPU memory cap needs a GPU: leave gpu_mem_cap_mib (--gpu-mem-cap) out on a CPU"
    if t.launch_cpu != "free":
        return "launch_cpu one is for what launches kernels on a GPU: leave it out on a CPU"
    return None


def _graph(case: Combination) -> str | None:
    t = case.trial
    if t.execution != "graph":
        return None
    if not catalog.OPTIMIZERS[t.optimizer].capturable:
        return f"a step of {t.optimizer} can't be captured into a CUDA graph"
    return "a CUDA graph is one launch: breakdown finds no parts in it" if t.breakdown else None


def _model(case: Combination) -> str | None:
    t = case.trial
    if t.width != 1.0 and t.model not in catalog.WIDTH_MODELS and not catalog.is_user_model(t.model):
        return f"{t.model} has no width to set"
    return None


def _warmup(case: Combination) -> str | None:
    t = case.trial
    if t.epochs is None:
        if t.warmup_epochs is not None:
            return "warmup_epochs are of whole epochs: give their number, epochs (--epochs), or leave it out"
        return None
    warmup = t.warmup_epochs or 0
    if warmup >= t.epochs:
        is_only_epoch = warmup == t.epochs == 1
        warm = "the only epoch warms up" if is_only_epoch else f"{warmup} of {t.epochs} epochs warm up"
        return (
            f"{warm}, which leaves none to measure: write --epochs {warmup + 1} or more, or --set "
            f"warmup_epochs={t.epochs - 1} (in a file the same fields under [run])"
        )
    return None


def _launch_cpu(case: Combination) -> str | None:
    t = case.trial
    if t.launch_cpu == "free":
        return None
    if not catalog.STRATEGIES[t.strategy].process_per_device and t.devices > 1:
        return f"launch_cpu one does not work with strategy {t.strategy}, whose process launches for all GPUs at once"
    if case.together > 1 and t.cpu_sharing != "pinned":
        return "launch_cpu one gives each rank a CPU of its own: jobs together need cpu_sharing pinned for it"
    if t.cpus is not None and t.cpus < 2 * t.devices:
        return f"launch_cpu one takes two CPUs for each GPU, one of them for loaders: {t.cpus} are too few"
    return None


def _target(case: Combination) -> str | None:
    t = case.trial
    if t.until_top1 is None:
        return (
            "confirm_top1 confirms that a top-1 was reached: say which one with until_top1 (--until-top1)"
            if t.confirm_top1
            else None
        )
    if case.variant.files == "none":
        return f"until_top1 (--until-top1) needs a validation split, and variant {t.variant} reads no images"
    if not case.facts.val_images:
        return "until_top1 (--until-top1) needs a validation split, and the data have none"
    return None


def _together(case: Combination) -> str | None:
    t = case.trial
    if case.together == 1:
        if t.cpu_sharing != "shared":
            return (
                f"CPUs are {t.cpu_sharing} only among jobs that run together: leave cpu_sharing (--cpu-sharing) "
                "out, or give copies (--copies) or jobs (--job)"
            )
        return None
    if t.until_top1 is not None:
        return "jobs that run together leave top-1 to the trial alone; use until_top1 (--until-top1) without them"
    return (
        "the parts of steps are timed alone; leave breakdown out where jobs run together"
        if t.breakdown
        else None
    )


RULES: tuple[Callable[[Combination], str | None], ...] = (
    _devices,
    _nodes,
    _gpu_only,
    _strategy,
    _batch,
    _workers,
    _graph,
    _model,
    _warmup,
    _launch_cpu,
    _target,
    _together,
)


def why_senseless(
    t: Trial, variant: catalog.Variant, device: str, facts: DataFacts, *, together: int = 1
) -> str | None:
    """Why this trial can't be run anywhere of its kind; None where it can. `device`: cuda or cpu, resolved.

    `together`: jobs that run at the same time, this one among them.
    """
    case = Combination(t, variant, device, facts, together)
    return next((reason for rule in RULES if (reason := rule(case))), None)


def why_not_together(trials: list[Trial]) -> str | None:
    """Why these jobs can't run side by side; None where they can."""
    if len({t.cpu_sharing for t in trials}) > 1:
        return "jobs that run together have their CPUs all shared or all pinned"
    if len({t.epochs is None for t in trials}) > 1:
        return "jobs that run together measure all a window or all whole epochs"
    for index, t in enumerate(trials):
        if t.gpu_mem_cap_mib is not None and any(
            _gpus(t) & _gpus(o) for o in trials[:index] + trials[index + 1 :]
        ):
            return "a GPU memory cap holds for each job by itself; leave it out where jobs share a GPU"
    return None


def _gpus(t: Trial) -> set[int]:
    """The GPUs of a trial by number; those of a trial that names none are the first."""
    return set(t.gpu_ids) if t.gpu_ids is not None else set(range(t.gpus or 1))
