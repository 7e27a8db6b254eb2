from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError
from gpubench.node import environment
from gpubench.node.cgroup import CpuQuota, find_cpu_quota
from gpubench.node.environment import (
    Gpu,
    Machine,
    collect_environment_facts,
    find_usable_memory_mib,
    list_visible_gpus,
    make_hardware_key,
    make_machine,
)
from gpubench.plan.shares import count_default_workers
from gpubench.schema.columns import ENVIRONMENT


def gpu(index: int, uuid: str, parent: str | None = None, name: str = "NVIDIA H200") -> Gpu:
    return Gpu(index=index, uuid=uuid, name=name, memory_mib=143771, parent=parent)


FOUR = (gpu(0, "GPU-aa00"), gpu(1, "GPU-ab11"), gpu(2, "GPU-bb22"), gpu(3, "GPU-cc33"))
CUT = (
    gpu(0, "GPU-aa00"),
    gpu(0, "MIG-0001", "GPU-aa00", "NVIDIA H200 MIG 1g.18gb"),
    gpu(0, "MIG-0002", "GPU-aa00", "NVIDIA H200 MIG 1g.18gb"),
    gpu(1, "GPU-ab11"),
)


class Inventory:
    def __init__(self, devices: tuple[Gpu, ...]) -> None:
        self.devices = devices
        self.driver = "580.1"


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        (None, ["aa00", "ab11", "bb22", "cc33"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("2,0", ["bb22", "aa00"]),
        (" 1 , 3 ", ["ab11", "cc33"]),
        ("0,-1,1", ["aa00"]),
        ("1,9,2", ["ab11"]),
        ("0,x,1", ["aa00"]),
        ("1,1", []),
        ("GPU-bb22,GPU-aa00", ["bb22", "aa00"]),
        ("GPU-b", ["bb22"]),
        ("GPU-cc33,GPU-a,GPU-bb22", ["cc33"]),  # GPU-a could be two
        ("GPU-zz,GPU-aa00", []),
        ("bb22", []),
    ],
)
def test_visible_devices_as_cuda_reads_them(spec: str | None, seen: list[str]) -> None:
    gpus = list_visible_gpus(FOUR, spec)
    assert [g.uuid.removeprefix("GPU-") for g in gpus] == seen
    assert [g.index for g in gpus] == list(range(len(seen)))


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        (None, ["MIG-0001", "GPU-ab11"]),
        ("0", ["MIG-0001"]),
        ("1", ["GPU-ab11"]),
        ("GPU-aa", ["MIG-0001"]),
        ("MIG-0002", ["MIG-0002"]),
        ("MIG-0002,MIG-0001", ["MIG-0002", "MIG-0001"]),
    ],
)
def test_slices_stand_for_the_gpu_that_they_are_cut_from(spec: str | None, seen: list[str]) -> None:
    assert [g.uuid for g in list_visible_gpus(CUT, spec)] == seen


# ---------------------------------------------------------------- CPUs


