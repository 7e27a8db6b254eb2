"""What a trial left to the machine, worked out; and the order that is sent to its processes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Gpu, Machine
from gpubench.plan.plan import Job, Unit
from gpubench.plan.shares import choose_device, count_ranks, divide_cpus
from gpubench.plan.values import format_field_value
from gpubench.schema.command import fill_placeholders, split_settings
from gpubench.schema.order import (
    CommandRun,
    DataSpec,
    Kind,
    Protocol,
    SteadyWindow,
    TrialOrder,
    WholeEpochs,
    parse_transforms,
)
from gpubench.schema.trial import Trial
from gpubench.schema.trial_fields import FIELDS
from gpubench.schema.window import choose_window_s

DEFAULT_SIZE = 224
CHANNELS = 3
"""Channels of the images that a network sees: grey ones are made RGB."""
MAX_GPU_THREADS = 4
"""Threads of a GPU rank's own process: it only launches kernels; its loaders are processes of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolvedTrial:
    """A trial's fields as this machine fills them."""

    device: str
    gpu_ids: tuple[int, ...]
    """On each of its nodes, as all below that is not said to be of the trial."""
    gpu_uuids: tuple[str, ...]
    """Of the first node; once it has run, of all nodes."""
    nodes: int = 1
    processes: int
    """Ranks of the trial."""
    cpu_ids: tuple[int, ...]
    cpus: int
    """CPUs' worth of time: fewer than `cpu_ids` under a quota."""
    workers: int
    """Loader processes of the trial."""
    input_size: int
    num_classes: int
    train_images: int

    @property
    def all_cpus(self) -> int:
        """CPUs' worth of time of the trial, on all nodes."""
        return self.cpus * self.nodes

    def make_columns(self, fields: Collection[str] = FIELDS) -> dict[str, Any]:
        """What was resolved, as columns of trials.csv. `fields`: those that the machine fills for the trial's work."""
        columns = {
            "device": self.device,
            "gpus": len(self.gpu_ids) * self.nodes,
            "gpu_ids": list(self.gpu_ids) if self.gpu_ids else None,
            "ranks": self.processes if self.device == "cpu" else None,
            "cpus": self.all_cpus,
            "workers": self.workers,
            "input_size": self.input_size,
            "num_classes": self.num_classes,
            "train_images": self.train_images or None,
        }
        return {name: value for name, value in columns.items() if name in fields}


def resolve_unit_trials(
    unit: Unit,
    machine: Machine,
    facts: Callable[[Job], DataFacts],
    default_device: str,
    lost: Collection[int] = (),
) -> list[ResolvedTrial]:
    """Resolves each job of a unit; jobs of a group share the machine's CPUs.

    `lost`: GPUs of the machine that can't be used any more. They are among a job's only where the unit can't run.
    """
    shares = divide_cpus([(job.trial, job.variant) for job in unit.jobs], machine.cpu_count, default_device)
    gpus = choose_gpu_ids([job.trial for job in unit.jobs], machine.gpus, lost)
    resolved = []
    for job, share, on_cuda in zip(unit.jobs, shares, gpus, strict=True):
        t, data = job.trial, facts(job)
        device = choose_device(t, default_device)
        gpu_ids = on_cuda if device == "cuda" else ()
        cpu_ids = machine.cpu_ids
        if share.first is not None:
            cpu_ids = cpu_ids[share.first : share.first + share.cpus]
        resolved.append(
            ResolvedTrial(
                device=device,
                gpu_ids=gpu_ids,
                gpu_uuids=tuple(machine.gpus[i].uuid for i in gpu_ids),
                nodes=t.nodes,
                processes=count_ranks(t),
                cpu_ids=cpu_ids,
                cpus=min(len(cpu_ids), machine.cpu_count),
                workers=share.workers,
                input_size=t.input_size or data.size or DEFAULT_SIZE,
                num_classes=t.num_classes or data.num_classes,
                train_images=t.train_images or data.train_images,
            )
        )
    return resolved


