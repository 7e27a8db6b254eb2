"""How much jobs slow each other down, worked out from what each needs when it runs alone.

Alone, a job uses a part of each resource: seconds per epoch / (epoch time x capacity). Where CPUs are asked for more
than there is, all jobs on them slow down alike, by what is asked for in sum: loaders, too. A GPU is divided fairly: a
job gets what it wants up to its fair share, and what others leave over is shared again. A job runs at the smallest pace
that one of its resources gives it. Processes that take turns on a GPU lose SLICING of its time.

What is not in it: memory and its bandwidth, caches, PCIe, waiting for each other where nothing is full, and that a job
which is held up by one resource leaves more of its others. tests/benchmarks/README.md compares it with models that have
more to them, and with one that has less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from gpubench.core.prediction import NoPrediction, PredictedGroup, PredictedJob, PredictionNote

SLICING = 0.115
"""Part of a GPU's time that goes to switching between the processes that share it, where they take turns.

From a first run on an H200 (driver 580, no MPS) with mobilenet_v2 and resnet50, bf16, on resident batches: jobs whose
busy time alone summed up to 1.1 to 2.8 times what there is came, together, to 0.88 to 0.90 of it. Measured anew since
(results/h200-copies-2026, results/h200-pairs-2026): 0.88 to 0.89. Under MPS they don't take turns.
"""
HELD = 1e-6
"""A job that loses less of its pace than this waits for nothing."""
Resource: TypeAlias = tuple[str, Any]
"""`("gpu", 0)`: which GPU; `("cpu", frozenset({0, 1}))`: which CPUs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDemand:
    """What an epoch of a job takes when the job runs alone."""

    epoch_time_s: float
    cpu_s: float | None
    """CPU seconds of its process tree. None: not known."""
    gpu_s: float | None
    """Seconds in which each of its GPUs has something to do for it. None: not known, or no GPU."""
    gpus: tuple[int, ...]
    cpus: float
    """CPUs' worth of time that it may use."""
    cpu_ids: frozenset[int]
    """Jobs on equal ones share them; they may also lie within another job's."""
    has_unmeasured_wait: bool = False
    """Whether it has several ranks whose wait for each other's gradients was not measured."""


def predict_slowdowns(
    group: str, demands: Mapping[str, JobDemand], slicing: float = SLICING
) -> PredictedGroup | NoPrediction:
    """What two jobs or more with these demands do to each other when they run at the same time.

    `demands`: of each job, by its name. `slicing`: part of a shared GPU's time that is lost. No prediction where the
    need of a job for what it shares is not known: it would be taken for nothing.
    """
    capacity: dict[Resource, float] = {}
    for demand in demands.values():
        capacity["cpu", demand.cpu_ids] = max(demand.cpus, capacity.get(("cpu", demand.cpu_ids), 0.0))
        capacity |= {("gpu", gpu): 1.0 for gpu in demand.gpus}
    # Work on the CPUs is work on every set of CPUs that a job's own lie in: of each, there is no more than it has.
    needs: list[dict[Resource, float | None]] = [
        {
            (kind, which): demand.cpu_s if kind == "cpu" else demand.gpu_s
            for kind, which in capacity
            if (demand.cpu_ids <= which if kind == "cpu" else which in demand.gpus)
        }
        for demand in demands.values()
    ]
    shared = {r: seconds for r in capacity if len(seconds := [need[r] for need in needs if r in need]) > 1}
    if unknown := sorted({kind for (kind, _), seconds in shared.items() if None in seconds}):
        return NoPrediction(name=group, why=(PredictionNote("unknown-needs", {"resources": tuple(unknown)}),))
    uses = [
        {r: min(1.0, seconds / (demand.epoch_time_s * capacity[r])) for r, seconds in need.items() if seconds}
        for demand, need in zip(demands.values(), needs, strict=True)
    ]
    paces: list[dict[Resource, float]] = [{} for _ in uses]
    for resource in capacity:
        wants = [use[resource] for use in uses if resource in use]
        share = compute_fair_share(wants, 1.0 - slicing if len(wants) > 1 else 1.0)
        for pace, use in zip(paces, uses, strict=True):
            if want := use.get(resource):
                pace[resource] = min(1.0, 1 / math.fsum(wants) if resource[0] == "cpu" else share / want)
    slowest = [min(pace.values(), default=1.0) for pace in paces]
    waits_for = {
        resource[0]
        for pace, least in zip(paces, slowest, strict=True)
        for resource, allowed in pace.items()
        if least < 1 - HELD and allowed <= least + HELD
    }
    sets = [resource for resource in shared if resource[0] == "cpu"]
    names = {resource: "cpu" if len(sets) == 1 else f"cpu {number}" for number, resource in enumerate(sets)}
    return PredictedGroup(
        name=group,
        jobs=tuple(
            PredictedJob(name=name, alone_s=demand.epoch_time_s, slowdown=1 / pace)
            for (name, demand), pace in zip(demands.items(), slowest, strict=True)
        ),
        waits_for=tuple(sorted(waits_for)),
        least_s={
            names.get(resource, f"gpu {resource[1]}"): math.fsum(s for s in seconds if s is not None)
            / capacity[resource]
            for resource, seconds in shared.items()
        },
        is_upper_bound="gpu" in waits_for
        and any(
            d.has_unmeasured_wait and any(("gpu", gpu) in shared for gpu in d.gpus) for d in demands.values()
        ),
    )


def compute_fair_share(wants: Iterable[float], available: float = 1.0) -> float:
    """What each may have at most, so that all that is available of one resource is given away.

    `wants`: parts of the resource. Infinite where all get what they want.
    """
    ordered = sorted(wants)
    for place, want in enumerate(ordered):
        share = available / (len(ordered) - place)
        if want > share:
            return share
        available -= want
    return math.inf
