"""What the doctor says of CPUs, limits, SLURM and folders, each with something wrong."""

from __future__ import annotations

import dataclasses
import resource
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import scripted
from doctored import by_name, context
from fake_nvml import FakeNvml

from gpubench.doctor import host
from gpubench.node.allocation import find_slurm_allocation
from gpubench.node.watch import host as watched
from gpubench.node.watch import host_load

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(("busy", "verdict"), [(3.0, "ok"), (80.0, "doubt")])
def test_a_busy_host_is_a_doubt(monkeypatch: pytest.MonkeyPatch, busy: float, verdict: str) -> None:
    monkeypatch.setattr(host, "measure_busy_pct", lambda *_: busy)
    assert by_name(host.check_cpus(context()))["other load"].verdict == verdict


def test_a_sandboxed_proc_costs_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any) -> Any:
        raise watched.HostReadingError("a sandboxed kernel")

    monkeypatch.setattr(host_load.host, "read_cpu_time", nothing)
    monkeypatch.setattr(watched.ProcessTree, "read_pss_mib", nothing)
    found = by_name(host.check_cpus(context()))
    assert (found["CPU time"].verdict, found["host memory"].verdict) == ("no", "no")


@pytest.mark.parametrize(("free", "verdict"), [(16 << 20, "no"), (64 << 30, "ok")])
def test_shared_memory(monkeypatch: pytest.MonkeyPatch, free: int, verdict: str) -> None:
    monkeypatch.setattr(host.shutil, "disk_usage", lambda _: Usage(free, 0, free))
    machine = dataclasses.replace(scripted.computer(gpus=1), cpu_count=16)
    assert (
        by_name(host.check_shared_memory_and_files(context(machine=machine)))["shared memory"].verdict
        == verdict
    )


@pytest.mark.parametrize(("soft", "verdict"), [(1024, "doubt"), (4096, "ok"), (resource.RLIM_INFINITY, "ok")])
def test_open_files(monkeypatch: pytest.MonkeyPatch, soft: int, verdict: str) -> None:
    monkeypatch.setattr(host.resource, "getrlimit", lambda _: (soft, soft))
    assert by_name(host.check_shared_memory_and_files(context()))["open files"].verdict == verdict


JOB = {"SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n1"}


def in_job(gpus: int = 0, **more: str) -> Any:
    environ = JOB | more
    machine = dataclasses.replace(scripted.computer(gpus=gpus), allocation=find_slurm_allocation(environ))
    return by_name(host.check_slurm_job(context(FakeNvml() if gpus else None, machine, environ=environ)))


def test_outside_a_job() -> None:
    assert by_name(host.check_slurm_job(context()))["job"].found == "not inside one"


@pytest.mark.parametrize(
    ("more", "is_doubtful"),
    [
        ({}, False),
        ({"SLURM_CPUS_PER_TASK": "1"}, False),
        ({"SLURM_CPUS_PER_TASK": "4096"}, True),
        ({"SLURM_STEP_ID": "0"}, True),
        ({"SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "1"}, False),
        # Such a step has its CPUs, and SLURM would refuse the remedy.
        ({"SLURM_STEP_ID": "0", "SLURM_CPUS_PER_GPU": "2"}, False),
    ],
)
def test_cpus_of_a_task(more: dict[str, str], is_doubtful: bool) -> None:
    found = in_job(**more)
    assert "77" in found["job"].found
    assert ("CPUs of the task" in found) == is_doubtful


def test_gpus_of_a_job() -> None:
    assert "GPUs of the job" in in_job(gpus=2), "it asked for none"
    assert "GPUs of the job" not in in_job(gpus=2, SLURM_JOB_GPUS="0,1")
    assert "GPUs of the job" not in in_job()
    found = in_job(SLURM_STEP_GPUS="0")["GPUs of the job"]
    assert found.found.startswith("SLURM_STEP_GPUS=0, but none is seen")


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUBENCH_DATA", str(tmp_path / "images"))
    return tmp_path / "images"


def test_a_resident_batch_needs_no_images(images: Path) -> None:
    """The built-in sweep on a GPU has one."""
    images.write_text("")
    found = by_name(host.check_folders(context(FakeNvml())))["images"]
    assert (found.verdict, "(synthetic)" in found.found) == ("ok", True)


def test_a_file_where_the_images_should_go(images: Path) -> None:
    images.write_text("")
    assert by_name(host.check_folders(context()))["images"].forbids


@pytest.mark.usefixtures("images")
def test_results_go_where_they_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = context(environ={"GPUBENCH_OUT": str(tmp_path / "a" / "b")})
    found = by_name(host.check_folders(here))["results"]
    assert (found.verdict, str(tmp_path / "a" / "b") in found.found) == ("ok", True)
    assert not (tmp_path / "a").exists()
    monkeypatch.setattr(host.os, "access", lambda *_: False)
    found = by_name(host.check_folders(here))["results"]
    assert (found.forbids, "--out" in found.remedy) == (True, True)
