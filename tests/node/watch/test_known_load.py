"""Loads of known size, read back by the real watcher: a busy core, workers that have gone, memory held on a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.environment import Machine, make_machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.node.watch.watcher import Watcher
from gpubench.record.figures import WatchedFigures, compute_watched_figures
from gpubench.schema.watched import Window

ALLOWED = tuple(sorted(os.sched_getaffinity(0)))
POINTS = 2.0
WINDOW_S = 3.5

BURN = """
import json, os, resource, sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def spent():
    own, gone = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + gone.ru_utime + gone.ru_stime
def say(): print(json.dumps([time.monotonic(), spent()]), flush=True)
"""


def proc_stat(cpus: tuple[int, ...]) -> tuple[float, float, float]:
    """Busy, usable and stolen seconds of these CPUs: an independent reading of /proc/stat, nothing of gpubench's."""
    busy = idle = stolen = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *rest = line.split()
        if name.removeprefix("cpu").isdigit() and int(name[3:]) in cpus:
            user, nice, system, idling, iowait, irq, softirq, steal = map(int, rest[:8])
            busy += user + nice + system + irq + softirq
            idle += idling + iowait
            stolen += steal
    tick = os.sysconf("SC_CLK_TCK")
    return busy / tick, (busy + idle) / tick, stolen / tick


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """One load, by gpubench and by others."""

    got: WatchedFigures
    seconds: float
    rusage_s: float
    """CPU seconds of the load by its own account, of its children that have ended too."""
    stat_pct: float
    """Busy share of the CPUs by /proc/stat."""
    stolen_s: float
    """CPU seconds in which the host of this machine ran somebody else."""


def read_back(load: str, cpus: tuple[int, ...]) -> Read:
    """Watches a process that runs `load` between two calls of `say()`, from outside."""
    watcher = Watcher(None, a_machine(), [], cpus)
    watcher.sample_before_trial()
    with python(load) as child:
        assert child.stdout
        watcher.attach_to_trial(child.pid)
        t0, before = json.loads(child.stdout.readline())
        stat0 = proc_stat(cpus)
        watcher.sample_counters_at_edge(first=True)
        while (left := t0 + WINDOW_S - 0.1 - time.monotonic()) > 0:
            time.sleep(min(left, max(0.0, watcher.next_deadline() - time.monotonic())))
            watcher.sample_due()
        t1, after = json.loads(child.stdout.readline())
        watcher.sample_counters_at_edge()
        stat1 = proc_stat(cpus)
        watcher.sample_final_memory()
    return Read(
        got=compute_watched_figures(watcher.make_watched().replace_windows([Window(t0, t1, 0, True)])),
        seconds=t1 - t0,
        rusage_s=after - before,
        stat_pct=100 * (stat1[0] - stat0[0]) / (stat1[1] - stat0[1]),
        stolen_s=stat1[2] - stat0[2],
    )


def a_machine() -> Machine:
    return make_machine(None)


