"""What is known of the SLURM job that a process runs in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.node.allocation import (
    JobTimeLimit,
    SlurmAllocation,
    find_job_time_limit,
    find_slurm_allocation,
    parse_slurm_time,
)
from gpubench.schema.missing import Unmeasured


def test_outside_a_job_there_is_none() -> None:
    assert find_slurm_allocation({}) is None
    assert find_slurm_allocation({"SLURM_JOB_ID": ""}) is None


def test_the_environment_tells_job_node_and_partition() -> None:
    told = {"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n1", "SLURM_JOB_PARTITION": "gpu"}
    found = find_slurm_allocation(told)
    assert found == SlurmAllocation(job_id="12", node="n1", partition="gpu")
    assert found.job_label == "SLURM job 12"
    assert find_slurm_allocation({"SLURM_JOB_ID": "12"}) == SlurmAllocation(
        job_id="12", node=None, partition=None
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:05", 5), ("2:59", 179), ("1:00:00", 3600), ("1-12:00:01", 129601), ("10-00:00:00", 864000),
        ("UNLIMITED", None), ("INVALID", None), ("NOT_SET", None), ("", None), ("59", None), ("-1:00", None),
    ],
)  # fmt: skip
def test_slurm_s_times_are_read(text: str, expected: float | None) -> None:
    assert parse_slurm_time(text) == expected


def never_stop(job_id: str) -> str:
    raise AssertionError(f"job {job_id} was asked for")


def test_the_end_is_taken_from_the_environment_where_it_is_there() -> None:
    told = {"SLURM_JOB_START_TIME": "1000", "SLURM_JOB_END_TIME": "4600"}
    assert find_job_time_limit(told, "7", ask=never_stop, now=lambda: 1600.0) == JobTimeLimit(
        left_s=3000.0, whole_s=3600.0
    )


def test_else_squeue_is_asked_once() -> None:
    asked: list[str] = []

    def answer(job_id: str) -> str:
        asked.append(job_id)
        return f"{job_id}|50:00|1:00:00"

    assert find_job_time_limit({}, "7", ask=answer) == JobTimeLimit(left_s=3000.0, whole_s=3600.0)
    assert asked == ["7"]
    assert find_job_time_limit({"SLURM_JOB_END_TIME": "4600"}, "7", ask=answer) is not None
    # An end without a beginning does not tell how long the job is.
    assert asked == ["7", "7"]


def test_of_an_array_s_tasks_the_job_s_own_line_counts() -> None:
    """The last task has the array's id, and `squeue` then tells of all tasks."""
    said = "8|9:57|10:00\n7|4:00|5:00\n9|9:57|10:00"
    assert find_job_time_limit({}, "7", ask=lambda _: said) == JobTimeLimit(left_s=240.0, whole_s=300.0)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "7|INVALID|INVALID",
        "7|1:00",
        "7|x|y",
        "7|1:00|0:00",
        "1:00|2:00",
        "8|1:00|2:00",
        "7|1:00|2:00\n7|1:00|2:00",
    ],
)
def test_what_squeue_does_not_tell_is_not_made_up(said: str) -> None:
    with pytest.raises(Unmeasured, match="squeue said"):
        find_job_time_limit({}, "7", ask=lambda _: said)


@pytest.mark.parametrize("own", ["2", "8"])
def test_of_an_array_s_jobs_its_own_is_read(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last task of an array has the array's number, by which squeue tells of all its tasks."""
    program = tmp_path / "squeue"
    program.write_text("#!/bin/sh\nprintf '7|5:00|1:00:00\\n2|50:00|1:00:00\\n8|50:00|1:00:00\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_job_time_limit({}, own) == JobTimeLimit(left_s=3000.0, whole_s=3600.0)


@pytest.mark.parametrize(
    ("told", "cpus"),
    [
        ({}, None),
        ({"SLURM_CPUS_PER_TASK": "4", "SLURM_CPUS_ON_NODE": "16"}, 4),
        ({"SLURM_CPUS_ON_NODE": "16"}, 16),
        ({"SLURM_CPUS_ON_NODE": "16", "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}, 4),
        (
            {
                "SLURM_CPUS_ON_NODE": "16",
                "SLURM_STEP_ID": "0",
                "SLURM_NODEID": "2",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2),1",
            },
            16,
        ),
        (
            {
                "SLURM_CPUS_ON_NODE": "16",
                "SLURM_STEP_ID": "0",
                "SLURM_NODEID": "1",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2),1",
            },
            4,
        ),
        ({"SLURM_CPUS_ON_NODE": "3", "SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "4"}, 1),
        # A batch script has all of the job's CPUs on its node, however many tasks srun may start later.
        ({"SLURM_CPUS_ON_NODE": "16", "SLURM_TASKS_PER_NODE": "4"}, 16),
        ({"SLURM_CPUS_PER_TASK": "0", "SLURM_CPUS_ON_NODE": "many"}, None),
    ],
)
def test_a_task_has_the_cpus_that_it_was_given(told: dict[str, str], cpus: int | None) -> None:
    found = find_slurm_allocation({"SLURM_JOB_ID": "7", **told})
    assert found is not None
    assert found.cpus == cpus


@pytest.mark.parametrize(
    ("told", "gpus"),
    [
        ({}, ""),
        ({"SLURM_STEP_GPUS": "0,1"}, "SLURM_STEP_GPUS=0,1"),
        ({"SLURM_JOB_GPUS": "", "SLURM_GPUS_ON_NODE": "2"}, "SLURM_GPUS_ON_NODE=2"),
    ],
)
def test_slurm_tells_that_a_job_was_given_gpus(told: dict[str, str], gpus: str) -> None:
    found = find_slurm_allocation({"SLURM_JOB_ID": "7", **told})
    assert found is not None
    assert found.gpus == gpus


@pytest.mark.parametrize(
    ("told", "memory_mib"),
    [
        ({}, None),
        ({"SLURM_MEM_PER_NODE": "500"}, 500),
        ({"SLURM_MEM_PER_CPU": "500", "SLURM_CPUS_ON_NODE": "4"}, 2000),
        ({"SLURM_MEM_PER_CPU": "500"}, None),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
    ],
)
def test_a_job_has_the_memory_that_it_was_given(told: dict[str, str], memory_mib: int | None) -> None:
    found = find_slurm_allocation({"SLURM_JOB_ID": "7", **told})
    assert found is not None
    assert found.memory_mib == memory_mib
