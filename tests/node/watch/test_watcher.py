from __future__ import annotations

import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import scripted
from fake_nvml import FakeNvml, gpu, running
from watched import Clock, make_figures, watch

from gpubench.node.environment import Machine, make_machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.watched import Window

G0, G1 = gpu(0).uuid, gpu(1).uuid
ALLOWED = tuple(sorted(os.sched_getaffinity(0)))


def a_machine(cpu_count: int = len(ALLOWED), usage_file: str | None = None) -> Machine:
    return replace(scripted.computer(2), cpu_count=cpu_count, cpu_usage_file=usage_file)


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that sleeps."""
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()


def healthy(pid: int) -> FakeNvml:
    return FakeNvml(
        answers={
            "utilisation": running({G0: 90, G1: 70}, {G0: 40, G1: 20}),
            "memory": {G0: 700, G1: 700},
            "power_w": {G0: 500, G1: 300},
            "processes": {G0: [(pid, 5000)], G1: [(pid, 4000)]},
        }
    )


def test_a_whole_trial(child: subprocess.Popen[bytes]) -> None:
    clock, nvml = Clock(), healthy(child.pid)
    nvml.answers["processes"] = {}
    watcher = Watcher(nvml, a_machine(), [G0, G1], ALLOWED, clock)
    assert watcher.next_deadline() == math.inf
    watcher.sample_before_trial()
    watcher.attach_to_trial(child.pid)
    watch(watcher, clock, 2)
    nvml.answers["processes"] = healthy(child.pid).answers["processes"]
    windows = []
    for epoch in range(3):
        t0 = clock.now
        watcher.sample_counters_at_edge(first=True)
        watch(watcher, clock, 3)
        windows.append(Window(t0, clock.now, epoch, epoch > 0))
        watcher.sample_counters_at_edge()
    nvml.answers["processes"][G0] = [(child.pid, 5500)]
    watcher.sample_final_memory()
    got = make_figures(watcher, *windows)
    assert got.result["gpu_mem_mib"] == 5500
    assert got.result["gpu_mem_source"] == "nvml-process"
    assert got.result["gpu_util_pct"] == pytest.approx(80)
    assert got.result["gpu_util_max_pct"] == 90
    assert got.result["gpu_mem_util_pct"] == pytest.approx(30)
    assert got.result["power_w"] == pytest.approx(800)
    assert got.result["host_mem_mib"] > 0
    # A sleeping process: measured, and it is nothing.
    assert got.result["cpu_s_per_epoch"] == 0.0
    # Before its context is there nothing is missed.
    assert got.provenance["gpu_mem_mib"]["gaps"] == 0
    assert got.strangers == []
    live = watcher.make_live_readings()
    assert (live.gpu_mem_mib, live.gpu_util_pct) == (5500, 80)
    assert live.cpu_util_pct is not None
    rows = watcher.make_watched().samples.list_rows(1000.0)
    assert rows == sorted(rows)
    util = [r for r in rows if r[1:3] == ("1", "gpu_util_pct")]
    # 11 s at 10 Hz, both ends.
    assert len(util) == 111
    assert [r[0] for r in util[:3]] == [0.0, 0.1, 0.2]
    assert {r[2] for r in rows if r[1] == "host"} == {
        "cpu_busy_s",
        "cpu_stolen_s",
        "cpu_tree_s",
        "host_mem_mib",
    }


def test_a_fault_in_passing_is_a_gap(child: subprocess.Popen[bytes]) -> None:
    clock, nvml = Clock(), healthy(child.pid)
    watcher = Watcher(nvml, a_machine(), [G0], ALLOWED, clock)
    watcher.attach_to_trial(child.pid)
    watch(watcher, clock, 1)
    nvml.broken = {"utilisation"}
    watch(watcher, clock, 1)
    nvml.broken = set()
    watch(watcher, clock, 2)
    got = make_figures(watcher, (1000.0, 1004.0))
    assert got.result["gpu_util_pct"] == 90
    assert got.provenance["gpu_util_pct"]["gaps"] == 10


def test_a_pid_namespace_falls_back_to_the_device(child: subprocess.Popen[bytes]) -> None:
    clock, nvml = Clock(), healthy(child.pid)
    nvml.answers["processes"] = {}
    watcher = Watcher(nvml, a_machine(), [G0, G1], ALLOWED, clock)
    watcher.sample_before_trial()
    nvml.answers["processes"] = {G0: [(987654, 6000)]}  # the trial, under the host's number
    nvml.answers["memory"] = {G0: 6700, G1: 700}
    watcher.attach_to_trial(child.pid)
    watch(watcher, clock, 2)
    assert watcher.read_trial_gpu_mib() is None
    assert watcher.make_live_readings().gpu_mem_mib == 6000
    got = make_figures(watcher, (1000.0, 1002.0))
    assert (got.result["gpu_mem_mib"], got.result["gpu_mem_source"]) == (6000, "nvml-device-delta")
    # It may well be the trial itself.
    assert got.strangers == []


def test_several_processes_of_the_trial_add_up_and_strangers_are_named(
    child: subprocess.Popen[bytes],
) -> None:
    clock, nvml = Clock(), FakeNvml(answers={"processes": {G0: [(1, 512)], G1: []}})
    root = os.getpid()  # the sleeping child is below this process
    watcher = Watcher(nvml, a_machine(), [G0, G1], ALLOWED, clock)
    watcher.sample_before_trial()
    nvml.answers["processes"] = {
        G0: [(1, 512), (root, 1000), (child.pid, 2000)],
        G1: [(child.pid, 500), (987654, 3000)],
    }
    watcher.attach_to_trial(root)
    assert watcher.read_trial_gpu_mib() == {G0: 3000, G1: 500}
    watch(watcher, clock, 1)
    strangers = make_figures(watcher).strangers
    assert len(strangers) == 2
    assert strangers[0].startswith("process 1 (")
    assert strangers[0].endswith("512 MiB on GPU 0")
    assert strangers[1].startswith("process 987654 (?)")
    assert strangers[1].endswith("3,000 MiB on GPU 1")


def test_a_trial_that_dies_leaves_gaps_and_keeps_its_peak(child: subprocess.Popen[bytes]) -> None:
    clock, nvml = Clock(), healthy(child.pid)
    watcher = Watcher(nvml, a_machine(), [G0], ALLOWED, clock)
    watcher.attach_to_trial(child.pid)
    watch(watcher, clock, 1)
    child.kill()
    child.wait()
    watch(watcher, clock, 2)
    watcher.sample_final_memory()
    got = make_figures(watcher, (1000.5, 1002.5))
    assert got.result["gpu_mem_mib"] == 5000
    assert "is gone" in got.missing["cpu_s_per_epoch"]
    assert "is gone" in got.missing["host_mem_mib"]
    assert watcher.read_trial_gpu_mib() is None


def test_under_a_quota_the_cgroup_s_own_time_counts(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    usage, clock = tmp_path / "cpu.stat", Clock()
    usage.write_text("usage_usec 0\n")
    watcher = Watcher(None, a_machine(1, str(usage)), [], [*ALLOWED, 63], clock)
    watcher.attach_to_trial(child.pid)
    clock.now += 1
    usage.write_text("usage_usec 500000\n")
    watcher.sample_due()
    got = make_figures(watcher, (1000.0, 1001.0))
    assert got.result["cpu_util_pct"] == pytest.approx(50)
    assert got.provenance["cpu_util_pct"]["source"] == "the cgroup's CPU time"


@pytest.mark.alone
def test_of_cpus_that_are_ours_by_number_only_the_trial_s_own_share_is_told() -> None:
    """As SLURM grants them where it binds to none: one busy process fills one of one, whatever the host does."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        watcher = Watcher(None, a_machine(1), [], [*ALLOWED, 63])
        watcher.attach_to_trial(busy.pid)
        t0 = time.monotonic()
        while time.monotonic() < t0 + 2.5:
            time.sleep(0.05)
            watcher.sample_due()
        got = make_figures(watcher, (t0 + 0.2, t0 + 2.0))
    finally:
        busy.kill()
        busy.wait()
    assert got.result["cpu_util_pct"] == got.result["cpu_util_trial_pct"] > 30
    assert "none in particular" in got.provenance["cpu_util_pct"]["source"]


