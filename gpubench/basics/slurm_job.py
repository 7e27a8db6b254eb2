"""The SLURM job that a process belongs to: which one, and whether others share its work.

SLURM's words: https://slurm.schedmd.com/sbatch.html (output environment variables).
"""

from __future__ import annotations

import os
from collections.abc import Mapping


def make_slurm_run_id(environ: Mapping[str, str] = os.environ) -> str:
    """`CLUSTER/ID.RESTARTS`, which no other run of any job has; empty outside of SLURM."""
    number = environ.get("SLURM_JOB_ID", "")
    if not number:
        return ""
    return f"{environ.get('SLURM_CLUSTER_NAME', '')}/{number}.{environ.get('SLURM_RESTART_COUNT', '0')}"


def has_concurrent_runs(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether others may run the same command: in an array, beside other tasks of a step, after a requeue."""
    if "SLURM_ARRAY_TASK_ID" in environ or environ.get("SLURM_RESTART_COUNT", "0") != "0":
        return True
    return is_one_of_several_tasks(environ)


def is_one_of_several_tasks(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is one of the tasks that one `srun` has started."""
    in_step = "SLURM_STEP_ID" in environ and "SLURM_PROCID" in environ
    return in_step and environ.get("SLURM_STEP_NUM_TASKS", "1") not in ("", "1")


def is_earlier_slurm_run(job: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is an earlier run of this process's job. `job`: as `make_slurm_run_id` gives it."""
    now = make_slurm_run_id(environ)
    (name, _, restarts), (name_now, _, restarts_now) = job.rpartition("."), now.rpartition(".")
    is_counted = restarts.isdecimal() and restarts_now.isdecimal()
    return bool(name) and name == name_now and is_counted and int(restarts) < int(restarts_now)
