"""The SLURM job that this process runs in: which it is, and how long it may still run."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.basics.quoted import quote_value
from gpubench.schema.missing import Unmeasured

GPU_VARIABLES = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS", "SLURM_GPUS_ON_NODE")
_TIME = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(?:(\d{1,9}):)?(\d{1,9})", re.ASCII)
"""SLURM's own form of a time: `2:59`, `1:00:00`, `1-12:00:00`."""


ASK_LIMIT_S = 20.0
"""A controller that is busy with thousands of jobs takes seconds to answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlurmAllocation:
    """What SLURM says of the job in the environment of its processes."""

    job_id: str
    node: str | None
    partition: str | None
    cpus: int | None = None
    """CPUs of this task; of the whole job on this node, where it has no tasks."""
    memory_mib: int | None = None
    """Memory of the job on this node."""
    gpus: str = ""
    """What says that it was given GPUs: `SLURM_JOB_GPUS=0,1`; empty where nothing does."""

    @property
    def job_label(self) -> str:
        """What sentences name it."""
        return f"SLURM job {self.job_id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTimeLimit:
    """Seconds that a job may still run, and those that it may run in all."""

    left_s: float
    whole_s: float


def find_slurm_allocation(environ: Mapping[str, str]) -> SlurmAllocation | None:
    """None outside a job."""
    if not (job_id := environ.get("SLURM_JOB_ID")):
        return None
    return SlurmAllocation(
        job_id=job_id,
        node=environ.get("SLURMD_NODENAME") or None,
        partition=environ.get("SLURM_JOB_PARTITION") or None,
        cpus=_compute_task_cpus(environ),
        memory_mib=_compute_granted_memory_mib(environ),
        gpus=next((f"{name}={environ[name]}" for name in GPU_VARIABLES if environ.get(name)), ""),
    )


def _compute_task_cpus(environ: Mapping[str, str]) -> int | None:
    """As was asked for a task; else each task's share of what the job has on this node."""
    if (cpus := _parse_positive_variable(environ, "SLURM_CPUS_PER_TASK")) is not None:
        return cpus
    if (node_cpus := _parse_positive_variable(environ, "SLURM_CPUS_ON_NODE")) is None:
        return None
    tasks = _parse_tasks_on_node(environ) if "SLURM_STEP_ID" in environ else 1
    return max(1, node_cpus // (tasks or 1))


def _parse_tasks_on_node(environ: Mapping[str, str]) -> int | None:
    """Of `2(x3),1`, which is one for each node of the step, this node's."""
    number = _parse_positive_variable(environ, "SLURM_NODEID") or 0
    for tasks, times in re.findall(
        r"(\d{1,9})(?:\(x(\d{1,9})\))?", environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    ):
        if (number := number - int(times or 1)) < 0:
            return int(tasks)
    return None


def _compute_granted_memory_mib(environ: Mapping[str, str]) -> int | None:
    """None where none was asked for, which is all of the node's: SLURM then says 0, or nothing."""
    if (of_node := _parse_positive_variable(environ, "SLURM_MEM_PER_NODE")) is not None:
        return of_node
    of_cpu, cpus = (
        _parse_positive_variable(environ, "SLURM_MEM_PER_CPU"),
        _parse_positive_variable(environ, "SLURM_CPUS_ON_NODE"),
    )
    return of_cpu * cpus if of_cpu and cpus else None


def _parse_positive_variable(environ: Mapping[str, str], name: str) -> int | None:
    """A number above 0."""
    match = re.fullmatch(r"(\d{1,9})", environ.get(name, ""), re.ASCII)
    return int(match[1]) or None if match else None


def query_squeue_times(job_id: str) -> str:
    """Of each job of that id: its own id, the time that is left and its limit, as `squeue` tells them, a line each.

    The last task of an array has the array's id, by which `squeue` names all of its tasks. Raises Unmeasured, in its
    words.
    """
    # What users set for what they read themselves, a partition of theirs, say, may hide the job.
    users = ("SQUEUE_", "SLURM_CLUSTERS")
    try:
        done = subprocess.run(
            ["squeue", "--noheader", "--array", f"--jobs={job_id}", "--format=%A|%L|%l"],
            env={name: value for name, value in os.environ.items() if not name.startswith(users)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ASK_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unmeasured(f"squeue can't be asked: {error}") from None
    if done.returncode:
        raise Unmeasured(
            f"squeue: {(done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1]}"
        )
    return done.stdout.strip()


def find_job_time_limit(
    environ: Mapping[str, str],
    job_id: str,
    *,
    ask: Callable[[str], str] = query_squeue_times,
    now: Callable[[], float] = time.time,
) -> JobTimeLimit | None:
    """How long the job may still run; None: for ever. Raises Unmeasured where SLURM does not tell.

    Newer versions tell both ends of the job in the environment; others are asked, once.
    """
    ends, began = environ.get("SLURM_JOB_END_TIME", ""), environ.get("SLURM_JOB_START_TIME", "")
    if ends.isdigit() and began.isdigit():
        return JobTimeLimit(left_s=int(ends) - now(), whole_s=float(int(ends) - int(began)))
    answer = ask(job_id)
    match _parse_squeue_times(job_id, answer):
        case [_, "UNLIMITED"]:
            return None
        case [left, whole] if (left_s := parse_slurm_time(left)) is not None and (
            whole_s := parse_slurm_time(whole)
        ):
            return JobTimeLimit(left_s=left_s, whole_s=whole_s)
    raise Unmeasured(f"squeue said {quote_value(answer)}")


def _parse_squeue_times(job_id: str, answer: str) -> Sequence[str]:
    """What `squeue` said of one job; nothing where it has no line, or several."""
    lines = [[field.strip() for field in line.split("|")] for line in answer.splitlines()]
    fields_of_job = [fields for number, *fields in lines if number == job_id]
    return fields_of_job[0] if len(fields_of_job) == 1 else []


def parse_slurm_time(text: str) -> float | None:
    """`2:59`, `1:00:00`, `1-12:00:00` as seconds; None for anything else."""
    if (match := _TIME.fullmatch(text)) is None:
        return None
    days, *clock = match.groups()
    parts = [int(part) for part in clock if part is not None]
    if days is None and len(parts) == 1:
        return None  # SLURM never says seconds alone
    total = 0
    for part in parts:
        total = 60 * total + part
    return float(86400 * int(days or 0) + total)
