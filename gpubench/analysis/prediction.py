"""How much jobs will slow each other down, worked out from how each runs alone. Pure.

Alone, a job uses a part of each resource: seconds per epoch / (epoch time × capacity). Where CPUs are asked for more
than there is, all jobs on them slow down alike, by what is asked for in sum. A GPU is divided fairly: a job gets what
it wants up to its fair share, and what others leave over is shared again. A job runs at the smallest pace that one of
its resources gives it.

Of the time in which a GPU is busy, waiting for other ranks' gradients does not count (`gradient_wait`). Processes that
take turns on a GPU lose SLICING of its time. What is not in it: memory and its bandwidth, caches, PCIe, waiting for
each other where nothing is full, and that a job which is held up by one resource leaves more of its others.

docs/side-by-side.md compares it with models that have more to them, and with one that has less.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpubench.analysis.gradient_wait import Wait, gradient_wait
from gpubench.analysis.slowdown import overlap_gain, sharing_word
from gpubench.schema import catalog
from gpubench.schema.row import Row

SLICING = 0.115
"""Part of a GPU's time that goes to switching between the processes that share it, where they take turns.

From a first run on an H200 (driver 580, no MPS) with mobilenet_v2 and resnet50, bf16, on resident batches: jobs whose
busy time alone summed up to 1.1 to 2.8 times what there is came, together, to 0.88 to 0.90 of it. Measured anew since
(results/h200-copies-2026, results/h200-pairs-2026): 0.88 to 0.89. Under MPS they don't take turns.
"""

HELD = 1e-6
"""A job that loses less of its pace than this waits for nothing."""

Resource = tuple[str, Hashable]
"""`("gpu", 0)`: which GPU; `("cpu", "shared")`: which set of CPUs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What an epoch of a job takes when the job runs alone."""

    epoch_time_s: float
    cpu_s: float | None
    """CPU seconds of its process tree. None: not known."""
    gpu_s: float | None
    """Busy seconds of each of its GPUs. None: not known, or no GPU."""
    gpus: tuple[int, ...]
    """Which."""
    cpus: float
    """CPUs' worth of time that it may use."""
    cpu_set: Hashable
    """Which CPUs: jobs with equal ones share them. A frozenset of numbers may also lie within another job's."""
    ranks: int = 1
    wait: Wait | None = None
    """What of `gpu_s` only waits for other ranks' gradients. None: not known, or it has no other ranks."""

    @property
    def gpu_work_s(self) -> float | None:
        """Seconds an epoch in which each of its GPUs has something to do for it. None: not known, or no GPU."""
        if self.gpu_s is None or self.wait is None:
            return self.gpu_s
        return self.gpu_s * (1 - self.wait.part)


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """What jobs will do to each other."""

    slowdowns: tuple[float, ...]
    """How many times as long as alone each job takes, in their order; never below 1."""
    overlap_gain: float
    verdict: str
    limits: tuple[str, ...]
    """`cpu`, `gpu`: what some job will have to wait for."""
    rounds: dict[str, float]
    """Shared resource -> the least s that it takes for one epoch of each job that uses it.

    `gpu 0` by the GPU's number; `cpu`, or `cpu 0`, `cpu 1` where jobs share several sets of CPUs, in their order.
    Left out where the need of one of the jobs is not known.
    """
    unknown: tuple[str, ...]
    """What jobs share and is not known of one of them, in words. The prediction goes on as if it were nothing."""
    at_most: bool = False
    """Whether it may well be too much: ranks keep a GPU busy while they wait for each other's gradients, that wait
    costs their neighbours on the GPU little, and how long it is was not measured."""
    waits: tuple[Wait | None, ...] = ()
    """What of each job's busy time on GPUs that it shares counts as waiting for gradients, in their order. None: it
    has no other ranks, or shares no GPU, or that is not known."""


def demand(
    row: Row, *, gpus: Sequence[int], cpus: float, cpu_set: Hashable, others: Iterable[Row] = ()
) -> Demand | None:
    """What a row of a trial alone says of it; None without an epoch time.

    `gpus`, `cpus`, `cpu_set`: where the job is to run beside others, on as many GPUs and CPUs as alone. `others`: rows
    of the same machine, which may tell how long its ranks wait for each other.
    """
    time = row.epoch_time_s
    if not time:
        return None
    busy = row.gpu_busy_s_per_epoch
    ranks = _ranks(row, len(gpus))
    return Demand(
        epoch_time_s=time,
        cpu_s=row.cpu_s_per_epoch,
        gpu_s=busy / len(gpus) if gpus and busy is not None else None,
        gpus=tuple(gpus),
        cpus=cpus,
        cpu_set=cpu_set,
        ranks=ranks,
        wait=gradient_wait(row, others) if gpus and ranks > 1 else None,
    )