def choose_gpu_ids(
    trials: Sequence[Trial], gpus: Sequence[Gpu], lost: Collection[int]
) -> list[tuple[int, ...]]:
    """The GPUs of each of the trials that run together, by number: those that it names, else the first so many.

    Of a trial over several nodes: those on each of them.

    `lost`: numbers of GPUs. In their place others of the same model are taken, which is the same machine to a result,
    but not beside a trial that names its GPUs: it was to have these for itself. Where that can't be, the lost ones
    stay among the numbers: such a unit can't run.
    """
    may_move = bool(lost) and not any(trial.gpu_ids is not None for trial in trials)
    usable = [gpu.index for gpu in gpus if gpu.index not in lost]

    def list_models(numbers: Iterable[int]) -> list[tuple[str, int]]:
        return [(gpus[number].name, gpus[number].memory_mib) for number in numbers]

    def choose_first(count: int) -> tuple[int, ...]:
        planned, moved = tuple(range(count)), tuple(usable[:count])
        fits = may_move and len(moved) == count and list_models(moved) == list_models(planned)
        return moved if fits else planned

    return [
        trial.gpu_ids if trial.gpu_ids is not None else choose_first(trial.devices // trial.nodes)
        for trial in trials
    ]


def fill_command(t: Trial, resolved: ResolvedTrial) -> tuple[str, ...]:
    """The words of a command with the trial's values in place of its placeholders."""
    assert t.command is not None
    values = {
        **t.asdict(),
        "gpus": len(resolved.gpu_ids),
        "gpu_ids": resolved.gpu_ids,
        "cpus": resolved.cpus,
        "device": resolved.device,
        "seed": t.seed + t.repeat,
        **split_settings(t.settings),
    }
    return fill_placeholders(t.command, {name: _format_argument(value) for name, value in values.items()})


def _format_argument(value: Any) -> str:
    """A value as programs take it: lists with commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else format_field_value(value)


def make_measuring_protocol(t: Trial, device: str) -> Protocol:
    """How a process of a training measures. `device`: cuda or cpu."""
    if t.epochs is not None:
        return WholeEpochs(
            epochs=t.epochs,
            warmup_epochs=t.warmup_epochs or 0,
            until_top1=t.until_top1,
            confirm_top1=t.confirm_top1,
        )
    if t.steps is not None:
        return SteadyWindow(window_s=None, steps=t.steps)
    return SteadyWindow(window_s=choose_window_s(t.window, device))


def make_data_spec(job: Job, resolved: ResolvedTrial, facts: DataFacts, root: Path | None) -> DataSpec:
    """What the child needs to know to read the images."""
    files = job.variant.files
    kind: Kind = "decoded" if files == "decoded" else "folder"
    if files == "none" or facts.kind == "named":
        kind = "none" if files == "none" else "named"
    definition = job.variant.make_definition()
    return DataSpec(
        kind=kind,
        root=str(root) if root else None,
        name=facts.name if facts.kind == "named" else None,
        input_size=resolved.input_size,
        num_classes=resolved.num_classes,
        channels=CHANNELS,
        train_images=resolved.train_images,
        cpu=parse_transforms(definition["cpu"], resolved.input_size),
        gpu=parse_transforms(definition["gpu"], resolved.input_size),
        seed=job.trial.seed + job.trial.repeat,
    )


def make_trial_order(
    job: Job, resolved: ResolvedTrial, *, data: DataSpec, log: Path, known_gmacs: float | None
) -> TrialOrder:
    """The whole order to the trial's processes, where it runs on several nodes to those on the first."""
    t = job.trial
    ranks = resolved.processes // resolved.nodes
    share = max(1, resolved.cpus // ranks)
    protocol = (
        make_measuring_protocol(t, resolved.device)
        if t.command is None
        else CommandRun(words=fill_command(t, resolved), folder=str(Path.cwd()))
    )
    return TrialOrder(
        trial=t,
        jobs=job.membership.size if job.membership else 1,
        device=resolved.device,
        gpu_uuids=resolved.gpu_uuids,
        ranks=ranks,
        workers=resolved.workers // resolved.nodes,
        cpu_ids=resolved.cpu_ids,
        threads_per_rank=share if resolved.device == "cpu" else min(MAX_GPU_THREADS, share),
        protocol=protocol,
        seed=t.seed + t.repeat,
        data=data,
        log=log,
        gmacs_per_image=known_gmacs,
    )
