"""What SLURM's environment and `scontrol` say of a job, by a stand-in for the program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpubench.basics.slurm_job import has_company, has_ended, own_job

UNKNOWN = "slurm_load_jobs error: Invalid job id specified"
DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "scontrol"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return program


def says(program: Path, text: str, *, fails: bool = False) -> None:
    program.write_text(f"#!/bin/sh\necho '{text}' >&{2 if fails else 1}\nexit {int(fails)}\n")
    program.chmod(0o755)


def test_a_job_s_name_tells_each_of_its_runs_apart() -> None:
    assert own_job({}) == ""
    assert own_job({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c"}) == "c/7.0"
    assert own_job({"SLURM_JOB_ID": "7", "SLURM_CLUSTER_NAME": "c", "SLURM_RESTART_COUNT": "2"}) == "c/7.2"


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


@pytest.mark.parametrize(
    ("answer", "fails", "ended"),
    [
        ("JobId=7 JobName=x JobState=RUNNING Restarts=1 NodeList=n1", False, False),
        ("JobId=7 JobName=x JobState=RUNNING Restarts=2 NodeList=n1", False, True),
        ("JobId=7 JobName=x JobState=PENDING Restarts=1", False, False),
        ("JobId=7 JobName=x JobState=NODE_FAIL Restarts=1", False, True),
        ("JobId=7 JobName=x JobState=COMPLETED Restarts=1", False, True),
        ("JobId=7 JobName=x JobState=COMPLETING Restarts=1", False, False),
        (UNKNOWN, True, True),
        (DOWN, True, False),
    ],
)
def test_whether_a_run_is_over(scontrol: Path, answer: str, fails: bool, ended: bool) -> None:
    says(scontrol, answer, fails=fails)
    assert has_ended("c/7.1", {"SLURM_CLUSTER_NAME": "c"}) is ended


def test_nothing_is_known_without_slurm_or_of_another_cluster(
    scontrol: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(scontrol, UNKNOWN, fails=True)
    assert has_ended("c/7.1", {"SLURM_CLUSTER_NAME": "d"}) is False
    assert has_ended("", {}) is False
    monkeypatch.setenv("PATH", str(scontrol.parent / "nowhere"))
    assert has_ended("c/7.1", {"SLURM_CLUSTER_NAME": "c"}) is False
