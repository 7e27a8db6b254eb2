"""Columns of meters outside of the GPU, from samples whose answer is known."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from recorded_meter import RecordedMeter

from gpubench.node.watch import metrics
from gpubench.node.watch.meters.meter import Reading
from gpubench.node.watch.meters.sampling import MeterReader
from gpubench.record.figures import WatchedFigures, compute_watched_figures
from gpubench.schema.codes import REASONS, encode_reason, format_reason
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import HOST, Samples
from gpubench.schema.watched import WatchedMeter, WatchedTrial, Window

RAPL = WatchedMeter("rapl", "rapl_w", 0.1, False, False)
PLUG = WatchedMeter("http://plug/status", "meter_w", 0.5, True, False)
BEGUN, WINDOWS = 100.0, (Window(101.2, 103.0, 0, False), Window(103.0, 107.0, 1, True, 2.0))
"""A trial that is launched at `BEGUN`, warms up and is measured for 4 s, in which it does two epochs' work."""
LAST = 115.0
IDLE_W, LOAD_W = 80.0, 300.0
TRUE_J = (IDLE_W + LOAD_W) * 4.0


def draw(t: np.ndarray, load_w: float = LOAD_W, idle_w: float = IDLE_W) -> np.ndarray:
    return idle_w + load_w * ((t >= WINDOWS[0].t0) & (t < WINDOWS[-1].t1))


def average(t: np.ndarray, width_s: float, load_w: float = LOAD_W) -> np.ndarray:
    """The mean of what was drawn in so many seconds before each time."""
    return np.array([draw(np.linspace(end - width_s, end, 400, endpoint=False), load_w).mean() for end in t])


def add(samples: Samples, metric: str, times: np.ndarray, values: np.ndarray, device: str = HOST) -> Samples:
    for t, value in zip(times, values, strict=True):
        samples.add_reading(float(t), metric, float(value), device)
    return samples


def plugged(late_s: float = 2.0, width_s: float = 1.0, load_w: float = LOAD_W, last: float = LAST) -> Samples:
    """What an external meter tells, twice a second."""
    times = np.arange(BEGUN + 0.3, last, 0.5)
    return add(Samples(), PLUG.metric, times, average(times - late_s, width_s, load_w))


def trial(
    samples: Samples, *meters: WatchedMeter, gpus: Sequence[str] = (), windows: Sequence[Window] = WINDOWS
) -> WatchedTrial:
    return WatchedTrial(
        samples=samples, windows=windows, gpus=tuple(gpus), baseline_mib={}, cpus=4, cpu_metric=metrics.CPU_BUSY,
        meters=meters,
    )  # fmt: skip


def figures(*args, **kw) -> WatchedFigures:  # type: ignore[no-untyped-def]
    return compute_watched_figures(trial(*args, **kw))


def read_delay_s(got: WatchedFigures, shown_by: str) -> float:
    """How late the meter was, as it is told of its power. `shown_by`: what has the edges."""
    source = got.provenance["meter_power_w"]["source"]
    told = re.fullmatch(rf"{PLUG.name}, (\S+) ± (\S+) s late by the edges of {shown_by}", source)
    assert told, source
    assert 0.05 <= float(told[2]) < 0.5
    return float(told[1])


def test_rapl_is_integrated_as_it_is() -> None:
    times = np.arange(BEGUN, 108.0, 0.1)
    whole = (Window(101.2, 107.0, 1, True, 2.0),)
    got = figures(add(Samples(), RAPL.metric, times, average(times, 0.1)), RAPL, windows=whole)
    assert got.result["rapl_energy_j"] == pytest.approx((IDLE_W + LOAD_W) * 5.8 / 2, rel=0.001)
    assert got.result["rapl_power_w"] == pytest.approx(IDLE_W + LOAD_W, rel=0.001)
    assert got.provenance["rapl_power_w"] == {"source": "rapl", "period_s": 0.1, "samples": 58, "gaps": 0}
    assert got.missing["meter_power_w"] == REASONS["no-meter"]


