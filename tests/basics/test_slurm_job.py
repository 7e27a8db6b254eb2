"""What SLURM's environment and `squeue` say of a job, by a stand-in for the program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.basics import slurm_job
from gpubench.basics.slurm_job import LiveJobs, current_job, has_company, has_ended

LISTED = "7\\n8\\n9\\n9"


class Ticking:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Ticking:
    made = Ticking()
    monkeypatch.setattr(slurm_job, "_live_jobs", LiveJobs(made))
    return made


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Ticking) -> Path:  # noqa: ARG001 - nothing is known
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "squeue"


def says(program: Path, text: str, *, fails: bool = False) -> None:
    asked = program.with_name("asked")
    program.write_text(f"#!/bin/sh\necho \"$@\" >> '{asked}'\nprintf '{text}\\n'\nexit {int(fails)}\n")
    program.chmod(0o755)


def test_a_job_s_name_tells_each_of_its_runs_apart() -> None:
    assert current_job({}) == ""
    assert current_job({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c"}) == "c/7.0"
    assert (
        current_job({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c", "SLURM_RESTART_COUNT": "2"}) == "c/7.2"
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
    assert has_company(environ) is has


def test_a_job_that_is_not_listed_is_over(squeue: Path) -> None:
    says(squeue, LISTED)
    environ = {"SLURM_CLUSTER_NAME": "c", "SLURM_JOB_ID": "8"}
    assert has_ended("c/6.0", environ)
    assert not has_ended("c/7.0", environ)
    # It may wait for its next run, or be in it: heartbeats tell.
    assert not has_ended("c/9.1", environ)


def test_an_earlier_run_of_one_s_own_job_is_over(squeue: Path) -> None:
    says(squeue, LISTED)
    environ = {"SLURM_CLUSTER_NAME": "c", "SLURM_JOB_ID": "8", "SLURM_RESTART_COUNT": "2"}
    assert has_ended("c/8.1", environ)
    assert not has_ended("c/8.2", environ)
    assert not squeue.with_name("asked").exists()


def test_nothing_is_known_where_slurm_does_not_tell(
    squeue: Path, clock: Ticking, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"SLURM_CLUSTER_NAME": "c"}
    says(squeue, "", fails=True)
    assert not has_ended("c/6.0", environ)
    assert not has_ended("d/6.0", environ), "another cluster's"
    assert not has_ended("", {})
    clock.now += 60
    monkeypatch.setenv("PATH", str(squeue.parent / "nowhere"))
    assert not has_ended("c/6.0", environ)


def test_the_controller_is_asked_twice_a_minute_for_all_jobs(squeue: Path, clock: Ticking) -> None:
    says(squeue, LISTED)
    environ = {"SLURM_CLUSTER_NAME": "c"}
    for _ in range(2):
        told = [has_ended(f"c/{number}.0", environ) for number in range(100, 200)]
    # Of those that were asked after later nothing is known yet.
    assert told == [True] + 99 * [False]
    assert len(squeue.with_name("asked").read_text().splitlines()) == 1
    clock.now += 30
    assert all(has_ended(f"c/{number}.0", environ) for number in range(100, 200))
    assert len(squeue.with_name("asked").read_text().splitlines()) == 2


def test_a_job_that_has_begun_since_squeue_was_asked_is_alive(squeue: Path, clock: Ticking) -> None:
    says(squeue, LISTED)
    environ = {"SLURM_CLUSTER_NAME": "c"}
    assert not has_ended("c/7.0", environ)
    clock.now += 1
    says(squeue, f"{LISTED}\\n10")  # a task of an array gets its number when it starts
    # The list is older than the job.
    assert not has_ended("c/10.0", environ)
    clock.now += 30
    assert not has_ended("c/10.0", environ)
    says(squeue, LISTED)
    clock.now += 30
    assert has_ended("c/10.0", environ)


def test_a_job_that_is_run_again_is_alive(squeue: Path, clock: Ticking) -> None:
    environ = {"SLURM_CLUSTER_NAME": "c"}
    says(squeue, "7")
    assert has_ended("c/9.0", environ)
    clock.now += 1
    # Its second run has begun since.
    assert not has_ended("c/9.1", environ)


def test_what_a_user_has_set_for_squeue_hides_no_job(squeue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue.write_text('#!/bin/sh\n[ -n "$SQUEUE_PARTITION$SLURM_CLUSTERS" ] || echo 9\n')
    squeue.chmod(0o755)
    for name in ("SQUEUE_PARTITION", "SLURM_CLUSTERS"):
        monkeypatch.setenv(name, "mine")
    assert not has_ended("c/9.0", {"SLURM_CLUSTER_NAME": "c"})
