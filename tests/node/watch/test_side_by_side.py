"""Jobs that run together, each with a watcher of its own: whose processes, memory, CPU time and energy is what."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import scripted
from fake_nvml import FakeNvml, gpu, running
from watched import Clock, make_figures, watch

from gpubench.node.watch.nvml import Nvml
from gpubench.node.watch.watcher import Watcher, make_watchers
from gpubench.record.host_figures import compute_tree_cpu_s
from gpubench.schema.watched import Window

G0, G1, G2 = (gpu(i).uuid for i in range(3))
ALLOWED = tuple(sorted(os.sched_getaffinity(0)))
MACHINE = scripted.computer(3)
STRANGER = 987654


Start = Callable[[], int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process that sleeps and tells its pid."""
    running: list[subprocess.Popen[bytes]] = []

    def sleeper() -> int:
        running.append(subprocess.Popen(["sleep", "100"]))
        return running[-1].pid

    yield sleeper
    for process in running:
        process.kill()
        process.wait()


def side_by_side(nvml: Nvml, clock: Clock, jobs: Sequence[Sequence[str]]) -> list[Watcher]:
    """A watcher for each job, given the GPUs of each."""
    return make_watchers(nvml, MACHINE, [(gpus, ALLOWED) for gpus in jobs], clock)


# ---------------------------------------------------------------- whose processes


def test_friends_are_no_strangers_and_strangers_are_named_by_all(start: Start) -> None:
    clock, nvml = Clock(), FakeNvml()
    one, other = side_by_side(nvml, clock, [[G0], [G0]])
    assert one.list_seen_pids() == set()
    for watcher in (one, other):
        watcher.sample_before_trial()
    a, b = start(), start()
    one.attach_to_trial(a)
    nvml.answers["processes"] = {G0: [(a, 5000), (b, 3000), (STRANGER, 100)]}
    watch([one], clock, 1.5)  # the other's tree is not known yet
    other.attach_to_trial(b)
    watch([one, other], clock, 2)
    assert (one.list_seen_pids(), other.list_seen_pids()) == ({a}, {b})
    for watcher, mib in ((one, 5000), (other, 3000)):
        got = make_figures(watcher)
        (stranger,) = got.strangers
        assert stranger.startswith(f"process {STRANGER} (?)")
        assert "100 MiB on GPU 0" in stranger
        assert (got.result["gpu_mem_mib"], got.result["gpu_mem_source"]) == (mib, "nvml-process")
        assert watcher.make_live_readings().gpu_mem_mib == mib


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("gpus", [[G0], [G0, G1]])
def test_what_a_shared_gpu_s_memory_grew_by_is_nobody_s(start: Start, gpus: list[str]) -> None:
    """The driver hides pids, as in a container."""
    clock, nvml = Clock(), FakeNvml(answers={"memory": {G0: 700, G1: 700, G2: 700}})
    one, alone = side_by_side(nvml, clock, [gpus, [G0], [G2]])[::2]
    for watcher in (one, alone):
        watcher.sample_before_trial()
        watcher.attach_to_trial(start())
    nvml.answers["memory"] = {G0: 9700, G1: 1700, G2: 4700}
    watch([one, alone], clock, 2)
    got = make_figures(one, (1000.0, 1002.0))
    assert got.result["gpu_mem_mib"] is got.result["gpu_mem_source"] is None
    assert got.missing["gpu_mem_mib"].endswith(", on GPU 0")
    assert "none of the trial's processes" in got.missing["gpu_mem_mib"]
    assert one.make_live_readings().gpu_mem_mib is None
    got = make_figures(alone, (1000.0, 1002.0))
    assert (got.result["gpu_mem_mib"], alone.make_live_readings().gpu_mem_mib) == (4000, 4000)


# ---------------------------------------------------------------- the whole GPU's figures, and energy


class Running(FakeNvml):
    """Counts energy by a clock."""

    clock_s: Clock

    def answer(self, name: str, uuid: str) -> Any:
        if name == "energy_j":
            return 1e6 + self.answers["power_w"][uuid] * self.clock_s.now
        return super().answer(name, uuid)