def test_a_late_meter_is_aligned_by_the_trial_s_windows_where_nothing_else_is_known() -> None:
    got = figures(plugged(late_s=2.0), PLUG)
    assert got.result["meter_energy_j"] == pytest.approx(TRUE_J / 2, rel=0.02)
    assert got.result["meter_power_w"] == pytest.approx(TRUE_J / 4, rel=0.02)
    assert got.result["meter_source"] == "http://plug/status"
    # A mean over 1 s, of which a reading every 0.5 s is given the last half: 2 s and a quarter.
    assert got.provenance["meter_power_w"]["source"] == (
        "http://plug/status, 2.25 ± 0.05 s late by the edges of the trial's windows"
    )
    assert got.missing["rapl_power_w"] == REASONS["no-meter"]


def test_without_the_alignment_it_would_be_wrong() -> None:
    """By more than a third: what the tests of its figure are worth."""
    samples = plugged(late_s=3.0)
    naive = samples.find_series(PLUG.metric).integrate(WINDOWS[1].t0, WINDOWS[1].t1, 1.0)
    assert naive < 0.75 * TRUE_J
    assert figures(samples, PLUG).result["meter_energy_j"] == pytest.approx(TRUE_J / 2, rel=0.02)


def test_a_load_that_is_more_than_the_windows_is_aligned_by_the_cpus() -> None:
    """It begins 4 s before the warm-up, by the half: the windows' edges alone would be far off."""

    def busy(t: np.ndarray) -> np.ndarray:
        return 16 * ((t >= WINDOWS[0].t0) & (t < WINDOWS[-1].t1)) + 8 * ((t >= 97.2) & (t < WINDOWS[0].t0))

    fine = np.arange(90.0, LAST, 0.01)
    total = np.concatenate(([0.0], np.cumsum(busy(fine)) * 0.01))
    at = lambda t: np.interp(t, np.append(fine, LAST), total)  # noqa: E731
    times = np.arange(96.0, LAST, 0.5)
    watts = 80 + 20 * (at(times - 1.5) - at(times - 2.5))
    samples = add(Samples(), PLUG.metric, times, watts)
    polls = 96.0 + np.cumsum(np.random.default_rng(3).choice([0.05, 0.1, 0.3], 140))  # of a busy watcher
    add(samples, metrics.CPU_LOAD, polls, at(polls))
    got = figures(samples, PLUG)
    assert got.result["meter_power_w"] == pytest.approx(400, rel=0.02)
    assert read_delay_s(got, "the CPUs' load") == pytest.approx(1.75, abs=0.03)


