"""The SLURM job that a process belongs to: which one, whether it shares its work, whether one has ended.

SLURM's words: https://slurm.schedmd.com/sbatch.html (output environment variables), and those of its controller, which
is asked by its own program: https://slurm.schedmd.com/squeue.html
"""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Callable, Collection, Mapping

_KNOWN_S = 30.0
"""How long an answer is taken for true."""
LIMIT_S = 20.0
"""A controller that is busy with thousands of jobs takes seconds to answer."""
_USERS_OWN = ("SQUEUE_", "SLURM_CLUSTERS")
"""What users set for what they read themselves: a partition of theirs, say, would hide the jobs of all others."""


def current_job(environ: Mapping[str, str] = os.environ) -> str:
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
    """Whether SLURM knows for certain that this run of a job is over. `job`: as `current_job` tells it.

    False where it can't be asked, or is another cluster's, and of an earlier run of a job that runs again elsewhere.
    """
    cluster, _, rest = job.partition("/")
    number, _, restarts = rest.partition(".")
    if not number.isdecimal() or cluster != environ.get("SLURM_CLUSTER_NAME", ""):
        return False
    if number == environ.get("SLURM_JOB_ID"):
        restarts_now = environ.get("SLURM_RESTART_COUNT", "0")
        return restarts.isdecimal() and restarts_now.isdecimal() and int(restarts) < int(restarts_now)
    return _live_jobs.lacks(number, job)


class NoAnswerError(Exception):
    """It does not tell. The text says why."""


def squeue(*options: str) -> list[str]:
    """The lines that `squeue --noheader` prints with these options. Raises NoAnswerError."""
    try:
        done = subprocess.run(
            ["squeue", "--noheader", *options],
            env={name: value for name, value in os.environ.items() if not name.startswith(_USERS_OWN)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except OSError as error:
        raise NoAnswerError(f"squeue can't be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"squeue did not answer within {LIMIT_S:g} s") from None
    if done.returncode:
        errors = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise NoAnswerError(f"squeue: {errors[-1]}")
    return done.stdout.split("\n")[:-1]


class LiveJobs:
    """Which jobs wait or run, as far as this user may see: one question for all of them, and not more often than every
    half minute, for a controller serves many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at = -math.inf
        self._answers = 0
        self._ids: Collection[str] | None = None
        """None: SLURM does not tell."""
        self._missed: dict[str, int] = {}
        """Run of a job that was not listed -> how many answers there were when it was first asked after."""

    def lacks(self, number: str, run: str) -> bool:
        """Whether no job of this number is left. `run`: the run of it that somebody has seen at work.

        An answer that is older than that sight says nothing: the job may have begun since. An array's tasks get their
        numbers only then.
        """
        now = self._clock()
        before = self._missed.setdefault(run, self._answers)
        if now - self._asked_at >= _KNOWN_S:
            self._asked_at = now
            self._answers += 1
            try:
                self._ids = set(squeue("--all", "--array", "--format=%A"))
            except NoAnswerError:
                self._ids = None
        if self._ids is None:
            return False
        if number in self._ids:
            del self._missed[run]
            return False
        return before < self._answers


_live_jobs = LiveJobs()
