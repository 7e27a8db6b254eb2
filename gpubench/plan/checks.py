"""Combinations that make no sense, each with its reason. A new rule is a line in a function of problems."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gpubench.basics.words import format_count
from gpubench.datasets.facts import DataFacts
from gpubench.plan.shares import count_ranks
from gpubench.schema import catalog
from gpubench.schema.trial import Trial
from gpubench.schema.trial_fields import CARD_LIMITS


def _list_placement_problems(t: Trial, *, on_cpu: bool) -> Iterator[str]:
    """What is wrong with the devices that a trial asks for."""
    if on_cpu and t.gpus:
        count, given = t.ranks or t.gpus, "gpu_ids (--gpu-ids)" if t.gpu_ids else "gpus (--gpus)"
        yield (
            f"a CPU trial uses no GPUs: for {count} process{'es' if count > 1 else ''} give ranks = {count} "
            f"(--ranks {count}) in place of {given}"
        )
    for name in CARD_LIMITS:
        if on_cpu and getattr(t, name) is not None:
            yield f"{name} is a limit of a GPU: leave it out on a CPU"
    if not on_cpu and t.ranks is not None:
        yield (
            f"ranks counts the processes of a CPU trial: give gpus = {t.ranks} (--gpus {t.ranks}) in its place, "
            "or device = cpu (--device cpu)"
        )
    if not on_cpu and t.gpus == 0:
        yield "a GPU trial needs at least one GPU"
    if not on_cpu and t.gpu_ids is not None and (len(set(t.gpu_ids)), len(t.gpu_ids)) != (t.gpus, t.gpus):
        yield f"gpu_ids {'+'.join(map(str, t.gpu_ids))} do not name {t.gpus} different GPUs"


def _list_sharing_problems(t: Trial, together: int) -> Iterator[str]:
    """What is wrong with how the CPUs are shared."""
    if together == 1 and t.cpu_sharing != "shared":
        yield (
            f"CPUs are {t.cpu_sharing} only among jobs that run together: leave cpu_sharing (--cpu-sharing) out, or "
            "give copies (--copies) or jobs (--job)"
        )


def _list_precision_problems(t: Trial, *, on_cpu: bool) -> Iterator[str]:
    """What is wrong with the precision."""
    if on_cpu and t.precision in ("tf32", "fp16"):
        yield f"precision {t.precision} needs a GPU: on a CPU take fp32 or bf16"


def _list_load_problems(t: Trial) -> Iterator[str]:
    """What is wrong with a known load."""
    if t.devices > 1:
        yield f"{t.model} runs on one GPU, not on {t.devices}: for several of them at once give jobs (--job)"


def _list_device_problems(
    t: Trial, variant: catalog.InputVariant, together: int, *, on_cpu: bool
) -> Iterator[str]:
    """What is wrong with how a training uses its devices, and with its strategy on them."""
    strategy = catalog.STRATEGIES[t.strategy]
    if t.nodes > 1:
        if together > 1:
            yield "jobs that run together run on one node: leave nodes (--nodes) out"
        if not strategy.process_per_device:
            *most, last = [name for name, facts in catalog.STRATEGIES.items() if facts.process_per_device]
            yield (
                f"strategy {t.strategy} is one process, which can't be on {t.nodes} nodes: take {', '.join(most)} or "
                f"{last}"
            )
        if t.gpu_ids is not None:
            yield f"gpu_ids (--gpu-ids) name GPUs of one node: with nodes = {t.nodes} give their number, gpus (--gpus)"
        for name in CARD_LIMITS:
            if getattr(t, name) is not None:
                yield f"{name} is set on the GPUs of one node: leave it out with nodes = {t.nodes}"
        for name, number in (("ranks" if on_cpu else "gpus", t.devices), ("cpus", t.cpus or 0)):
            if number % t.nodes:
                yield (
                    f"{name} = {number} can't be shared equally by {t.nodes} nodes: {name} (--{name}) counts those of "
                    f"all nodes, so take a multiple of {t.nodes}"
                )
    if on_cpu:
        if variant.needs_gpu:
            yield f"variant {t.variant} needs a GPU: on a CPU take another (gpubench data list)"
        if t.execution == "graph":
            yield "execution graph needs a GPU: on a CPU take eager or compile"
        if t.gpu_mem_cap_mib is not None:
            yield "a GPU memory cap needs a GPU: leave gpu_mem_cap_mib (--gpu-mem-cap) out on a CPU"
        if t.launch_cpu != "free":
            yield "launch_cpu one is for what launches kernels on a GPU: leave it out on a CPU"
    for field in catalog.OWN_FIELDS:
        if field not in strategy.own_fields and getattr(t, field) is not None:
            owners = [name for name, facts in catalog.STRATEGIES.items() if field in facts.own_fields]
            yield f"{field} belongs to strategy {' or '.join(owners)}: leave it out with {t.strategy}"
    if strategy.needs_gpu and on_cpu:
        yield (
            f"strategy {t.strategy} needs GPUs: on a CPU take ddp with processes in their place "
            "(--strategy ddp --ranks 2), or single"
        )
    unit, units = ("process", "processes") if on_cpu else ("GPU", "GPUs")
    if t.devices < strategy.min_devices:
        yield f"strategy {t.strategy} needs at least {strategy.min_devices} {units}"
    if strategy.max_devices is not None and t.devices > strategy.max_devices:
        yield f"strategy {t.strategy} uses one {unit}, not {t.devices}"
    if strategy.process_per_device and t.devices > catalog.MOST_RANKS:
        yield f"a trial has {catalog.MOST_RANKS} processes at most, not {t.devices}"
    for name, values in strategy.cannot.items():
        if (value := getattr(t, name)) in values:
            yield f"{name} {value} does not work with strategy {t.strategy}{values[value] and f': {values[value]}'}"
    if t.launch_cpu == "one":
        if not strategy.process_per_device and t.devices > 1:
            yield (
                f"launch_cpu one does not work with strategy {t.strategy}, whose process launches for all GPUs at once"
            )
        if together > 1 and t.cpu_sharing != "pinned":
            yield "launch_cpu one gives each rank a CPU of its own: jobs together need cpu_sharing pinned for it"
        if t.cpus is not None and t.cpus < 2 * t.devices:
            yield f"launch_cpu one takes two CPUs for each GPU, one of them for loaders: {t.cpus} are too few"


def _list_work_problems(t: Trial, variant: catalog.InputVariant, facts: DataFacts) -> Iterator[str]:
    """What is wrong with the work that is to be shared."""
    ranks, share = count_ranks(t), t.devices * t.accumulate
    if t.batch_size % share:
        parts = f"{t.devices} devices × {t.accumulate} micro-batches"
        yield f"a batch of {t.batch_size:,} can't be shared equally: {parts} take a multiple of {share:,}"
    images = t.train_images or facts.train_images
    if images > facts.train_images > 0 and variant.files != "none":
        yield f"the data have only {facts.train_images:,} training images"
    if images and t.batch_size > images:
        broken = facts.skipped_images
        left_out = f": {format_count(broken, 'other')} can't be decoded and {'is' if broken == 1 else 'are'} left out"
        yield f"a batch of {t.batch_size:,} is larger than the epoch of {format_count(images, 'image')}" + (
            left_out if broken else ""
        )
    if t.workers and t.workers % ranks:
        yield (
            f"{format_count(t.workers, 'worker')} can't be shared equally by {ranks} processes: "
            f"take a multiple of {ranks}"
        )
    if t.execution == "graph" and not catalog.OPTIMIZERS[t.optimizer].capturable:
        yield f"a step of {t.optimizer} can't be captured into a CUDA graph"
    if t.execution == "graph" and t.breakdown:
        yield "a CUDA graph is one launch: breakdown finds no parts in it"
    if t.width != 1.0 and t.model not in catalog.WIDTH_MODELS and not catalog.is_user_model(t.model):
        yield f"{t.model} has no width to set"


def _list_measuring_problems(
    t: Trial, variant: catalog.InputVariant, facts: DataFacts, together: int
) -> Iterator[str]:
    """What is wrong with how long it is trained, and beside what."""
    warmup = t.warmup_epochs or 0
    if t.epochs is None and t.warmup_epochs is not None:
        yield "warmup_epochs are of whole epochs: give their number, epochs (--epochs), or leave it out"
    if t.epochs is not None and warmup >= t.epochs:
        yield (
            f"{warmup} of {format_count(t.epochs, 'epoch')} warm up, which leaves none to measure: write --epochs "
            f"{warmup + 1} or more, or --set warmup_epochs={t.epochs - 1} (in a file the same fields under [run])"
        )
    if t.until_top1 is None and t.confirm_top1:
        yield "confirm_top1 confirms that a top-1 was reached: say which one with until_top1 (--until-top1)"
    if t.until_top1 is not None and variant.files == "none":
        yield f"until_top1 (--until-top1) needs a validation split, and variant {t.variant} reads no images"
    if t.until_top1 is not None and not facts.val_images:
        yield "until_top1 (--until-top1) needs a validation split, and the data have none"
    if together > 1 and t.until_top1 is not None:
        yield "jobs that run together leave top-1 to the trial alone; use until_top1 (--until-top1) without them"
    if together > 1 and t.breakdown:
        yield "the parts of steps are timed alone; leave breakdown out where jobs run together"


def find_trial_conflict(
    t: Trial, variant: catalog.InputVariant, device: str, facts: DataFacts, *, together: int = 1
) -> str | None:
    """Why this trial can't be run anywhere of its kind; None where it can. `device`: cuda or cpu, resolved.

    `together`: jobs that run at the same time, this one among them.
    """
    problems = chain(_list_placement_problems(t, on_cpu=device == "cpu"), _list_sharing_problems(t, together))
    if t.workload == "load":
        problems = chain(
            problems, _list_load_problems(t), _list_precision_problems(t, on_cpu=device == "cpu")
        )
    if t.workload == "training":
        problems = chain(
            problems,
            _list_precision_problems(t, on_cpu=device == "cpu"),
            _list_device_problems(t, variant, together, on_cpu=device == "cpu"),
            _list_work_problems(t, variant, facts),
            _list_measuring_problems(t, variant, facts, together),
        )
    return next(problems, None)


def find_group_conflict(trials: list[Trial]) -> str | None:
    """Why these jobs can't run side by side; None where they can."""
    if len({t.cpu_sharing for t in trials}) > 1:
        return "jobs that run together have their CPUs all shared or all pinned"
    if len({t.epochs is None for t in trials if t.command is None}) > 1:
        return "jobs that run together measure all a window or all whole epochs"
    for index, t in enumerate(trials):
        others = trials[:index] + trials[index + 1 :]
        neighbours = [o for o in others if _collect_gpu_ids(t) & _collect_gpu_ids(o)]
        if t.gpu_mem_cap_mib is not None and neighbours:
            return "a GPU memory cap holds for each job by itself; leave it out where jobs share a GPU"
        for name in CARD_LIMITS:
            if any(getattr(o, name) != getattr(t, name) for o in neighbours):
                return f"{name} is a limit of the whole GPU: jobs that share one have the same"
    return None


def _collect_gpu_ids(t: Trial) -> set[int]:
    """The GPUs of a trial by number; those of a trial that names none are the first."""
    return set(t.gpu_ids) if t.gpu_ids is not None else set(range(t.gpus or 1))
