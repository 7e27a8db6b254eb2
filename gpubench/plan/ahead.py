"""Which units of a further round are made ready together, ahead of their turns. Pure.

A process's first step is mostly its kernels being compiled, on one CPU core, and a GPU is idle meanwhile: several
processes do that side by side while none is measured, and wait. What they take is known from the first round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.plan.plan import Unit
from gpubench.plan.resolve import Resolved
from gpubench.schema.record import Record

THREADS = {"eager": 2, "compile": 8}
"""By execution: CPUs that a rank keeps busy while it is made ready. Passes forward and backward have a thread each;
torch.compile's own processes come on top."""
ROOM = 0.8
"""Share of a GPU's memory that trials may hold together. What one of them needs more in its turn is in its peak."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """What one trial takes while it is made ready, and at most in its turn."""

    gpus: tuple[int, ...]
    mib: float
    """Peak of the first round on its fullest GPU, by the driver."""
    cpus: int
    processes: int


def need(unit: Unit, resolved: Sequence[Resolved], first: Mapping[str, Record]) -> Need | None:
    """What a unit takes; None where it is not made ready ahead. `first`: trial id -> its attempt in the first round.

    Not made ready: jobs of groups, which wait for each other anyway; CPU trials, which share CPUs and memory with
    whoever is measured; CUDA graphs, whose first steps are captured; what is told of a first epoch, or of a memory cap;
    cuDNN's own timing of its algorithms, which neighbours would disturb; trials over several nodes; and whatever took
    memory that the driver did not tell.
    """
    (job, own), *others = zip(unit.jobs, resolved, strict=True)
    t, record = job.trial, first.get(job.trial_id)
    if (
        others
        or t.nodes > 1
        or job.membership is not None
        or own.device != "cuda"
        or record is None
        or record.status != "ok"
    ):
        return None
    if t.execution not in THREADS or t.until_top1 is not None or t.gpu_mem_cap_mib is not None:
        return None
    mib = record.result.gpu_mem_mib
    if t.cudnn_benchmark or mib is None or record.result.gpu_mem_source != "nvml-process":
        return None
    return Need(gpus=own.gpu_ids, mib=mib, cpus=own.processes * THREADS[t.execution], processes=own.processes)


def together(needs: Sequence[Need | None], gpu_mib: Mapping[int, int], cpus: int) -> int:
    """How many of the next units, in their order, are made ready together; 0 where that would be one alone.

    `gpu_mib`: number of a GPU -> its memory. `cpus`: those that trials may use.
    """
    held = dict.fromkeys(gpu_mib, 0.0)
    count = 0
    for one in needs:
        if one is None or one.cpus > cpus:
            break
        for gpu in one.gpus:
            held[gpu] += one.mib
        if any(mib > ROOM * gpu_mib[gpu] for gpu, mib in held.items()):
            break
        cpus -= one.cpus
        count += 1
    return count if count > 1 else 0
