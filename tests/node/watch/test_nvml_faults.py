"""Every call of the NVML seam fails, in every way: a figure is right, or it is empty with a reason. Never 0, no crash.

The stand-in is a busy machine whose true figures are known. A call of it (or several) fails at once, from some call
on, or now and then, while the real watcher looks on with a scripted clock.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import run_with, sweep_of
from fake_nvml import FakeNvml, calls_of_the_seam, gpu, refused, running
from watched import Clock, make_figures, watch

from gpubench.node.environment import Machine
from gpubench.node.watch.idle import sample_gpus_before_sweep
from gpubench.node.watch.nvml import History, Nvml
from gpubench.node.watch.nvml_calls import SETTINGS, NvmlCall, Utilisation
from gpubench.node.watch.watcher import Watcher
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.record.figures import WatchedFigures
from gpubench.render.live import QuietView
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.schema.columns import MEASURED
from gpubench.schema.events import Begin, End
from gpubench.schema.order import TrialOrder
from gpubench.schema.watched import Window

G0, G1 = gpu(0).uuid, gpu(1).uuid
CALLS = sorted(calls_of_the_seam())
ERRORS = (
    "Not Supported",
    "Insufficient Permissions",
    "GPU is lost",
    "GPU requires restart",
    "Not Found",
    "Unknown Error",
    "Function Not Found",
    "Timeout",
    "Uninitialized",
)
"""What the driver says, as pynvml words it. `test_nvml.py` shows that each of its errors comes through so."""

EPOCH_S = 4.0
TRUE: dict[str, Any] = {
    "gpu_mem_mib": 5000,
    "gpu_util_pct": 80,
    "gpu_util_max_pct": 90,
    "gpu_mem_util_pct": 30,
    "gpu_mem_util_max_pct": 40,
    "power_w": 800,
    "energy_j": 800 * EPOCH_S,
    "energy_sampled_j": 800 * EPOCH_S,
    "sm_clock_mhz": 1755,
    "throttled_pct": 100,
    "throttle_reasons": "power cap",
    "temperature_c": 61,
}
"""The stand-in's truth, by column."""
SOURCES: dict[str, frozenset[str]] = {
    "gpu_mem_source": frozenset({"nvml-process", "nvml-device-delta"}),
    "energy_source": frozenset(),
}
"""Columns of words: what they may say; none: anything but nothing."""
STANDS_ON: dict[str, tuple[set[str], ...]] = {
    "gpu_mem_mib": ({"processes"}, {"memory"}),
    "gpu_mem_source": ({"processes"}, {"memory"}),
    "gpu_util_pct": ({"history"}, {"utilisation"}),
    "gpu_util_max_pct": ({"history"}, {"utilisation"}),
    "gpu_mem_util_pct": ({"history"}, {"utilisation"}),
    "gpu_mem_util_max_pct": ({"history"}, {"utilisation"}),
    "power_w": ({"history"}, {"power_w"}),
    "energy_j": ({"energy_j"}, {"history"}, {"power_w"}),
    "energy_source": ({"energy_j"}, {"history"}, {"power_w"}),
    "energy_sampled_j": ({"history"}, {"power_w"}),
    "sm_clock_mhz": ({"sm_clock_mhz"},),
    "throttled_pct": ({"throttle_mask"},),
    "throttle_reasons": ({"throttle_mask"},),
    "temperature_c": ({"temperature_c"},),
}
"""Column -> the calls of which any one that never fails must do for its figure."""
NAMED = {call for ways in STANDS_ON.values() for way in ways for call in way}


@dataclass
class Faulty:
    """An NVML whose `calls` fail when `when` says so of a call's number, counted from 0 for each call."""

    inner: FakeNvml
    calls: frozenset[str]
    error: str
    when: Callable[[int], bool]
    gpus: frozenset[str] = frozenset({G0, G1})
    """GPUs whose calls fail, and count."""
    made: dict[str, int] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def ask(self, call: NvmlCall[Any], uuid: str) -> Any:
        self._maybe_fail(call.name, uuid)
        return self.inner.ask(call, uuid)

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        self._maybe_fail("history", uuid)
        return self.inner.read_driver_samples(uuid, what, after_s)

    def _maybe_fail(self, name: str, uuid: str) -> None:
        if name in self.calls and uuid in self.gpus:
            number = self.made.get(name, 0)
            self.made[name] = number + 1
            if self.when(number):
                raise refused(name, self.error)


