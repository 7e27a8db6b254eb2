"""Which planned units need not run here: they want more than there is, or can't fit into memory. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.plan.plan import Job, Unit
from gpubench.plan.shares import choose_device
from gpubench.schema.trial import Trial
from gpubench.schema.trial_fields import select_fields

NEEDS = "needs "
"""How the reason begins for a trial that wants more than the machine has."""

_CHAIN_FIELDS = select_fields(lambda about: about.memory == "changes")

Chain = tuple[Any, ...]


def make_memory_chain_key(t: Trial, definition: Mapping[str, Any]) -> Chain:
    """What trials share that differ in nothing but the batch size and what takes no memory: a chain of growing batches.

    `definition`: of the trial's variant, which may mean something else in another experiment.
    """
    return (json.dumps(definition, sort_keys=True), *(getattr(t, name) for name in _CHAIN_FIELDS))


def _make_job_chain_key(job: Job) -> Chain:
    return make_memory_chain_key(job.trial, job.variant.make_definition())


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """How many GPUs and CPUs there are on a node, and how many nodes."""

    gpus: int
    cpus: int
    shows: str = "this machine shows"
    """What stands before the number of GPUs."""
    nodes: int | None = None
    """None: not known, and so no reason to skip anything."""


Fit = tuple[Chain, int]
"""The chain and the batch size of a job."""


@dataclass(slots=True)
class KnownOutOfMemory:
    """What ran out of GPU memory on this machine."""

    chains: dict[Chain, int] = field(default_factory=dict)
    """Chain -> the smallest global batch that ran out of memory alone."""
    groups: list[tuple[Fit, ...]] = field(default_factory=list)
    """Jobs that did not fit together."""

    def add_chain(self, chain: Chain, batch_size: int) -> None:
        self.chains[chain] = min(batch_size, self.chains.get(chain, batch_size))

    def add_unit(self, unit: Unit) -> None:
        """A unit that has run out of memory."""
        if unit.is_group:
            self.groups.append(tuple((_make_job_chain_key(job), job.trial.batch_size) for job in unit.jobs))
        else:
            self.add_chain(_make_job_chain_key(unit.jobs[0]), unit.jobs[0].trial.batch_size)

    def find_oom_reason(self, unit: Unit) -> str | None:
        """Why this unit can't fit either; None where it may."""
        if not unit.is_group:
            (job,) = unit.jobs
            smallest = self.chains.get(_make_job_chain_key(job)) if self.chains else None
            if smallest is None or job.trial.batch_size <= smallest:
                return None
            return f"batch {smallest} of the same configuration was out of memory"
        for job in unit.jobs:
            assert job.membership is not None
            smallest = self.chains.get(_make_job_chain_key(job.membership.solo))
            if smallest is not None and job.trial.batch_size >= smallest:
                return f"job {job.membership.name}: batch {smallest} of the same configuration was out of memory alone"
        mine = [(_make_job_chain_key(job), job.trial.batch_size) for job in unit.jobs]
        for group in self.groups:
            if _has_larger_jobs(mine, group) and sorted(mine, key=repr) != sorted(group, key=repr):
                return f"{len(group)} jobs that need no more were out of memory together"
        return None


def _has_larger_jobs(jobs: Sequence[Fit], fewer: Sequence[Fit]) -> bool:
    """Whether each of `fewer` has a job of its own among `jobs` that needs at least as much."""
    free = sorted(jobs, key=lambda fit: fit[1])
    for chain, batch in sorted(fewer, key=lambda fit: -fit[1]):
        match = next((fit for fit in reversed(free) if fit[0] == chain and fit[1] >= batch), None)
        if match is None:
            return False
        free.remove(match)
    return True


def find_skip_reason(unit: Unit, oom: KnownOutOfMemory, room: NodeCapacity | None, device: str) -> str | None:
    """Why a planned unit need not run here.

    `room`: None where it plays no part (reading a folder elsewhere). `device`: what `auto` means.
    """
    if reason := oom.find_oom_reason(unit):
        return reason
    if room is None:
        return None
    trials = [job.trial for job in unit.jobs]
    for t in trials:
        if lacks := _describe_lack(t, room, device):
            return lacks
    first = unit.jobs[0].trial
    job_cpus = room.cpus // len(unit.jobs)  # jobs together have their CPUs pinned then
    if any(t.launch_cpu == "one" and (t.cpus or job_cpus) < 2 * (t.devices // t.nodes) for t in trials):
        return f"{NEEDS}two CPUs for each GPU with launch_cpu one, {room.cpus} may be used"
    wanted = sum(job.trial.cpus or 1 for job in unit.jobs)
    if unit.is_group and first.cpu_sharing == "pinned" and wanted > room.cpus:
        return f"{NEEDS}{wanted} CPUs for jobs pinned to their own, {room.cpus} may be used"
    return None


def _describe_lack(t: Trial, room: NodeCapacity, device: str) -> str | None:
    if room.nodes is not None and t.nodes > room.nodes:
        return f"{NEEDS}{t.nodes} nodes, there {'is' if room.nodes == 1 else 'are'} {room.nodes}"
    on_each_node = " on each node" if t.nodes > 1 else ""
    if choose_device(t, device) == "cuda":
        gpus = max(t.gpu_ids) + 1 if t.gpu_ids else t.devices // t.nodes
        if gpus > room.gpus:
            return f"{NEEDS}{gpus} GPU{'s' if gpus > 1 else ''}{on_each_node}, {room.shows} {room.gpus}"
    cpus = None if t.cpus is None else t.cpus // t.nodes
    if cpus is not None and cpus > room.cpus:
        return f"{NEEDS}{cpus} CPUs{on_each_node}, {room.cpus} may be used"
    return None
