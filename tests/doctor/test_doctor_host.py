"""What the doctor says of CPUs, limits, SLURM and folders, each with something wrong."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import time
from collections import namedtuple
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import scripted
from fake_nvml import FakeNvml

from gpubench.doctor import cpu, folders, limits, slurm
from gpubench.doctor.context import CheckContext, TorchReport
from gpubench.doctor.finding import CheckResult
from gpubench.node.environment import Machine, visible_gpus
from gpubench.node.watch import host
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan.command_line import read_experiment
from gpubench.plan.sweep_options import Options

Usage = namedtuple("Usage", "total used free")


def context(
    machine: Machine | None = None, gpus: int = 0, has_gpu: bool = False, **environ: str
) -> CheckContext:
    nvml = FakeNvml() if gpus else NoNvml("none here")
    machine = machine or dataclasses.replace(
        scripted.computer(), gpus=visible_gpus(nvml.devices, environ.get("CUDA_VISIBLE_DEVICES"))
    )
    return CheckContext(
        nvml=nvml,
        machine=machine,
        environ=environ,
        experiment=read_experiment(None, Options(), has_gpu=has_gpu),
        ask_torch=lambda: TorchReport(pid=1),
    )


def by_name(found: Iterable[CheckResult]) -> Mapping[str, CheckResult]:
    told = {finding.name: finding for finding in found}
    assert all(finding.remedy for finding in told.values() if finding.verdict != "ok")
    return told


# ---- CPUs ----


def test_one_cpu_is_a_doubt() -> None:
    machine = dataclasses.replace(scripted.computer(), cpu_ids=(0,), cpu_count=1)
    assert by_name(cpu.processors(context(machine)))["CPUs"].verdict == "doubt"


def test_what_limits_the_cpus_is_named() -> None:
    machine = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=8)
    found = by_name(cpu.processors(context(machine, SLURM_CPUS_PER_TASK="8")))["CPUs"]
    assert found.verdict == "ok"
    assert "8 of " in found.found
    assert "SLURM_CPUS_PER_TASK is 8" in found.found


BY_NUMBER = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=8)
"""As SLURM grants CPUs where it binds to none."""


@pytest.mark.parametrize(("busy_cpus", "verdict"), [(50.0, "ok"), (64.0, "doubt")])
def test_of_cpus_that_are_none_in_particular_it_says_what_is_told(
    monkeypatch: pytest.MonkeyPatch, busy_cpus: float, verdict: str
) -> None:
    began = time.monotonic()
    told = lambda _: host.CpuTime(busy_cpus * (time.monotonic() - began), 0.0)  # noqa: E731
    monkeypatch.setattr(host, "cpu_time", told)
    found = by_name(cpu.cpu_time(context(BY_NUMBER)))
    time_of, load = found["CPU time"], found["other load"]
    assert time_of.verdict == "doubt"
    assert "8 of 64 CPUs" in time_of.found
    assert "judged by all 64" in time_of.found
    assert "--cpu-bind" in time_of.remedy
    assert load.verdict == verdict
    assert "% of 8 CPUs taken" in load.found
    assert "counts in cpu_util_pct" not in load.found


def test_of_cpus_that_are_none_in_particular_a_sandboxed_proc_hides_other_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing(_: Any) -> Any:
        raise host.HostError("/proc/stat holds no CPU times here (a sandboxed kernel)")

    monkeypatch.setattr(host, "cpu_time", nothing)
    found = by_name(cpu.cpu_time(context(BY_NUMBER)))["CPU time"]
    assert found.verdict == "no"
    assert found.found.endswith("other load goes unnoticed")


def test_a_sandboxed_proc_costs_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Any) -> Any:
        raise host.HostError("/proc/stat holds no CPU times here (a sandboxed kernel)")

    monkeypatch.setattr(host, "cpu_time", nothing)
    assert by_name(cpu.cpu_time(context()))["CPU time"].verdict == "no"


def test_a_busy_host_is_a_doubt() -> None:
    one = min(os.sched_getaffinity(0))
    machine = dataclasses.replace(scripted.computer(), cpu_ids=(one,), cpu_count=1)
    spinner = subprocess.Popen(["taskset", "-c", str(one), "sh", "-c", "while :; do :; done"])
    try:
        found = by_name(cpu.cpu_time(context(machine)))["other load"]
    finally:
        spinner.kill()
        spinner.wait()
    assert found.verdict == "doubt"
    assert int(found.found.split(" %")[0]) > 80


def test_memory_by_smaps_is_tried() -> None:
    found = by_name(cpu.process_tree(context()))
    assert found["host memory"].verdict == "ok"


def test_a_kernel_without_smaps_rollup(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Any) -> Any:
        raise host.HostError("this kernel has no smaps_rollup: proportional memory is not told")

    monkeypatch.setattr(host.ProcessTree, "pss_mib", nothing)
    found = by_name(cpu.process_tree(context()))["host memory"]
    assert found.verdict == "no"
    assert "host_mem_mib" in found.found


# ---- limits ----


@pytest.mark.parametrize(("free", "verdict"), [(64 << 20, "no"), (1 << 30, "doubt"), (64 << 30, "ok")])
def test_shared_memory(monkeypatch: pytest.MonkeyPatch, free: int, verdict: str) -> None:
    monkeypatch.setattr(limits.shutil, "disk_usage", lambda _: Usage(free, 0, free))
    machine = dataclasses.replace(scripted.computer(gpus=1), cpu_count=16)
    found = by_name(limits.shared_memory(context(machine)))["shared memory"]
    assert found.verdict == verdict
    assert verdict == "ok" or "--shm-size" in found.remedy


def test_no_shared_memory_at_all(tmp_path: Path) -> None:
    assert by_name(limits.shared_memory(context(), tmp_path / "none"))["shared memory"].verdict == "no"


INF = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "verdict", "remedy"),
    [
        (1024, 524_288, "doubt", "ulimit -n 65536"),
        (1024, INF, "doubt", "ulimit -n 65536"),
        (1024, 8192, "doubt", "ulimit -n 8192"),
        (1024, 1024, "doubt", "--ulimit nofile"),
        (4096, 4096, "ok", ""),
        (INF, INF, "ok", ""),
    ],
)
def test_open_files(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, verdict: str, remedy: str) -> None:
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (soft, hard))
    found = by_name(limits.open_files(context()))["open files"]
    assert found.verdict == verdict
    assert remedy in found.remedy


# ---- SLURM ----


def test_outside_a_job() -> None:
    assert "srun is not here" in by_name(slurm.job(context(PATH="/nowhere")))["job"].found


JOB = {"SLURM_JOB_ID": "77", "SLURMD_NODENAME": "n1"}


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "ok"),
        ({"SLURM_CPUS_PER_TASK": "1"}, "ok"),
        ({"SLURM_CPUS_PER_TASK": "4096"}, "doubt"),
        ({"SLURM_STEP_ID": "0"}, "doubt"),
        ({"SLURM_STEP_ID": "0", "SLURM_CPUS_PER_TASK": "1"}, "ok"),
        # Such a step has its CPUs, and SLURM would refuse the remedy.
        ({"SLURM_STEP_ID": "0", "SLURM_CPUS_PER_GPU": "2"}, "ok"),
    ],
)
def test_cpus_of_a_task(more: dict[str, str], verdict: str) -> None:
    found = by_name(slurm.job(context(**JOB, **more)))
    assert found["CPUs of the task"].verdict == verdict
    assert "77" in found["job"].found
    if verdict == "doubt":
        assert "srun --cpus-per-task" in found["CPUs of the task"].remedy
        assert "22.05" in found["CPUs of the task"].remedy


def test_gpus_that_the_job_did_not_ask_for() -> None:
    assert by_name(slurm.job(context(gpus=2, **JOB)))["GPUs of the job"].verdict == "doubt"
    asked = context(gpus=2, **JOB, SLURM_JOB_GPUS="0,1")
    assert by_name(slurm.job(asked))["GPUs of the job"].verdict == "ok"
    assert by_name(slurm.job(context(**JOB)))["GPUs of the job"].verdict == "ok"


def test_gpus_that_the_job_was_given_and_that_nobody_sees() -> None:
    found = by_name(slurm.job(context(**JOB, SLURM_STEP_GPUS="0")))["GPUs of the job"]
    assert found.verdict == "doubt"
    assert found.found.startswith("SLURM_STEP_GPUS=0, but none is seen")


# ---- folders ----


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUBENCH_DATA", str(tmp_path / "images"))
    return tmp_path / "images"


def test_images_that_are_to_be_made(images: Path) -> None:
    found = by_name(folders.images(context()))["images"]
    assert found.verdict == "ok"
    assert "512 + 64 images" in found.found
    assert str(images) in found.found
    assert not images.exists()


@pytest.mark.usefixtures("images")
def test_no_room_for_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: Usage(0, 0, 1_000_000))
    found = by_name(folders.images(context()))["images"]
    assert found.forbids
    assert "1.0 MB" in found.found
    assert "GPUBENCH_DATA" in found.remedy
    assert by_name(folders.results(context()))["results"].verdict == "doubt"


@pytest.mark.usefixtures("images")
def test_a_resident_batch_needs_no_room_for_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """The built-in sweep on a GPU has one."""
    monkeypatch.setattr(folders.shutil, "disk_usage", lambda _: Usage(0, 0, 0))
    found = by_name(folders.images(context(has_gpu=True)))["images"]
    assert found.verdict == "ok"
    assert "(synthetic)" in found.found


def test_a_file_where_the_images_should_go(images: Path) -> None:
    images.write_text("")
    assert by_name(folders.images(context()))["images"].forbids


def test_results_go_where_they_are_sent(tmp_path: Path) -> None:
    found = by_name(folders.results(context(GPUBENCH_OUT=str(tmp_path / "a" / "b"))))["results"]
    assert found.verdict == "ok"
    assert str(tmp_path / "a" / "b") in found.found
    assert not (tmp_path / "a").exists()


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders.os, "access", lambda *_: False)
    found = by_name(folders.results(context(GPUBENCH_OUT=str(tmp_path / "results"))))["results"]
    assert found.forbids
    assert "--out" in found.remedy
