"""Utilisation from the driver's buffer, throttling, clocks, the peak between two polls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpubench.node.watch import metrics
from gpubench.record.figures import compute_watched_figures
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial, Window

WINDOWS = (Window(10.0, 14.0, 0, False), Window(14.0, 18.0, 1, True), Window(18.0, 22.0, 2, True))


def watched(samples: Samples, gpus: tuple[str, ...] = ("0",)) -> WatchedTrial:
    return WatchedTrial(
        samples=samples, windows=WINDOWS, gpus=gpus, baseline_mib={}, cpus=4, cpu_metric=metrics.CPU_BUSY
    )


def test_the_driver_s_buffer_sees_what_lies_between_two_polls() -> None:
    samples = Samples()
    for k in range(200):
        samples.add_reading(5 + k * 0.1, "gpu_util_pct", 100.0, "0")  # every poll met a busy moment
    for k in range(100):
        samples.add_reading(5 + k * 0.2, "gpu_util_buffer_pct", 100.0 if k % 2 else 20.0, "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["gpu_util_pct"] == pytest.approx(60, abs=1)
    assert got.result["gpu_util_max_pct"] == 100
    assert "buffer" in got.provenance["gpu_util_pct"]["source"]


def test_a_buffer_that_ran_over_gives_way_to_polls_and_says_so() -> None:
    samples = Samples()
    for k in range(200):
        samples.add_reading(5 + k * 0.1, "gpu_util_pct", 80.0, "0")
    for k in [*range(50), *range(70, 100)]:  # four seconds were lost
        samples.add_reading(5 + k * 0.2, "gpu_util_buffer_pct", 60.0, "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["gpu_util_pct"] == pytest.approx(80)
    assert "polled" in got.provenance["gpu_util_pct"]["source"]


def test_the_peak_of_a_part_of_the_windows_is_none() -> None:
    samples = Samples()
    for k in range(200):
        samples.add_reading(5 + k * 0.1, "gpu_util_pct", 80.0, "0")
    for k in range(50):
        samples.add_reading(
            5 + k * 0.2, "gpu_util_buffer_pct", 60.0, "0"
        )  # the wall clock was set back at 15 s
    assert compute_watched_figures(watched(samples)).result["gpu_util_max_pct"] == 80


@pytest.mark.parametrize("metric", ["gpu_mem_util_buffer_pct", "gpu_mem_util_pct"])
def test_no_peak_is_below_the_mean_which_holds_a_window_s_first_moments_too(metric: str) -> None:
    samples = Samples()
    for k in range(
        200
    ):  # what was read 0.1 s after the window's beginning, of the time before it, is above 0
        samples.add_reading(5.1 + k * 0.1, metric, 1.0 if k == 90 else 0.0, "0")
    got = compute_watched_figures(watched(samples)).result
    assert got["gpu_mem_util_pct"] == pytest.approx(0.1 / 8)
    assert got["gpu_mem_util_max_pct"] == got["gpu_mem_util_pct"]


def test_a_peak_that_was_polled_stays_where_the_mean_can_t_be_told() -> None:
    samples = Samples()
    for k in [*range(100), *range(130, 200)]:  # three seconds were not polled
        samples.add_reading(5 + k * 0.1, "gpu_util_pct", 80.0, "0")
    got = compute_watched_figures(watched(samples)).result
    assert (got["gpu_util_pct"], got["gpu_util_max_pct"]) == (None, 80)


def test_the_highest_temperature_is_one_that_was_read() -> None:
    """It is a moment's, so a mean over the time before a window's first reading says nothing of it."""
    samples = Samples()
    for k in range(200):
        samples.add_reading(5.1 + k * 0.1, metrics.TEMPERATURE, 50.0 if k == 90 else 40.0, "0")
    assert compute_watched_figures(watched(samples)).result["temperature_c"] == 40


def test_without_a_buffer_the_reason_stands_beside_the_polls() -> None:
    samples = Samples()
    samples.note_gap("gpu_util_buffer_pct", "buffer of gpu_util_pct: Not Supported", "0")
    for k in range(200):
        samples.add_reading(5 + k * 0.1, "gpu_util_pct", 80.0, "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["gpu_util_pct"] == pytest.approx(80)
    assert "Not Supported" in got.provenance["gpu_util_pct"]["source"]


def test_throttling_is_a_share_of_the_windows_with_its_reasons() -> None:
    samples = Samples()
    for k in range(200):
        t = 5 + k * 0.1
        # 0x1 idle and 0x2 a clock that was set are no accidents.
        samples.add_reading(t, metrics.THROTTLE, (0x4 if t >= 16 else 0x3) | (0x40 if t >= 20 else 0), "0")
        samples.add_reading(t, metrics.THROTTLE, 0x0, "1")
    got = compute_watched_figures(watched(samples, ("0", "1")))
    assert got.result["throttled_pct"] == pytest.approx(100 * 6 / 8 / 2, abs=1)
    assert got.result["throttle_reasons"] == "power cap+heat (hardware)"


def test_clocks_that_nothing_lowered_have_a_share_of_nothing_and_no_reasons() -> None:
    samples = Samples()
    for k in range(200):
        samples.add_reading(5 + k * 0.1, metrics.THROTTLE, 0x1, "0")
        samples.add_reading(5 + k * 0.1, metrics.SM_CLOCK, 1980.0 if k % 2 else 1970.0, "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["throttled_pct"] == 0, "measured, and it is nothing"
    assert got.missing["throttle_reasons"] == "nothing lowered the clocks"
    assert got.result["sm_clock_mhz"] == pytest.approx(1975, abs=1)


def test_throttling_that_was_not_sampled_is_unknown() -> None:
    samples = Samples()
    samples.note_gap(metrics.THROTTLE, "throttle reasons: Not Supported", "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["throttled_pct"] is None
    assert (
        got.missing["throttled_pct"] == got.missing["throttle_reasons"] == "throttle reasons: Not Supported"
    )


def test_what_the_allocator_held_between_two_polls_is_added() -> None:
    samples = Samples()
    for t, mib in ((9, 600.0), (12, 4000.0), (22, 5000.0)):
        samples.add_reading(t, metrics.PROCESS_MEMORY, mib, "0")
    seen = watched(samples)
    assert compute_watched_figures(seen).result["gpu_mem_mib"] == 5000
    assert compute_watched_figures(replace(seen, passed_mib={"0": 900.0})).result["gpu_mem_mib"] == 5900


def test_it_is_added_to_the_device_s_growth_too() -> None:
    samples = Samples()
    for t, mib in ((9, 700.0), (22, 5000.0)):
        samples.add_reading(t, metrics.DEVICE_MEMORY.name, mib, "0")
    seen = replace(watched(samples), baseline_mib={"0": 100.0}, passed_mib={"0": 900.0})
    got = compute_watched_figures(seen).result
    assert (got["gpu_mem_mib"], got["gpu_mem_source"]) == (5800, "nvml-device-delta")
