"""What each of several jobs gets of the machine's CPUs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from gpubench.schema import catalog
from gpubench.schema.trial import Trial

PlannedTrial: TypeAlias = tuple[Trial, catalog.InputVariant]
"""A trial and what its variant does."""


@dataclass(frozen=True, slots=True)
class CpuShare:
    """One job's part."""

    cpus: int
    """On each node."""
    first: int | None
    """The first of its CPUs among those that may be used; None: it is bound to none in particular."""
    workers: int
    """Loader processes of the whole job."""


def choose_device(t: Trial, default: str) -> str:
    """cuda or cpu: as asked for, as the GPUs that were asked for say, or else as the machine has it."""
    return t.device or ("cuda" if t.gpus else default)


def divide_cpus(jobs: Sequence[PlannedTrial], cpus: int, default_device: str) -> list[CpuShare]:
    """The shares of jobs that run together (one: of a trial alone), of `cpus` CPUs that may be used on a node.

    Pinned jobs get CPUs of their own: as many as they ask for, or an equal part of what that leaves. Otherwise all
    get the same ones, and loaders are divided among them where no number was asked for.
    """
    pinned = len(jobs) > 1 and jobs[0][0].cpu_sharing == "pinned"
    requested = [t.cpus for t, _ in jobs if t.cpus is not None]
    rest = max(1, (cpus - sum(requested)) // max(1, len(jobs) - len(requested))) if pinned else cpus
    shares: list[CpuShare] = []
    first = 0
    for t, variant in jobs:
        # Of a trial over several nodes, which share all equally: what it gets on one of them.
        job_cpus = t.cpus // t.nodes if t.cpus else rest
        workers = t.workers
        if workers is None:
            loading = job_cpus if pinned else max(1, job_cpus // len(jobs))
            reads = variant.files != "none"
            node_workers = count_default_workers(
                loading, count_ranks(t) // t.nodes, choose_device(t, default_device)
            )
            workers = t.nodes * node_workers if reads else 0
        bound = pinned or t.cpus is not None
        shares.append(CpuShare(job_cpus, first if bound else None, workers))
        first += job_cpus if pinned else 0
    return shares


def make_solo_trial(job: PlannedTrial, share: CpuShare, cpus: int, default_device: str) -> Trial:
    """The trial that a job of a group is compared with: by itself, with the same workers and as many CPUs.

    What it would get by itself anyway stays open, so that it is the trial that others may have measured already.
    """
    t = replace(job[0], copies=1, cpu_sharing="shared")
    if t.cpus is None and share.cpus != cpus:
        t = replace(t, cpus=share.cpus)
    (by_itself,) = divide_cpus([(t, job[1])], cpus, default_device)
    if by_itself.workers != share.workers:
        t = replace(t, workers=share.workers)
    return t


def count_ranks(t: Trial) -> int:
    """Ranks of a trial. What processes a command starts is its own affair."""
    if t.command is not None:
        return 1
    return t.devices if catalog.STRATEGIES[t.strategy].process_per_device else 1


def count_default_workers(cpus: int, ranks: int, device: str) -> int:
    """Loader workers of a trial that names no number: its CPUs, divided among its ranks.

    On a CPU the training needs those CPUs itself: a quarter of them loads.
    """
    share = cpus // ranks if device == "cuda" else cpus // (4 * ranks)
    return max(1, share) * ranks