@pytest.mark.parametrize("series", [metrics.POWER, "power_buffer_w"])
def test_by_the_power_of_its_gpus_together(series: str) -> None:
    """Two GPUs take turns at a load with a pause: only their sum is what the plug shows, and no window tells that."""
    fine = np.arange(90.0, LAST, 0.02)
    on = (draw(fine) > IDLE_W) & ((fine < 104.0) | (fine > 105.5))
    turn = (fine // 0.5).astype(int) % 2
    watts = [np.where(on, np.where(turn == gpu, 250.0, 50.0), 20.0) for gpu in (0, 1)]
    joules = np.concatenate(([0.0], np.cumsum(60 + watts[0] + watts[1]) * 0.02))
    at = lambda t: np.interp(t, np.append(fine, LAST), joules)  # noqa: E731
    times = np.arange(BEGUN + 0.3, LAST, 0.5)
    samples = add(Samples(), PLUG.metric, times, at(times - 4.0) - at(times - 5.0))
    seen = (fine >= BEGUN) & (np.arange(len(fine)) % (5 if series == metrics.POWER else 1) == 0)
    for gpu in (0, 1):
        add(samples, series, fine[seen] + 0.02, watts[gpu][seen], str(gpu))
    got = figures(samples, PLUG, gpus=("0", "1"))
    assert got.result["meter_power_w"] == pytest.approx((at(107.0) - at(103.0)) / 4, rel=0.02)
    assert read_delay_s(got, "the GPUs' power") == pytest.approx(4.25, abs=0.06)


def test_gpu_power_that_has_a_hole_is_no_reference() -> None:
    samples = plugged()
    times = np.arange(BEGUN, LAST, 0.1)
    add(samples, metrics.POWER, (kept := times[(times < 104) | (times > 106)]), draw(kept), "0")
    source = figures(samples, PLUG, gpus=("0",)).provenance["meter_power_w"]["source"]
    assert source.endswith("the trial's windows")


def test_a_group_s_meter_shows_all_of_it() -> None:
    got = figures(plugged(), replace(PLUG, is_shared=True))
    assert got.result["meter_power_w"] == pytest.approx(TRUE_J / 4, rel=0.02)
    assert got.missing["meter_energy_j"] == format_reason("shared-meter", "meter_power_w")


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (lambda: Samples(), format_reason("few-readings", 0)),
        (lambda: plugged(last=103.5), format_reason("few-readings", 7)),
        (lambda: plugged(last=104.0), REASONS["meter-apart"]),
        (lambda: plugged(load_w=0.0), REASONS["meter-apart"]),
        (lambda: plugged(last=107.5), format_reason("gap", 1.25)),
    ],
)
def test_what_a_meter_does_not_tell_is_empty_with_the_reason(
    samples: Callable[[], Samples], reason: str
) -> None:
    got = figures(samples(), PLUG)
    assert got.missing["meter_power_w"] == reason
    assert got.result["meter_power_w"] is got.result["meter_energy_j"] is None
    assert got.result["meter_source"] == PLUG.name
    assert not isinstance(encode_reason(reason), str) or encode_reason(reason) != reason, (
        "records hold a code"
    )


def test_a_trial_that_came_to_no_window_has_no_figure() -> None:
    got = figures(plugged(), PLUG, windows=())
    assert got.missing["meter_power_w"] == got.missing["meter_energy_j"] == REASONS["before-window"]


def test_slots_that_a_busy_watcher_missed_and_gaps_beside_the_window_are_no_doubt_about_the_trial() -> None:
    """No line of a CSV and no counter is lost by them."""
    samples = plugged()
    for _ in range(50):
        samples.note_gap(PLUG.metric, "silent")
    late = [(metrics.RATES_S, [103 + k / 10 for k in range(30)])]
    seen = trial(samples, replace(PLUG, period_s=metrics.RATES_S))
    got = compute_watched_figures(replace(seen, skipped=late))
    assert got.provenance["meter_power_w"]["gaps"] == 50
    assert got.result["meter_power_w"] == pytest.approx(TRUE_J / 4, rel=0.02)


def test_the_meter_s_own_words_are_the_reason_where_it_failed() -> None:
    samples = Samples()
    samples.note_gap(PLUG.metric, "no answer: Connection refused")
    assert figures(samples, PLUG).missing["meter_power_w"] == "no answer: Connection refused"


def test_a_window_too_short_for_what_is_known_of_the_delay_has_no_figure() -> None:
    """The same delay is good enough for a long window."""
    random = np.random.default_rng(5)
    times = np.arange(BEGUN + 0.3, LAST, 0.5)
    watts = average(times - 2.0, 1.0) - IDLE_W + 1 + random.normal(0, 60, len(times))
    short = (WINDOWS[0], Window(WINDOWS[1].t0, 103.9, 1, False), Window(103.9, 107.0, 2, True))
    samples = add(Samples(), PLUG.metric, times, watts)
    got = figures(samples, PLUG, windows=short)
    code = encode_reason(got.missing["meter_power_w"])
    assert code[0] == "meter-rough"
    assert float(code[1]) > 0.05
    assert float(code[2]) > 10
    assert figures(samples, PLUG).result["meter_power_w"] == pytest.approx(LOAD_W, rel=0.2)


