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
    assert f"#SBATCH --chdir={place.home}" in lines, "paths among the options of the sweep are of there"
    assert "2 units to run, roughly" in done.stderr
    assert not (place.home / "results").exists(), "nothing is made"


@pytest.mark.slow
def test_the_estimate_goes_by_what_is_stored_and_done(place: Place) -> None:
    options = (*TINY, "--variant", "synthetic", "--batch-size", "8,16")
    assert place.run("sweep", *TINY, "--variant", "synthetic", "--batch-size", "8").returncode == 0
    done = place.run("slurm", "--cpus-per-task", str(len(os.sched_getaffinity(0))), "--", *options)
    assert "1 unit to run, about" in done.stderr, done.stderr
    assert "#SBATCH --time=00:15:00" in done.stdout


def test_what_such_a_job_can_t_do_is_said_before_it_waits_in_a_queue(place: Place) -> None:
    experiment = place.home / "gpus.toml"
    experiment.write_text(
        'name = "gpus"\n[fixed]\nmodel = "lenet"\ndevice = "cuda"\nvariant = "synthetic"\n'
        "[axes]\ngpus = [1, 2]\n[run]\nrounds = 1\nepochs = 2\n"
    )
    none = place.run("slurm", "gpus.toml", "--time", "5")
    assert none.returncode == 0
    assert "2 of the plan would be skipped: needs 1 GPU, such a job has 0" in none.stderr
    one = place.run("slurm", "gpus.toml", "--gres=gpu:1", "--tasks", "4", "--time", "0:10")
    assert "1 unit to run, roughly" in one.stderr
    assert "needs 2 GPUs, such a" in one.stderr
    two = place.run("slurm", "gpus.toml", "--gres=gpu:2", "--tasks", "2", "--time", "1:00:00")
    assert two.stderr.count("gpubench: ") == 1, two.stderr
    # Two GPUs are fed as well as one, or their trials would be compared with starved ones.
    assert "#SBATCH --cpus-per-task=4\n" in one.stdout
    assert "#SBATCH --cpus-per-task=8\n" in two.stdout


def test_cpus_are_asked_for_by_task_or_by_gpu(place: Place) -> None:
    words = ("slurm", "--gres=gpu:2", "--cpus-per-gpu=3", "--time", "5")
    by_gpu = place.run(*words, "--", "--device", "cpu")
    assert by_gpu.returncode == 0
    assert "#SBATCH --cpus-per-gpu=3\n" in by_gpu.stdout
    assert "--cpus-per-task" not in by_gpu.stdout
    both = place.run(*words, "--cpus-per-task", "4", "--", "--device", "cpu")
    assert (both.returncode, both.stdout) == (2, "")
    assert "--cpus-per-gpu" in both.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("gpu",), 2, "'gpu' is neither an experiment file nor the value of an option"),
        (
            ("--batch-size", "8"),
            2,
            "--batch-size is an option of the sweep, and stands behind --: gpubench slurm … -- --batch-size=8",
        ),
        (("--", "-n"), 2, "with -n the job would measure nothing: ask gpubench sweep itself"),
        (("--", "--out", "x"), 2, "--out stands before --"),
        (("--", "a.toml"), 2, "a.toml: the experiment file stands before --"),
        (("--time", "2h", "--", *TINY), 2, "--time: '2h' is no time of SLURM's"),
        (("--submit", "--", *TINY), 4, "no sbatch on this machine"),
        (("--out", "runs-\udcff", "--", *TINY), 2, "runs-\\udcff is no UTF-8 text"),
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
