"""What SLURM's environment says of a job."""

from __future__ import annotations

import pytest

from gpubench.basics.slurm_job import has_concurrent_runs, is_earlier_slurm_run, make_slurm_run_id


def test_a_job_s_name_tells_each_of_its_runs_apart() -> None:
    assert make_slurm_run_id({}) == ""
    assert make_slurm_run_id({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c"}) == "c/7.0"
    assert (
        make_slurm_run_id({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c", "SLURM_RESTART_COUNT": "2"})
        == "c/7.2"
    )


@pytest.mark.parametrize(
    ("environ", "has"),
    [
        ({}, False),
        ({"SLURM_JOB_ID": "7"}, False),
        ({"SLURM_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}, True),
        ({"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1"}, True),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, True),
        ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, False),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, False),  # a batch script, which runs once
    ],
)
def test_who_is_one_of_several(environ: dict[str, str], has: bool) -> None:
    assert has_concurrent_runs(environ) is has


def test_an_earlier_run_of_one_s_own_job_is_over() -> None:
    environ = {"SLURM_CLUSTER_NAME": "c", "SLURM_JOB_ID": "8", "SLURM_RESTART_COUNT": "2"}
    assert is_earlier_slurm_run("c/8.1", environ)
    for other in ("c/8.2", "c/7.1", "d/8.1", "c/8.x", ""):
        assert not is_earlier_slurm_run(other, environ)
    assert not is_earlier_slurm_run("c/8.1", {})