@contextmanager
def python(code: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A child that ends when it is told to."""
    child = subprocess.Popen(
        [sys.executable, "-c", code + "\nsys.stdin.readline()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        yield child
        child.communicate("\n", timeout=30)
    finally:
        child.kill()
        child.wait()


@pytest.mark.alone
@pytest.mark.parametrize("cpus", [ALLOWED[:1], ALLOWED], ids=["of 1", "of all"])
def test_one_busy_core_of_n(cpus: tuple[int, ...]) -> None:
    """Against /proc/stat and the process's own account, since others may use these CPUs meanwhile."""
    load = (
        f"{BURN}\nos.sched_setaffinity(0, [{cpus[0]}])\nsay(); end = time.monotonic() + {WINDOW_S}\n"
        "while time.monotonic() < end: pass\nsay()"
    )
    read = read_back(load, cpus)
    got = read.got.result
    own_pct = 100 * read.rusage_s / (len(cpus) * read.seconds - read.stolen_s)
    print(f"{len(cpus)} CPUs: {got}, /proc/stat {read.stat_pct:.2f} %, its own account {own_pct:.2f} %")
    assert got["cpu_util_pct"] == pytest.approx(read.stat_pct, abs=POINTS)
    # The bound core is busy, whoever shares it.
    assert got["cpu_util_pct"] >= 100 / len(cpus) - POINTS
    assert got["cpu_util_trial_pct"] == pytest.approx(own_pct, abs=POINTS)
    assert got["cpu_s_per_epoch"] == pytest.approx(read.rusage_s, abs=POINTS / 100 * read.seconds)


@pytest.mark.alone
def test_workers_that_have_gone_are_counted() -> None:
    """Four workers burn 0.4 s each, one after the other, and nobody is left of them at the end."""
    load = (
        f"{BURN}\nsay(); end = time.monotonic() + {WINDOW_S}\n"
        "for _ in range(4):\n"
        "    if (pid := os.fork()) == 0: burn(0.4); os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "time.sleep(max(0, end - time.monotonic())); say()"
    )
    read = read_back(load, ALLOWED)
    assert read.rusage_s >= 1.6
    assert read.got.result["cpu_s_per_epoch"] == pytest.approx(read.rusage_s, abs=0.05)
    share = 100 * read.rusage_s / (len(ALLOWED) * read.seconds - read.stolen_s)
    assert read.got.result["cpu_util_trial_pct"] == pytest.approx(share, abs=POINTS)


# ---------------------------------------------------------------- on a GPU

HOLD = """
import json, os, sys, time
import torch
def hold(mib): return torch.ones(mib << 18, device="cuda")
def say(): torch.cuda.synchronize(); print(json.dumps([time.monotonic(), 0]), flush=True); sys.stdin.readline()
torch.zeros(1, device="cuda").add_(1)
hold(64); torch.cuda.empty_cache()
"""


@pytest.mark.gpu
@pytest.mark.parametrize("mib", [1000, 8000])
def test_memory_that_is_held_is_read_back(mib: int) -> None:
    """X MiB by torch between two readings of one process; and the trial's peak is that process at its fullest."""
    nvml = open_nvml()
    here = make_machine(nvml)
    uuid = here.gpus[0].uuid
    watcher = Watcher(nvml, here, [uuid], here.cpu_ids)
    watcher.sample_before_trial()
    code = f"{HOLD}\nsay(); kept = hold({mib}); say(); del kept; torch.cuda.empty_cache(); say()"
    with python(code, CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=uuid) as child:
        watcher.attach_to_trial(child.pid)
        times: list[float] = []
        own: list[dict[str, float] | None] = []
        for _ in range(3):
            assert child.stdout
            assert child.stdin
            times.append(json.loads(child.stdout.readline())[0])
            watcher.sample_counters_at_edge()
            # Slots of the regular samples pass: what the figures are made of.
            until = time.monotonic() + 1.2
            while time.monotonic() < until:
                time.sleep(max(0.0, min(until, watcher.next_deadline()) - time.monotonic()))
                watcher.sample_due()
            own.append(watcher.read_trial_gpu_mib())
            child.stdin.write("\n")
            child.stdin.flush()
        got: dict[str, Any] = compute_watched_figures(
            watcher.make_watched().replace_windows([Window(times[0], times[2], 0, True)])
        ).result
    before, held, after = ((now or {}).get(uuid) for now in own)
    print(f"{mib} MiB: {before}, {held}, {after}; {got['gpu_mem_mib']} by {got['gpu_mem_source']}")
    if before is None or held is None or after is None:
        # A container whose pids the driver does not share.
        assert got["gpu_mem_source"] == "nvml-device-delta"
        assert got["gpu_mem_mib"] > mib
    else:
        assert held - before == pytest.approx(mib, rel=0.01)
        assert after == pytest.approx(before, abs=0.01 * mib)
        assert got["gpu_mem_mib"] == pytest.approx(held, rel=0.01)
        assert got["gpu_mem_source"] == "nvml-process"