WHEN: dict[str, Callable[[int], bool]] = {
    "at once": lambda _: True,
    "from the second call on": lambda n: n >= 1,
    "from the seventh call on": lambda n: n >= 6,
    "from the fiftieth call on": lambda n: n >= 49,
    "the first four calls": lambda n: n < 4,
    "every third call": lambda n: n % 3 == 2,
    "two calls of three": lambda n: n % 3 != 2,
}


WALL_AHEAD = 1_700_000_000.0


@dataclass
class Busy(FakeNvml):
    """A machine that trains, by a clock: the counter counts, and the driver keeps its samples.

    But from `full_from` to `full_until` it does everything by half: what was read outside the measured windows shows.
    """

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    full_from: float = 0.0
    full_until: float = math.inf

    def is_full(self, t: float) -> bool:
        return self.full_from - 1e-6 <= t < self.full_until - 1e-6

    def part(self, t: float) -> float:
        return 1.0 if self.is_full(t) else 0.5

    def answer(self, name: str, uuid: str) -> Any:
        told = super().answer(name, uuid)
        match name:
            case "utilisation":
                part = self.part(self.now())
                return Utilisation(gpu_pct=part * told.gpu_pct, memory_pct=part * told.memory_pct)
            case "power_w" | "sm_clock_mhz":
                return self.part(self.now()) * told
            case "throttle_mask":
                return told if self.is_full(self.now()) else 0x1
            case "temperature_c":
                return 61 if self.is_full(self.now()) else 50
            case "energy_j":
                counted = int(self.now() * 10 + 1e-6) / 10  # the driver counts on every 0.1 s
                full = max(0.0, min(counted, self.full_until) - self.full_from)
                return 1e6 + self.answers["power_w"][uuid] * (counted + full) / 2
        return told

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        used = self.answers["utilisation"][uuid]
        period, depth, value = {
            "gpu_util_pct": (0.2, 14.0, used.gpu_pct),
            "gpu_mem_util_pct": (0.2, 14.0, used.memory_pct),
            "power_w": (0.02, 2.4, self.answers["power_w"][uuid]),
        }[what]
        newest = int(self.wall() / period)
        oldest = int(max(after_s, self.wall() - depth) / period)
        times = (k * period for k in range(oldest, newest + 1))
        ahead = self.wall() - self.now()
        # A sample stands for the time before it.
        return [(t, self.part(t - period - ahead) * value) for t in times if t > after_s]


def busy(**clocks: Callable[[], float]) -> Busy:
    return Busy(
        answers={
            "utilisation": running({G0: 90, G1: 70}, {G0: 40, G1: 20}),
            "memory": {G0: 700, G1: 700},
            "power_w": {G0: 500, G1: 300},
            "sm_clock_mhz": {G0: 1755, G1: 1755},
            "throttle_mask": {G0: 0x4, G1: 0x4},
        },
        **clocks,
    )


def trial(
    calls: Sequence[str],
    error: str,
    when: Callable[[int], bool],
    gpus: Sequence[str] = (G0, G1),
) -> WatchedFigures:
    """A trial of three epochs on two GPUs, watched while these calls fail."""
    clock, pid = Clock(), os.getpid()
    wall = lambda: clock() + WALL_AHEAD  # noqa: E731
    inner = busy(now=clock, wall=wall)
    inner.full_from = math.inf
    nvml: Nvml = Faulty(inner, frozenset(calls), error, when, frozenset(gpus))
    watcher = Watcher(nvml, machine(), [G0, G1], machine().cpu_ids, clock, wall)
    watcher.sample_before_trial()
    watcher.attach_to_trial(pid)
    watch(watcher, clock, 2)
    inner.answers["processes"] = {G0: [(pid, 5000)], G1: [(pid, 4000)]}
    inner.answers["memory"] = {G0: 5700, G1: 4700}
    windows = []
    for epoch in range(3):
        t0 = clock.now
        if epoch == 1:
            inner.full_from = t0
        watcher.sample_counters_at_edge(first=epoch == 1)
        watch(watcher, clock, EPOCH_S)
        windows.append(Window(t0, clock.now, epoch, epoch > 0))
        watcher.sample_counters_at_edge()
        watch(watcher, clock, 0.05)
    watcher.sample_final_memory()
    inner.full_until = clock.now
    watch(watcher, clock, 1)
    watcher.fetch_driver_samples()
    watcher.make_live_readings()
    return make_figures(watcher, *windows)