def test_watching_costs_under_two_per_cent_of_a_core() -> None:
    """16 real loaders; the walk grows with their number, so 64 are counted as four times the cost."""
    code = (
        "import os, time\n"
        "for _ in range(16):\n"
        "    if os.fork() == 0: time.sleep(60)\n"
        "print('up', flush=True); time.sleep(60)"
    )
    leader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert leader.stdout
        leader.stdout.readline()
        time.sleep(0.2)
        clock = Clock()
        watcher = Watcher(healthy(leader.pid), a_machine(), [G0, G1], ALLOWED, clock)
        watcher.attach_to_trial(leader.pid)
        begin = time.process_time()
        watch(watcher, clock, 30)
        per_second = (time.process_time() - begin) / 30
    finally:
        os.killpg(leader.pid, 9)
        leader.communicate()
    print(f"{1e6 * per_second:.0f} µs of CPU a second")
    assert 4 * per_second < 0.02


# ---------------------------------------------------------------- on a GPU


@pytest.mark.gpu
def test_the_driver_s_figure_is_nvidia_smi_s() -> None:
    code = (
        "import sys, time, torch\n"
        "for i in range(8): torch.ones(1 << 28, device='cuda').sum().item()\n"
        "x = torch.ones(3 << 28, device='cuda'); x.sum().item()\n"
        "print(time.monotonic(), flush=True)\n"
        "end = time.monotonic() + 3\n"
        "while time.monotonic() < end: y = x * 2\n"
        "torch.cuda.synchronize(); print(time.monotonic(), flush=True); sys.stdin.readline()"
    )
    nvml = open_nvml()
    here = make_machine(nvml)
    uuid = here.gpus[0].uuid
    watcher = Watcher(nvml, here, [uuid], here.cpu_ids)
    watcher.sample_before_trial()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
    ) as child:
        assert child.stdout
        watcher.attach_to_trial(child.pid)
        t0 = float(child.stdout.readline())
        watcher.sample_counters_at_edge(first=True)
        costs = []
        while not select.select([child.stdout], [], [], max(0.0, watcher.next_deadline() - time.monotonic()))[
            0
        ]:
            begin = time.perf_counter()
            watcher.sample_due()
            costs.append(time.perf_counter() - begin)
        t1 = float(child.stdout.readline())
        watcher.sample_counters_at_edge()
        watcher.sample_final_memory()
        own = watcher.read_trial_gpu_mib()
        smi = subprocess.check_output(
            ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"], text=True
        )
        child.communicate("\n")
    listed = {int(p): float(m) for p, m in (row.split(",") for row in smi.splitlines() if "N/A" not in row)}
    got = make_figures(watcher, (t0, t1))
    print(f"tick: mean {1e6 * sum(costs) / len(costs):.0f} µs, max {1e6 * max(costs):.0f} µs")
    print(got.result, got.provenance, got.strangers, listed, sep="\n")
    assert got.result["gpu_util_pct"] > 80
    assert got.result["power_w"] > 50
    if child.pid in listed:
        assert got.result["gpu_mem_source"] == "nvml-process"
        assert own is not None
        assert own[uuid] == pytest.approx(listed[child.pid], rel=0.01)
        assert got.result["gpu_mem_mib"] == pytest.approx(listed[child.pid], rel=0.01)
    else:  # a container whose pids the driver does not share
        assert got.result["gpu_mem_source"] == "nvml-device-delta"
    # 3 GiB of tensors at the least.
    assert got.result["gpu_mem_mib"] > 3 * 1024


