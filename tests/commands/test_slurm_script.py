"""`gpubench slurm` where there is no SLURM: what is printed, and what is refused. On one: tests/slurm/."""

from __future__ import annotations

import os

import pytest
from place import TINY, Place


def test_the_script_goes_to_stdout_and_the_rest_to_stderr(place: Place) -> None:
    done = place.run(
        "slurm", "--partition", "gpu", "--tasks", "3", "-A", "me", "--exclusive", "--",
        *TINY, "--batch-size", "8,16", "--set", "lr=0.1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "#!/bin/bash"
    assert {"#SBATCH --array=1-3", "#SBATCH --partition=gpu", "#SBATCH -A me", "#SBATCH --exclusive"} <= set(
        lines
    )
    (sweep,) = [line for line in lines if " sweep " in line]
    assert "--batch-size 8,16 --set lr=0.1" in sweep
    assert f"--out {place.home}/results/batch-size" in sweep
    assert "2 units to run, roughly" in done.stderr
    assert "--dependency=afterany:JOB" in done.stderr
    assert not (place.home / "results").exists(), "nothing is made"


def test_the_estimate_goes_by_what_is_stored_and_done(place: Place) -> None:
    options = (*TINY, "--variant", "synthetic", "--batch-size", "8,16")
    assert place.run("sweep", *TINY, "--variant", "synthetic", "--batch-size", "8").returncode == 0
    done = place.run("slurm", "--cpus-per-task", str(len(os.sched_getaffinity(0))), "--", *options)
    assert "1 unit to run, about" in done.stderr, done.stderr
    assert "#SBATCH --time=00:15:00" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("gpu",), 2, "'gpu' is neither an experiment file nor the value of an option"),
        (("none.toml",), 2, "none.toml"),
        (("--", "--out", "x"), 2, "--out stands before --"),
        (("--", "a.toml"), 2, "a.toml: the experiment file stands before --"),
        (("--", "--no-such-thing"), 2, "No such option: --no-such-thing"),
        (("--time", "2h", "--", *TINY), 2, "--time: '2h' is no time of SLURM's"),
        (("--tasks", "0"), 2, "--tasks must be at least 1"),
        (("--tasks", "2", "--tasks", "3"), 2, "--tasks is given twice"),
        (("--submit", "--", *TINY), 4, "no sbatch on this machine"),
    ],
)
def test_what_is_refused_is_said_in_one_line(
    place: Place, words: tuple[str, ...], code: int, said: str
) -> None:
    place.environment["PATH"] = "/nowhere"
    done = place.run("slurm", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
