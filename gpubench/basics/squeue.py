"""What SLURM's controller is asked, by its own program: https://slurm.schedmd.com/squeue.html"""

from __future__ import annotations

import os
import subprocess

LIMIT_S = 20.0
"""A controller that is busy with thousands of jobs takes seconds to answer."""
_USERS_OWN = ("SQUEUE_", "SLURM_CLUSTERS")
"""What users set for what they read themselves: a partition of theirs, say, would hide the jobs of all others."""


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