@pytest.mark.gpu
def test_torch_numbers_the_gpus_as_the_machine_does() -> None:
    code = (
        "import torch\n"
        "for i in range(torch.cuda.device_count()):\n"
        "    p = torch.cuda.get_device_properties(i); print(p.uuid, p.name, sep=',')"
    )
    here = make_machine(open_nvml())
    out = subprocess.check_output(
        [sys.executable, "-c", code], text=True, env={**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    )
    torch_sees = [tuple(row.removeprefix("GPU-").split(",")) for row in out.splitlines()]
    assert torch_sees == [(g.uuid.removeprefix("GPU-"), g.name) for g in here.gpus]


def test_the_driver_s_own_samples_are_dated_by_the_monotonic_clock(child: subprocess.Popen[bytes]) -> None:
    clock, nvml = Clock(), healthy(child.pid)
    watcher = Watcher(nvml, a_machine(), [G0], ALLOWED, clock, wall=lambda: clock.now + 1.7e9)
    nvml.buffers[G0, "gpu_util_pct"] = [(1.7e9 + 999.9, 5.0)]
    watcher.sample_before_trial()
    watcher.attach_to_trial(child.pid)
    nvml.buffers[G0, "gpu_util_pct"] += [(1.7e9 + 1000 + k / 5, 50.0) for k in range(1, 101)]
    watch(watcher, clock, 20)
    watcher.fetch_driver_samples()
    got = make_figures(watcher, (1002, 1018))
    assert got.result["gpu_util_pct"] == pytest.approx(50)
    assert "buffer" in got.provenance["gpu_util_pct"]["source"]
    rows = [r for r in watcher.make_watched().samples.list_rows(1000.0) if r[2] == "gpu_util_buffer_pct"]
    # Each once, and none of the time before the trial.
    assert len(rows) == 100
    assert rows[0][0] == pytest.approx(0.2, abs=1e-3)


def test_what_the_driver_forgets_during_a_long_teardown_was_fetched_before(
    child: subprocess.Popen[bytes],
) -> None:
    clock, nvml = Clock(), FakeNvml()
    watcher = Watcher(nvml, a_machine(), [G0], ALLOWED, clock, lambda: 1.7e9 + clock.now)
    watcher.sample_before_trial()
    watcher.attach_to_trial(child.pid)
    watch(watcher, clock, 5)
    t0 = clock.now
    watch(watcher, clock, 3)
    nvml.buffers[G0, "power_w"] = [(1.7e9 + t0 + k / 50, 300.0) for k in range(150)]
    window = Window(t0, clock.now, 0, True)
    watcher.sample_final_memory()
    nvml.buffers = {}
    clock.now += 9
    watcher.fetch_driver_samples()
    assert "buffer" in make_figures(watcher, window).provenance["power_w"]["source"]