def test_less_than_three_seconds_are_too_short_for_a_meter_that_averages() -> None:
    short = (WINDOWS[0], Window(103.0, 105.9, 1, True))
    rapl = add(plugged(), RAPL.metric, np.arange(BEGUN, LAST, 0.1), draw(np.arange(BEGUN, LAST, 0.1)))
    got = figures(rapl, PLUG, RAPL, windows=short)
    assert got.missing["meter_energy_j"] == format_reason("short-energy", "2.90", "3")
    assert got.result["rapl_power_w"] == pytest.approx(IDLE_W + LOAD_W)


def test_a_meter_that_tells_nothing_but_zero_is_not_believed() -> None:
    times = np.arange(BEGUN, 108.0, 0.1)
    got = figures(add(Samples(), RAPL.metric, times, 0 * times), RAPL)
    assert got.missing["rapl_power_w"] == REASONS["meter-zero"]


# ---------------------------------------------------------------- over a sweep, on a clock of the meter's own


@pytest.mark.parametrize(("drift", "delay_s"), [(0.0, 0.0), (1e-4, 5.0), (-1e-4, 1.0), (1e-3, 3.0)])
def test_trials_of_a_long_sweep_by_a_meter_whose_clock_drifts(drift: float, delay_s: float) -> None:
    """Eight hours: at 1,000 ppm it is half a minute off in the end. Lines come up to 0.2 s late."""
    random = np.random.default_rng(1)
    for hours in range(0, 9, 2):
        times = np.arange(BEGUN + 0.3, LAST, 0.5)
        watts = average(times - delay_s, 1.0) + random.normal(0, 3, len(times))
        gained = drift * 3600 * hours
        meter = RecordedMeter([
            Reading(at, watt, t + late)
            for at, watt, t, late in zip(
                7e5 + gained + times * (1 + drift), watts, times, random.uniform(0, 0.2, len(times)), strict=True
            )
        ])  # fmt: skip
        reader, samples = MeterReader([meter], lambda: 0.0), Samples()
        reader.read_all()
        (watched,) = reader.add_to(samples, is_shared=False)
        got = figures(samples, watched)
        assert got.result["meter_energy_j"] == pytest.approx(TRUE_J / 2, rel=0.02)
        assert read_delay_s(got, "the trial's windows") == pytest.approx(delay_s + 0.25, abs=0.1)


@pytest.mark.parametrize("per_s", [1, 2, 10])
def test_times_in_whole_seconds_will_do(per_s: int) -> None:
    times = np.arange(BEGUN + 0.03, LAST, 1 / per_s)
    watts = average(times - 2.0, 1.0)
    readings = [Reading(t // 1, watt, t + 0.02) for t, watt in zip(times, watts, strict=True)]
    reader, samples = MeterReader([RecordedMeter(list(readings))], lambda: 0.0), Samples()
    reader.read_all()
    (watched,) = reader.add_to(samples, is_shared=False)
    assert figures(samples, watched).result["meter_energy_j"] == pytest.approx(TRUE_J / 2, rel=0.03)


def test_a_clock_that_goes_back_leaves_a_gap_and_the_series_in_order() -> None:
    told = ((5, 10, 100.0), (5, 11, 200.0), (6, 12, 100.0), (3, 13, 100.0), (4, 14, 100.0), (7, 15, 100.0))
    items = [Reading(at, watts, arrived) for at, arrived, watts in told]
    meter = RecordedMeter([*items, Unmeasured("silent")])
    reader, samples = MeterReader([meter], itertools.count().__next__), Samples()
    reader.read_all()
    reader.add_to(samples, is_shared=False)
    series = samples.find_series(PLUG.metric)
    assert series.times == sorted(series.times)
    assert len(series.times) == 3
    assert series.values[0] == 150, "two that have the same time are one"
    assert (series.gaps, series.reason) == (3, "silent")
    reader.add_to(samples, is_shared=False)
    assert len(samples.find_series(PLUG.metric).times) == 3, "a second look adds nothing"
