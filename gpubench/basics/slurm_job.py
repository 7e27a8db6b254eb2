"""The SLURM job that a process belongs to: which one, whether it shares its work, whether one has ended.

SLURM's words: https://slurm.schedmd.com/sbatch.html (output environment variables), https://slurm.schedmd.com/squeue.html
"""

from __future__ import annotations

import functools
import os
import subprocess
import time
from collections.abc import Mapping

_ANSWER_S = 20.0
_KNOWN_S = 30.0
"""How long an answer is taken for true."""


def own_job(environ: Mapping[str, str] = os.environ) -> str:
    """`CLUSTER/ID.RESTARTS`, which no other run of any job has; empty outside of SLURM."""
    number = environ.get("SLURM_JOB_ID", "")
    if not number:
        return ""
    return f"{environ.get('SLURM_CLUSTER_NAME', '')}/{number}.{environ.get('SLURM_RESTART_COUNT', '0')}"


def has_company(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether others may run the same command: in an array, beside other tasks of a step, after a requeue."""
    if "SLURM_ARRAY_TASK_ID" in environ or environ.get("SLURM_RESTART_COUNT", "0") != "0":
        return True
    return is_one_of_several_tasks(environ)


def is_one_of_several_tasks(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is one of the tasks that one `srun` has started."""
    in_step = "SLURM_STEP_ID" in environ and "SLURM_PROCID" in environ
    return in_step and environ.get("SLURM_STEP_NUM_TASKS", "1") not in ("", "1")


def has_ended(job: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether SLURM knows for certain that this run of a job is over. `job`: as `own_job` tells it.

    False where it can't be asked, or is another cluster's, and of an earlier run of a job that runs again elsewhere.
    """
    cluster, _, rest = job.partition("/")
    number, _, restarts = rest.partition(".")
    if not number.isdecimal() or cluster != environ.get("SLURM_CLUSTER_NAME", ""):
        return False
    if number == environ.get("SLURM_JOB_ID"):
        own = environ.get("SLURM_RESTART_COUNT", "0")
        return restarts.isdecimal() and own.isdecimal() and int(restarts) < int(own)
    living = living_jobs(int(time.monotonic() / _KNOWN_S))
    return living is not None and number not in living


@functools.lru_cache(maxsize=1)
def living_jobs(period: int) -> frozenset[str] | None:  # noqa: ARG001 - for the cache
    """Ids of all jobs that wait or run and that this user may see, each task of an array by its own; None where SLURM
    does not tell.

    One question for all of them, and not more often than every half minute: a controller serves many. `period`: which
    half minute it is.
    """
    try:
        asked = subprocess.run(
            ["squeue", "--noheader", "--all", "--array", "--format=%A"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return frozenset(asked.stdout.split()) if asked.returncode == 0 else None