def machine() -> Machine:
    return scripted.computer(2)


def faults(got: WatchedFigures, healthy: set[str]) -> list[str]:
    """What is wrong with these figures, where the calls `healthy` never failed."""
    wrong = []
    for column, true in {**TRUE, **SOURCES}.items():
        value, why = got.result.get(column), got.missing.get(column)
        if value is None:
            if not why:
                wrong.append(f"{column}: empty without a reason")
            if any(calls <= healthy for calls in STANDS_ON[column]):
                wrong.append(f"{column}: empty ({why}), though it could be had another way")
        elif why:
            wrong.append(f"{column}: {value}, and a reason why it is empty: {why}")
        elif column in SOURCES:
            if not value or (true and value not in true):
                wrong.append(f"{column}: {value!r}")
        elif isinstance(true, str):
            if value != true:
                wrong.append(f"{column}: {value!r}, truly {true!r}")
        elif value != pytest.approx(true, rel=0.02):
            wrong.append(f"{column}: {value}, truly {true}")
        if value is not None and not got.provenance.get(column, {}).get("source"):
            wrong.append(f"{column}: {value} from nowhere")
    return wrong


def test_a_new_call_is_not_forgotten() -> None:
    settings = {call.name for call in SETTINGS.values()} | {"power_range_w", "clock_range_mhz"}
    assert set(CALLS) - NAMED == {"desktop", "max_sm_clock_mhz"} | settings


def test_the_healthy_machine_is_read_right() -> None:
    got = trial([], "", lambda _: False)
    assert faults(got, set(CALLS)) == []
    assert got.result["gpu_mem_source"] == "nvml-process"


def fail_by_turns(calls: Sequence[str]) -> list[tuple[str, str, str]]:
    """Each of these in each way of failing, with one error after the other; once each of the other calls."""
    ways = [*itertools.product(calls, WHEN), *((call, "at once") for call in CALLS if call not in calls)]
    return [(call, when, error) for (call, when), error in zip(ways, itertools.cycle(ERRORS), strict=False)]


@pytest.mark.parametrize(("call", "when", "error"), fail_by_turns(sorted(NAMED)))
def test_a_call_that_fails(call: str, when: str, error: str) -> None:
    got = trial([call], error, WHEN[when])
    assert faults(got, set(CALLS) - {call}) == []


@pytest.mark.parametrize("when", WHEN)
def test_a_gpu_that_is_lost(when: str) -> None:
    assert faults(trial(CALLS, "GPU is lost", WHEN[when]), set()) == []


@pytest.mark.parametrize("error", ["GPU is lost", "Unknown Error"])
@pytest.mark.parametrize("when", WHEN)
def test_one_of_two_gpus_is_lost(when: str, error: str) -> None:
    for gpu_uuid in (G0, G1):
        got = trial(CALLS, error, WHEN[when], [gpu_uuid])
        assert faults(got, set()) == [], gpu_uuid
        if when in ("at once", "from the second call on"):
            assert error in got.missing["power_w"]
            assert error in got.missing["gpu_util_pct"]


