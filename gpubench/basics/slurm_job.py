"""The SLURM job that a process belongs to: which one, whether it shares its work, whether one has ended.

SLURM's words: https://slurm.schedmd.com/sbatch.html (output environment variables), https://slurm.schedmd.com/scontrol.html
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

_ENDED = frozenset(
    [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    ]
)
_UNKNOWN_JOB = "Invalid job id specified"
_ANSWER_S = 20.0


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
    in_step = "SLURM_STEP_ID" in environ and "SLURM_PROCID" in environ
    return in_step and environ.get("SLURM_STEP_NUM_TASKS", "1") not in ("", "1")


def has_ended(job: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether SLURM knows for certain that this run of a job is over. `job`: as `own_job` tells it.

    False where it can't be asked, or is another cluster's.
    """
    cluster, _, rest = job.partition("/")
    number, _, restarts = rest.partition(".")
    if not number.isdecimal() or cluster != environ.get("SLURM_CLUSTER_NAME", ""):
        return False
    try:
        asked = subprocess.run(
            ["scontrol", "show", "job", "-o", number],
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    if asked.returncode != 0:
        return _UNKNOWN_JOB in asked.stderr
    told = dict(re.findall(r"(JobState|Restarts)=(\S+)", asked.stdout))
    later = told.get("Restarts", "0").isdecimal() and int(told.get("Restarts", "0")) > int(restarts or 0)
    return later or told.get("JobState", "") in _ENDED
