"""Cutting stored samples to windows: numbers whose answer is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from gpubench.node.watch import metrics
from gpubench.record.figures import WatchedFigures, compute_watched_figures
from gpubench.record.recording import EXPLAINED_COLUMNS
from gpubench.schema.codes import REASONS
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial, Window

WARM = Window(10.0, 14.0, 0, False)
FIRST = Window(14.5, 18.5, 1, True)
SECOND = Window(19.0, 23.0, 2, True)
WINDOWS = (WARM, FIRST, SECOND)


def watched(
    samples: Samples, windows: tuple[Window, ...] = WINDOWS, gpus: tuple[str, ...] = ("0", "1"), cpus: int = 4
) -> WatchedTrial:
    return WatchedTrial(
        samples=samples,
        windows=windows,
        gpus=gpus,
        baseline_mib={"0": 700.0, "1": 700.0},
        cpus=cpus,
        cpu_metric=metrics.CPU_BUSY,
    )


def fill(
    samples: Samples, metric: str, value: Callable[[float], float], device: str = "host", period: float = 0.1
) -> None:
    for k in range(round(20 / period)):
        t = 5 + k * period
        samples.add_reading(t, metric, value(t), device)


def always(value: float) -> Callable[[float], float]:
    return lambda _: value


def training(t: float) -> bool:
    return any(w.t0 <= t <= w.t1 for w in WINDOWS)


def test_means_are_of_measured_windows_alone() -> None:
    samples = Samples()
    fill(samples, "gpu_util_pct", lambda t: (100 if t < 14.2 else 80) if training(t) else 0, "0")
    fill(samples, "gpu_util_pct", lambda t: 40 if training(t) else 0, "1")
    fill(samples, "power_w", always(300), "0")
    fill(samples, "power_w", lambda t: 200 if training(t) else 999, "1")
    got = compute_watched_figures(watched(samples))
    # The warm-up's 100 and the pauses' 0 are out.
    assert got.result["gpu_util_pct"] == pytest.approx(60)
    assert got.result["gpu_util_max_pct"] == 80
    assert got.result["power_w"] == pytest.approx(500), "summed over the GPUs"
    facts = got.provenance["gpu_util_pct"]
    assert facts["period_s"] == 0.1
    assert 140 <= facts["samples"] <= 160
    assert facts["gaps"] == 0


@pytest.mark.parametrize("metric", ["gpu_util_pct", "gpu_util_buffer_pct"], ids=["polled", "buffer"])
@pytest.mark.parametrize("idle_s", [0.1, 0.3, 1.0])
def test_the_wait_for_the_first_batch_is_a_part_of_the_window(metric: str, idle_s: float) -> None:
    samples = Samples()
    fill(samples, metric, lambda t: 0 if FIRST.t0 - 0.01 < t < FIRST.t0 + idle_s + 0.01 else 90, "0")
    got = compute_watched_figures(watched(samples, (FIRST,), ("0",)))
    assert got.result["gpu_util_pct"] == pytest.approx(90 * (1 - idle_s / FIRST.seconds), abs=0.01)


@pytest.mark.parametrize("metric", ["gpu_util_pct", "gpu_util_buffer_pct"], ids=["polled", "buffer"])
def test_what_was_before_a_window_is_no_peak_of_it(metric: str) -> None:
    samples = Samples()
    fill(samples, metric, lambda t: 100 if t < FIRST.t0 + 0.15 else 60 if t < FIRST.t1 - 1 else 0, "0")
    got = compute_watched_figures(watched(samples, (FIRST,), ("0",)))
    assert got.result["gpu_util_max_pct"] == 60


def test_a_short_window_keeps_only_what_is_its_own_and_a_shorter_one_says_so() -> None:
    samples = Samples()
    fill(samples, "gpu_util_pct", always(50), "0")
    short = compute_watched_figures(watched(samples, (Window(14.05, 14.35, 1, True),), ("0",)))
    assert short.result["gpu_util_pct"] == 50
    assert short.provenance["gpu_util_pct"]["samples"] == 1
    shorter = compute_watched_figures(watched(samples, (Window(14.01, 14.05, 1, True),), ("0",)))
    assert shorter.result["gpu_util_pct"] is None
    assert "0.04 s" in shorter.missing["gpu_util_pct"]


def test_one_blind_gpu_makes_no_mean() -> None:
    samples = Samples()
    fill(samples, "gpu_util_pct", always(50), "0")
    samples.note_gap("gpu_util_pct", "utilisation: Not Supported", "1")
    got = compute_watched_figures(watched(samples))
    assert got.result["gpu_util_pct"] is None
    assert got.missing["gpu_util_pct"] == "utilisation: Not Supported"


def test_memory_is_the_peak_of_the_fullest_gpu_over_the_whole_trial() -> None:
    samples = Samples()
    fill(samples, metrics.PROCESS_MEMORY, lambda t: 9000 if 11 <= t < 12 else 5000, "0", 1.0)
    fill(samples, metrics.PROCESS_MEMORY, always(6000), "1", 1.0)
    got = compute_watched_figures(watched(samples))
    assert (got.result["gpu_mem_mib"], got.result["gpu_mem_source"]) == (9000, "nvml-process")


def test_without_process_memory_the_device_s_growth_stands_in() -> None:
    samples = Samples()
    samples.note_reason(metrics.PROCESS_MEMORY, "none of the trial's processes", "0")
    fill(samples, metrics.DEVICE_MEMORY.name, lambda t: 700 if t < 9 else 4700, "0")
    fill(samples, metrics.DEVICE_MEMORY.name, lambda t: 700 if t < 9 else 5700, "1")
    got = compute_watched_figures(watched(samples))
    assert (got.result["gpu_mem_mib"], got.result["gpu_mem_source"]) == (5000, "nvml-device-delta")
    assert "none of the trial's processes" in got.provenance["gpu_mem_mib"]["source"]


def test_device_memory_that_did_not_grow_is_no_zero() -> None:
    samples = Samples()
    for device in ("0", "1"):
        fill(samples, metrics.DEVICE_MEMORY.name, always(600), device)
    got = compute_watched_figures(watched(samples))
    assert got.result["gpu_mem_mib"] is None
    assert got.result["gpu_mem_source"] is None
    assert "did not grow" in got.missing["gpu_mem_mib"]


def test_cpu_figures_come_from_totals_at_the_edges() -> None:
    samples = Samples()
    # 3 of 4 CPUs busy in windows, 1 otherwise; the trial's own tree has 2 of them.
    times = sorted({5.0 + k for k in range(20)} | {e for w in WINDOWS for e in (w.t0, w.t1)})
    busy = tree = 0.0
    for before, t in zip([times[0], *times], times, strict=False):
        inside = training((before + t) / 2)
        busy += (t - before) * (3 if inside else 1)
        tree += (t - before) * (2 if inside else 0)
        samples.add_reading(t, metrics.CPU_BUSY, busy)
        samples.add_reading(t, metrics.CPU_STOLEN, 0.0)
        samples.add_reading(t, metrics.CPU_TREE, tree)
    got = compute_watched_figures(watched(samples, gpus=()))
    assert got.result["cpu_util_pct"] == pytest.approx(75)
    assert got.result["cpu_util_max_pct"] == pytest.approx(75)
    assert got.result["cpu_util_trial_pct"] == pytest.approx(50)
    assert got.result["cpu_s_per_epoch"] == pytest.approx(8)
    assert got.cpu_s_by_epoch == pytest.approx({0: 8.0, 1: 8.0, 2: 8.0})


def test_the_busiest_second_is_the_peak_and_an_edge_s_sliver_is_not() -> None:
    samples = Samples()
    # A sample 1 ms after another holds one whole tick of 10 ms: 1000 %, if it were believed.
    for t, busy in [
        (14.0, 0.0),
        (14.5, 0.5),
        (15.0, 1.0),
        (15.001, 1.01),
        (16.0, 3.0),
        (17.0, 4.0),
        (18.5, 5.5),
    ]:
        samples.add_reading(t, metrics.CPU_BUSY, busy)
    got = compute_watched_figures(watched(samples, (FIRST,), ()))
    # Two of four CPU seconds lie in the second from 15 to 16.
    assert got.result["cpu_util_max_pct"] == pytest.approx(50, abs=1)
    assert got.result["cpu_util_pct"] == pytest.approx(100 * 5 / 16)


def test_stolen_time_is_nobody_s() -> None:
    samples = Samples()
    for t, busy, stolen in [(14.0, 0.0, 0.0), (24.0, 20.0, 20.0)]:
        samples.add_reading(t, metrics.CPU_BUSY, busy)
        samples.add_reading(t, metrics.CPU_STOLEN, stolen)
        samples.add_reading(t, metrics.CPU_TREE, busy)
    spread = WatchedTrial(
        samples=samples,
        windows=(Window(14.0, 24.0, 1, True),),
        gpus=(),
        baseline_mib={},
        cpus=4,
        cpu_metric=metrics.CPU_BUSY,
    )
    got = compute_watched_figures(spread)
    # Readings 10 s apart are still exact where the window's edges fall on them.
    assert got.result["cpu_util_pct"] == pytest.approx(100)
    assert got.result["cpu_util_trial_pct"] == pytest.approx(100)


def test_a_pause_in_sampling_at_an_edge_has_a_reason() -> None:
    samples = Samples()
    for t in (5.0, 12.0, 20.0, 24.0):
        samples.add_reading(t, metrics.CPU_TREE, t)
        samples.add_reading(t, metrics.CPU_BUSY, t)
    got = compute_watched_figures(watched(samples))
    assert got.result["cpu_s_per_epoch"] is None
    assert "8.0 s" in got.missing["cpu_s_per_epoch"]
    assert got.cpu_s_by_epoch[1] is None


def test_more_cpu_time_than_there_is_is_no_share() -> None:
    samples = Samples()
    for k in range(20):
        samples.add_reading(5.0 + k, metrics.CPU_TREE, 8.0 * k)
    got = compute_watched_figures(watched(samples))
    assert got.result["cpu_util_trial_pct"] is None
    assert "2.0 times" in got.missing["cpu_util_trial_pct"]


def every_column(got: WatchedFigures) -> None:
    assert got.result.keys() <= set(EXPLAINED_COLUMNS)
    assert {c for c, v in got.result.items() if v is None} == got.missing.keys()
    assert all(got.missing.values())
    assert got.provenance.keys() == {c for c, v in got.result.items() if v is not None}


def test_nothing_measured_gives_reasons_and_the_memory_so_far() -> None:
    samples = Samples()
    fill(samples, metrics.PROCESS_MEMORY, always(5000), "0", 1.0)
    got = compute_watched_figures(watched(samples, (WARM,), ("0",)))
    every_column(got)
    assert got.result["gpu_mem_mib"] == 5000
    assert got.missing["gpu_util_pct"] == REASONS["before-window"]
    every_column(compute_watched_figures(watched(Samples(), ())))


def test_rows_are_tidy_and_in_order() -> None:
    samples = Samples()
    samples.add_reading(12.0, "power_w", 300.0, "0")
    samples.add_reading(11.5, "cpu_tree_s", 1.0)
    assert samples.list_rows(10.0) == [(1.5, "host", "cpu_tree_s", 1.0), (2.0, "0", "power_w", 300.0)]


@pytest.mark.parametrize(
    ("busy_cpus", "crowding"),
    [(4.0, -200.0), (12.0, 0.0), (14.0, 50.0), (16.0, 100.0)],
)
def test_of_a_number_of_cpus_what_the_others_have_no_room_for_is_told(
    busy_cpus: float, crowding: float
) -> None:
    """Four of sixteen CPUs, none in particular: twelve others are filled first."""
    samples = Samples()
    # Busier outside of the measured windows, which tells nothing.
    total = 0.0
    for before, t in pairwise([5.0, *sorted({*range(6, 25), *(e for w in WINDOWS for e in (w.t0, w.t1))})]):
        inside = training((before + t) / 2) and before >= FIRST.t0
        total += (t - before) * (busy_cpus if inside else 16.0)
        samples.add_reading(t, metrics.CPU_HOST, total)
    got = compute_watched_figures(replace(watched(samples), spare_cpus=12.0))
    assert got.crowding_pct == pytest.approx(crowding)


def test_cpus_of_its_own_can_not_be_crowded_so_and_a_silent_kernel_tells_nothing() -> None:
    samples = Samples()
    fill(samples, metrics.CPU_HOST, lambda t: t)
    assert compute_watched_figures(watched(samples)).crowding_pct is None
    assert compute_watched_figures(replace(watched(Samples()), spare_cpus=12.0)).crowding_pct is None