@pytest.mark.parametrize(
    ("call", "when", "error"), fail_by_turns(["power_w", "utilisation", "history", "processes", "desktop"])
)
def test_the_look_beforehand(call: str, when: str, error: str) -> None:
    """Idle power, and who is there: a figure, or why there is none."""
    clock = Clock()
    wall = lambda: clock() + WALL_AHEAD  # noqa: E731

    def sleep(seconds: float) -> None:
        clock.now += seconds

    nvml = Faulty(busy(now=clock, wall=wall), frozenset([call]), error, WHEN[when])
    looks = sample_gpus_before_sweep(nvml, [G0, G1], clock=clock, wall=wall, sleep=sleep)
    for uuid, watts, util in ((G0, 500, 90), (G1, 300, 70)):
        look = looks[uuid]
        for name, got, true in (("power_w", look.power_w, watts), ("util_pct", look.util_pct, util)):
            assert got == pytest.approx(true) if got is not None else error in look.missing[name], name
        for name, found in (("compute", look.compute), ("desktop", look.desktop)):
            assert found == () if found is not None else error in look.missing[name], name


@pytest.mark.parametrize("error", ERRORS)
def test_a_reason_is_the_driver_s(error: str) -> None:
    got = trial(CALLS, error, WHEN["at once"])
    for column in (*TRUE, *SOURCES):
        assert error in got.missing[column], column
    for column in ("cpu_util_pct", "cpu_util_trial_pct", "cpu_s_per_epoch", "host_mem_mib"):
        # The host's figures are none of NVML's.
        assert got.result[column] is not None


# ---------------------------------------------------------------- a whole sweep

BASE = """
name = "test"
[fixed]
model = "lenet"
variant = "synthetic"
input_size = 28
[run]
rounds = 1
epochs = 1
warmup_epochs = 0
"""


def in_real_time(order: TrialOrder) -> Iterator[scripted.Event]:
    """A trial of one epoch, during which the sweep's own loop watches at its own pace."""
    yield from scripted.hello(order)
    steps = order.data.train_images // order.trial.batch_size
    yield Begin(rank=0, epoch=0, measured=True, steps=steps)
    t0 = time.monotonic()
    while time.monotonic() < t0 + 0.5:
        time.sleep(0.005)
        yield scripted.at(t0)
    t1 = time.monotonic()
    yield scripted.steps(0, 0, steps, t1 - t0, wait_s=0.1)
    yield End(rank=0, epoch=0, measured=True, steps=steps, t0=t0, t1=t1, first_batch_s=0.01, train_loss=1.0)
    yield from scripted.result(order)


@pytest.mark.slow
def test_a_sweep_stores_its_records_whatever_fails(tmp_path: Path) -> None:
    """One trial for each call, and one for all of them together."""
    nvml = Faulty(busy(), frozenset(), "Timeout", WHEN["at once"])
    nvml.inner.answers["processes"] = {G0: [(os.getpid(), 5000)]}
    turns = [*([call] for call in CALLS), CALLS]
    batches = ",".join(str(64 + 16 * k) for k in range(len(turns)))
    experiment = apply_options(
        parse_experiment(BASE, "test"), ExperimentOptions(fields={"batch_size": batches})
    )
    plan = expand_experiment(experiment, device="cuda", sources=DiskSources(), order="given")
    work = sweep_of(plan, tmp_path / "results", machine(), nvml=nvml)
    work.load()
    work.runner.results.create_folder()
    store_plan(work)

    def choose(order: TrialOrder) -> scripted.Script:
        nvml.calls, nvml.made = frozenset(turns[(order.trial.batch_size - 64) // 16]), {}
        return in_real_time

    launcher = scripted.Scripted(choose)
    summary = run_with(launcher, work, QuietView())
    launcher.close()
    assert (summary.ran, summary.failed) == (len(turns), 0)
    for record in sorted(Results(tmp_path / "results").read_records(), key=lambda r: r.trial["batch_size"]):
        json.loads(json.dumps(record.to_stored()))
        assert record.status == "ok"
        for column in (c.name for c in MEASURED if c.name != "doubts"):
            value, why = record.result.get(column), record.missing.get(column)
            assert (value is None) == bool(why), column
            if column in TRUE:
                assert value != 0, f"{column}: 0 for unknown"
    assert (tmp_path / "results" / "trials.csv").exists()