def cgroups(tmp_path: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    (tmp_path / "membership").write_text(membership)
    for name, text in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "membership", tmp_path / "fs"


@pytest.mark.parametrize(
    ("membership", "files", "cpus", "usage"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, None, None),
        ("0::/a/b\n", {"a/b/cpu.max": "250000 100000\n"}, 2.5, "a/b/cpu.stat"),
        ("0::/a/b\n", {"a/b/cpu.max": "800000 100000", "a/cpu.max": "400000 100000"}, 4, "a/cpu.stat"),
        ("0::/../not/here\n", {"cpu.max": "300000 100000"}, 3, "cpu.stat"),  # a container's own root
        (
            "3:cpu,cpuacct:/job\n0::/\n",
            {
                "cpu,cpuacct/job/cpu.cfs_quota_us": "150000",
                "cpu,cpuacct/job/cpu.cfs_period_us": "100000",
                "cpu,cpuacct/job/cpuacct.usage": "1",
            },
            1.5,
            "cpu,cpuacct/job/cpuacct.usage",
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None, None),
        (
            "2:cpuacct:/\n1:cpu:/gone\n",
            {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"},
            2,
            "cpuacct/cpuacct.usage",
        ),
    ],
)
def test_cpu_quotas(
    tmp_path: Path, membership: str, files: dict[str, str], cpus: float | None, usage: str | None
) -> None:
    member, mount = cgroups(tmp_path, membership, files)
    quota = find_cpu_quota(member, mount)
    assert (quota.cpus if quota else None) == cpus
    assert (quota.usage_file if quota else None) == (str(mount / usage) if usage else None)


def _limits(monkeypatch: pytest.MonkeyPatch, quota: float | None, slurm: str | None) -> Machine:
    found = None if quota is None else CpuQuota(cpus=quota, usage_file="/usage")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(environment, "find_cpu_quota", lambda: found)
    return make_machine(None, {} if slurm is None else {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": slurm})


def test_the_smallest_limit_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    free = _limits(monkeypatch, None, None)
    assert (free.cpu_count, free.cpu_ids, free.cpu_usage_file) == (8, tuple(range(8)), None)
    quota = _limits(monkeypatch, 2.5, "4")
    assert (quota.cpu_count, len(quota.cpu_ids), quota.cpu_usage_file) == (3, 8, "/usage")
    slurm = _limits(monkeypatch, 6, "4")
    assert (slurm.cpu_count, slurm.cpu_usage_file) == (4, None)
    wide = _limits(monkeypatch, 64, "16")
    assert (wide.cpu_count, wide.cpu_usage_file) == (8, None)
    assert _limits(monkeypatch, None, "many").cpu_count == 8


def test_the_real_affinity_is_what_counts() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        here = make_machine(None, {})
    finally:
        os.sched_setaffinity(0, allowed)
    assert (here.cpu_ids, here.cpu_count) == ((min(allowed),), 1)


# ---------------------------------------------------------------- facts


@pytest.mark.parametrize(("kept", "told"), [((615, 620), 620), ((615, None), None), ((), None)])
def test_what_the_driver_keeps_of_a_gpu_stands_beside_a_result(
    kept: tuple[int | None, ...], told: int | None
) -> None:
    found = [replace(gpu(k, f"GPU-{k}"), reserved_mib=mib) for k, mib in enumerate(kept)]
    assert collect_environment_facts(make_machine(Inventory(found), {}), {})["gpu_reserved_mib"] == told


def test_machine_key_names_what_a_result_depends_on() -> None:
    here = make_machine(Inventory(FOUR), {"CUDA_VISIBLE_DEVICES": "1"})
    assert here.gpus == (Gpu(index=0, uuid="GPU-ab11", name="NVIDIA H200", memory_mib=143771),)
    assert make_hardware_key(here, "cuda") == "NVIDIA H200, 143771 MiB"
    assert make_hardware_key(here, "cpu") == here.cpu_name != ""
    with pytest.raises(UnusableError, match="no GPU"):
        make_hardware_key(make_machine(None, {}), "cuda")


def test_facts_are_the_environment_columns_and_import_no_torch() -> None:
    facts = environment.collect_environment_facts(make_machine(Inventory(FOUR), {}))
    wanted = {column.name for column in ENVIRONMENT} - {"cuda", "started_at"}
    assert wanted <= facts.keys()
    assert facts["gpu_name"] == "NVIDIA H200"
    assert facts["gpu_count"] == 4
    assert facts["driver"] == "580.1"
    assert facts["torch"]
    assert environment.collect_environment_facts(make_machine(None, {}))["gpu_name"] is None


# ---------------------------------------------------------------- MPS


FIRST, OTHER = "pid:[4026531836]", "pid:[4026532001]"


def processes(folder: Path, namespace: str, **comm: str) -> Path:
    """A /proc with these processes (`p1="init"`), as seen from a pid namespace."""
    for pid, name in comm.items():
        (folder / pid[1:]).mkdir(parents=True)
        (folder / pid[1:] / "comm").write_text(f"{name}\n")
    (folder / "self" / "ns").mkdir(parents=True)
    (folder / "self" / "ns" / "pid").symlink_to(namespace)
    return folder


def pipes(folder: Path, pid: str | None) -> dict[str, str]:
    """The environment of a process that looks in a folder as a daemon `pid` makes it; None: as it leaves it."""
    folder.mkdir()
    (folder / "control").touch()
    if pid is not None:
        (folder / "nvidia-cuda-mps-control.pid").write_text(pid)
    return {"CUDA_MPS_PIPE_DIRECTORY": str(folder)}


DAEMON = {"p1": "init", "p261": "nvidia-cuda-mps"}


@pytest.mark.parametrize(
    ("pid", "namespace", "comm", "said"),
    [
        ("261", FIRST, DAEMON, "on"),
        ("261\n", OTHER, DAEMON, "on"),
        (None, FIRST, {"p1": "init"}, "off"),
        (None, OTHER, {"p1": "sh"}, "off"),  # the socket that it left behind
        (None, FIRST, DAEMON, "off"),  # one that has a folder of its own
        ("300", FIRST, DAEMON, "off"),  # killed, and its file stayed
        ("261", FIRST, {"p1": "init", "p261": "bash"}, "off"),
        ("261", OTHER, {"p1": "sh", "p261": "python"}, "perhaps"),  # a container's own process 261
        ("261", OTHER, {"p1": "sh"}, "perhaps"),
        ("261", FIRST, {}, "perhaps"),  # others' processes are hidden
        ("", OTHER, {"p1": "sh"}, "off"),
    ],
)
def test_mps_is_on_where_its_daemon_runs(
    tmp_path: Path, pid: str | None, namespace: str, comm: dict[str, str], said: str
) -> None:
    proc = processes(tmp_path / "proc", namespace, **comm)
    assert environment.find_mps_state(pipes(tmp_path / "pipes", pid), proc) == said


def test_memory_is_the_least_of_machine_cgroup_and_slurm(tmp_path: Path) -> None:
    meminfo, membership, mount = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "fs"
    meminfo.write_text("MemFree: 1 kB\nMemTotal:       8388608 kB\n")
    membership.write_text("0::/slurm/job_7/step_0\n")
    own, above = mount / "slurm" / "job_7" / "step_0", mount / "slurm" / "job_7"
    own.mkdir(parents=True)

    def found(granted: int | None) -> int | None:
        return find_usable_memory_mib(granted, membership, mount, meminfo)

    assert found(None) == 8192
    assert found(4000) == 4000
    (own / "memory.max").write_text("max\n")
    (above / "memory.max").write_text(f"{1000 << 20}\n")
    assert found(4000) == 1000
    membership.write_text("4:memory:/slurm/job_7\n3:cpu:/slurm\n")
    # A limit of the other kind of cgroup is none.
    assert found(None) == 8192
    old = mount / "memory" / "slurm" / "job_7"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text(f"{700 << 20}\n")
    assert found(None) == 700
    assert find_usable_memory_mib(None, tmp_path / "no", mount, tmp_path / "no") is None


def test_a_number_of_cpus_that_binds_to_none_is_noticed() -> None:
    cpus = os.sched_getaffinity(0)
    alone = make_machine(None, {})
    assert not alone.has_unbound_cpus
    assert alone.sentence_start == "this machine shows"
    if len(cpus) < 2:
        pytest.skip("one CPU can't be given a part of")
    some = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "1"}
    assert make_machine(None, some).has_unbound_cpus
    assert make_machine(None, some).cpu_count == 1
    assert make_machine(None, some).sentence_start == "SLURM job 7 was given"
    assert not make_machine(None, some | {"SLURM_CPUS_PER_TASK": str(len(cpus))}).has_unbound_cpus
    os.sched_setaffinity(0, {min(cpus)})
    try:
        assert not make_machine(None, some).has_unbound_cpus
    finally:
        os.sched_setaffinity(0, cpus)


OF_TWO_GPUS = {
    "SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "4", "SLURM_JOB_CPUS_PER_NODE": "4", "SLURM_JOB_GPUS": "0,1",
    "SLURM_GPUS_ON_NODE": "2", "CUDA_VISIBLE_DEVICES": "0,1",
}  # fmt: skip
"""What SLURM 22.05 sets in a job of `--gres=gpu:2` with 4 CPUs."""
STEP = {"SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "1", "SLURM_NODEID": "0"}


@pytest.mark.parametrize(
    "more",
    [
        {"SLURM_CPUS_PER_TASK": "4", "SLURM_TASKS_PER_NODE": "1"},
        {"SLURM_CPUS_PER_TASK": "4", **STEP},
        {"SLURM_CPUS_PER_GPU": "2", "SLURM_TASKS_PER_NODE": "4"},
        {"SLURM_CPUS_PER_GPU": "2", **STEP},
    ],
    ids=["script", "step", "script by GPU", "step by GPU"],
)
def test_the_ranks_of_a_trial_share_the_cpus_of_a_grant_of_two_gpus(
    more: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has 16 CPUs, and nothing binds the job to some of them."""
    monkeypatch.setattr(environment.os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(environment, "find_cpu_quota", lambda: None)
    seen = make_machine(Inventory(FOUR[:2]), OF_TWO_GPUS | more)
    assert (len(seen.gpus), seen.cpu_count, seen.has_unbound_cpus) == (2, 4, True)
    # All four load for a trial on one GPU; two for each rank of one on both.
    workers = [count_default_workers(seen.cpu_count, ranks, "cuda") for ranks in (1, 2)]
    assert workers == [4, 4]