def predict(demands: Sequence[Demand | None], *, slicing: float = SLICING) -> Prediction | None:
    """What jobs with these demands do to each other when they run at the same time.

    `slicing`: part of a shared GPU's time that is lost. None for fewer than two jobs, and where one of them is not
    known.
    """
    known = [one for one in demands if one is not None]
    if len(known) < 2 or len(known) < len(demands):
        return None
    needs = [_needs(one, known) for one in known]
    room = _capacities(known)
    uses = [
        {
            resource: min(1.0, seconds / (one.epoch_time_s * room[resource]))
            for resource, seconds in mine.items()
            if seconds
        }
        for one, mine in zip(known, needs, strict=True)
    ]
    held = _paces(uses, slicing)
    paces = [min(mine.values(), default=1.0) for mine in held]
    slowdowns = tuple(max(1.0, 1 / pace) for pace in paces)
    gain = overlap_gain(slowdowns)
    assert gain is not None, "there are two or more slowdowns, and all are known"
    shared = {
        r: [mine[r] for mine in needs if r in mine] for r in room if sum(r in mine for mine in needs) > 1
    }
    names = _names(shared)
    on_shared_gpus = [any(("gpu", gpu) in shared for gpu in one.gpus) for one in known]
    waited_for = {
        resource[0]
        for mine, pace in zip(held, paces, strict=True)
        for resource, allowed in mine.items()
        if pace < 1 - HELD and allowed <= pace + HELD
    }
    return Prediction(
        slowdowns=slowdowns,
        overlap_gain=gain,
        verdict=sharing_word(gain),
        limits=tuple(sorted(waited_for)),
        rounds={
            names[resource]: sum(s for s in seconds if s is not None) / room[resource]
            for resource, seconds in shared.items()
            if None not in seconds
        },
        unknown=tuple(
            words
            for kind, words in (("cpu", "CPU seconds an epoch"), ("gpu", "GPU seconds an epoch"))
            if any(None in seconds for resource, seconds in shared.items() if resource[0] == kind)
        ),
        at_most="gpu" in waited_for
        and any(
            on_shared and one.ranks > 1 and not (one.wait and one.wait.measured)
            for one, on_shared in zip(known, on_shared_gpus, strict=True)
        ),
        waits=tuple(
            one.wait if on_shared else None for one, on_shared in zip(known, on_shared_gpus, strict=True)
        ),
    )


def fair_share(wants: Iterable[float], available: float = 1.0) -> float:
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


def _paces(uses: Sequence[Mapping[Resource, float]], slicing: float) -> list[dict[Resource, float]]:
    """How fast each of its resources lets each job run; 1 is as fast as alone."""
    asked: dict[Resource, list[float]] = {}
    for mine in uses:
        for resource, use in mine.items():
            asked.setdefault(resource, []).append(use)
    alike = {resource: 1 / sum(parts) for resource, parts in asked.items() if resource[0] == "cpu"}
    shares = {
        resource: fair_share(parts, 1.0 - slicing if len(parts) > 1 else 1.0)
        for resource, parts in asked.items()
        if resource[0] == "gpu"
    }
    return [
        {r: min(1.0, alike[r] if r in alike else shares[r] / use) for r, use in mine.items()} for mine in uses
    ]


def _needs(one: Demand, all_jobs: Sequence[Demand]) -> dict[Resource, float | None]:
    """Resource -> seconds per epoch; None where that is not known.

    A job's work on the CPUs is work on every set of CPUs that its own lie in: of each, there is no more than it has.
    """
    sets = dict.fromkeys(other.cpu_set for other in all_jobs)
    cpus: dict[Resource, float | None] = {("cpu", s): one.cpu_s for s in sets if _within(one.cpu_set, s)}
    return {**cpus, **{("gpu", gpu): one.gpu_work_s for gpu in one.gpus}}


def _within(own: Hashable, other: Hashable) -> bool:
    if isinstance(own, frozenset) and isinstance(other, frozenset):
        return own <= other
    return own == other


def _capacities(demands: Sequence[Demand]) -> dict[Resource, float]:
    """Seconds of each resource that a second of time has."""
    found: dict[Resource, float] = {}
    for one in demands:
        resource = ("cpu", one.cpu_set)
        found[resource] = max(one.cpus, found.get(resource, 0.0))
        found |= {("gpu", gpu): 1.0 for gpu in one.gpus}
    return found


def _names(resources: Iterable[Resource]) -> dict[Resource, str]:
    sets = [r for r in resources if r[0] == "cpu"]
    names = {r: "cpu" if len(sets) == 1 else f"cpu {number}" for number, r in enumerate(sets)}
    return names | {r: f"gpu {r[1]}" for r in resources if r[0] == "gpu"}


def _ranks(row: Row, gpus: int) -> int:
    strategy = catalog.STRATEGIES.get(row.strategy or "")
    if gpus:
        return gpus if strategy and strategy.process_per_device else 1
    return row.ranks or 1


class Where(Protocol):
    """The GPUs and CPUs of a job; `resolve.Resolved` is one."""

    @property
    def gpu_ids(self) -> Sequence[int]: ...
    @property
    def cpus(self) -> float: ...
    @property
    def cpu_ids(self) -> Sequence[int]: ...


def predicted(
    alone: Sequence[Row], resolved: Sequence[Where], others: Sequence[Row] = ()
) -> tuple[Prediction | None, str | None]:
    """What rows of the trials alone say of them together, on these GPUs and CPUs; or why they say nothing.

    `others`: rows of the same machine, which may tell how long ranks wait for each other.
    """
    demands = [
        demand(solo, gpus=one.gpu_ids, cpus=one.cpus, cpu_set=frozenset(one.cpu_ids), others=others)
        for solo, one in zip(alone, resolved, strict=True)
    ]
    by_turns = any(solo.mps != "on" for solo in alone)
    made = predict(demands, slicing=SLICING if by_turns else 0.0)
    if made is None:
        return None, "an epoch time alone is not known"
    if made.unknown:  # the rest of it would be taken for nothing
        return None, f"not known of the trials alone: {', '.join(made.unknown)}"
    return made, None