def test_energy_of_a_shared_gpu_is_left_to_be_divided(start: Start) -> None:
    clock = Clock()
    nvml = Running(answers={"utilisation": running({G0: 90, G1: 70}), "power_w": {G0: 500, G1: 300, G2: 200}})
    nvml.clock_s = clock
    watchers = side_by_side(nvml, clock, [[G0, G1], [G0], [G2]])
    for watcher in watchers:
        watcher.sample_before_trial()
    for watcher in watchers:
        watcher.attach_to_trial(start())
    windows = []
    for epoch in range(3):
        t0 = clock.now
        for watcher in watchers:
            watcher.sample_counters_at_edge(first=epoch == 1)
        watch(watchers, clock, 4)
        windows.append(Window(t0, clock.now, epoch, epoch > 0))
        for watcher in watchers:
            watcher.sample_counters_at_edge()
    both, one, alone = (make_figures(watcher, *windows) for watcher in watchers)
    assert both.joules_by_gpu["energy_j"] == pytest.approx({G0: 2000, G1: 1200})
    assert both.joules_by_gpu["energy_sampled_j"] == pytest.approx({G0: 2000, G1: 1200})
    assert both.joules_by_epoch[2] == pytest.approx({G0: 2000, G1: 1200})
    assert both.energy_j_by_epoch == {0: None, 1: None, 2: None}
    for column in ("energy_j", "energy_source", "energy_sampled_j"):
        assert both.result[column] is None
        assert "shared with other jobs" in both.missing[column]
        assert column not in both.provenance
    assert set(both.whole_provenance) == {"energy_j", "energy_sampled_j", "energy_source"}
    assert both.whole_provenance["energy_j"]["source"].startswith("NVML energy counter")
    assert both.result["power_w"] == pytest.approx(800)
    assert both.provenance["power_w"]["source"].endswith("other jobs shared 0")
    assert one.provenance["gpu_util_pct"]["source"].endswith("which other jobs shared")
    assert one.provenance["throttled_pct"]["source"].endswith("which other jobs shared")
    assert "shared" not in one.provenance["cpu_util_pct"]["source"]
    assert alone.result["energy_j"] == pytest.approx(800)
    assert alone.energy_j_by_epoch == pytest.approx({0: 800, 1: 800, 2: 800})
    assert alone.whole_provenance == {}
    assert alone.joules_by_gpu["energy_j"] == pytest.approx({G2: 800})
    assert "shared" not in alone.provenance["power_w"]["source"]


# ---------------------------------------------------------------- CPU time


@pytest.mark.alone
def test_cpu_seconds_between_two_times_are_each_job_s_own() -> None:
    """One job burns a core, the other sleeps."""
    one, other = (Watcher(None, MACHINE, [], ALLOWED) for _ in range(2))
    burn = "import time\nprint(flush=True)\nwhile True: pass"
    with (
        subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE) as busy,
        subprocess.Popen(["sleep", "100"]) as idle,
    ):
        try:
            assert busy.stdout
            busy.stdout.readline()
            one.attach_to_trial(busy.pid)
            other.attach_to_trial(idle.pid)
            t0 = time.monotonic()
            while time.monotonic() < t0 + 1.3:
                time.sleep(0.02)
                for watcher in (one, other):
                    watcher.sample_due()
            for watcher in (one, other):
                watcher.sample_counters_at_edge(first=True)
        finally:
            busy.kill()
            idle.kill()
    spent, idled = (
        compute_tree_cpu_s(one.make_watched(), t0, t0 + 1.2),
        compute_tree_cpu_s(other.make_watched(), t0, t0 + 1.2),
    )
    assert spent is not None
    assert 0.1 < spent <= 1.25
    assert idled == 0
    assert compute_tree_cpu_s(one.make_watched(), t0 - 1, t0 + 1) is None, "before it was watched"
    assert compute_tree_cpu_s(one.make_watched(), t0, t0 + 99) is None
