"""Energy by the counter and by the integral: numbers whose answer is known."""

from __future__ import annotations

import pytest

from gpubench.node.watch import metrics
from gpubench.record.figures import compute_watched_figures
from gpubench.schema.codes import REASONS, encode_reason, format_reason
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial, Window

WINDOWS = (Window(10.0, 14.0, 0, False), Window(14.5, 18.5, 1, True), Window(19.0, 25.0, 2, True))


def watched(
    samples: Samples, gpus: tuple[str, ...] = ("0",), windows: tuple[Window, ...] = WINDOWS
) -> WatchedTrial:
    return WatchedTrial(
        samples=samples, windows=windows, gpus=gpus, baseline_mib={}, cpus=4, cpu_metric=metrics.CPU_BUSY
    )


def counter(samples: Samples, watts: float, gpu: str = "0", stride: float = 1.0, lag: float = 0.0) -> None:
    """Readings every `stride` seconds, and just after each edge, of a GPU that draws `watts` all the time."""
    times = {k * stride for k in range(round(30 / stride))} | {t + lag for w in WINDOWS for t in (w.t0, w.t1)}
    for t in sorted(times):
        samples.add_reading(t, metrics.ENERGY, 1e6 + watts * t, gpu)


def polled(samples: Samples, watts: float, gpu: str = "0", start: float = 5, end: float = 30) -> None:
    for k in range(round((end - start) * 10)):
        samples.add_reading(start + k / 10, metrics.POWER, watts, gpu)


def test_the_counter_gives_the_mean_of_the_measured_epochs_over_all_gpus() -> None:
    samples = Samples()
    counter(samples, 300, "0", lag=0.005)
    counter(samples, 200, "1", lag=0.005)
    got = compute_watched_figures(watched(samples, ("0", "1")))
    assert got.result["energy_j"] == pytest.approx(500 * (4 + 6) / 2)
    assert got.result["energy_source"] == "nvml-counter"
    assert got.energy_j_by_epoch == pytest.approx({0: 2000, 1: 2000, 2: 3000})
    assert got.result["energy_sampled_j"] is None, "no power was sampled"
    assert got.missing["power_w"]


def test_the_integral_stands_beside_the_counter() -> None:
    samples = Samples()
    counter(samples, 300)
    polled(samples, 290)
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_j"] == pytest.approx(1500)
    assert got.result["energy_sampled_j"] == pytest.approx(1450)
    assert got.result["power_w"] == pytest.approx(290)


def test_without_a_counter_the_integral_is_the_figure_and_says_so() -> None:
    samples = Samples()
    samples.note_gap(metrics.ENERGY, "energy counter: Not Supported", "0")
    polled(samples, 290)
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_j"] == got.result["energy_sampled_j"] == pytest.approx(1450)
    assert got.result["energy_source"] == "nvml-power-integral"
    assert "energy counter: Not Supported" in got.provenance["energy_j"]["source"]


def test_steady_power_is_not_nothing_however_few_the_readings() -> None:
    samples = Samples()
    for t in (14.2, 15.1, 16.0, 16.9, 17.8, 18.7, 19.6, 20.5, 21.4, 22.3, 23.2, 24.1, 25.0):
        samples.add_reading(t, metrics.POWER, 100.0, "0")
    assert compute_watched_figures(watched(samples)).result["energy_j"] == pytest.approx(100 * 10 / 2)


def test_the_driver_s_own_samples_go_before_polls_where_they_cover_the_windows() -> None:
    samples = Samples()
    polled(samples, 100)
    for k in range(1250):
        samples.add_reading(5 + k / 50, "power_buffer_w", 200.0, "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["power_w"] == pytest.approx(200)
    assert "buffer" in got.provenance["power_w"]["source"]
    holed = Samples()
    polled(holed, 100)
    for k in [*range(500), *range(600, 1250)]:  # two seconds were lost
        holed.add_reading(5 + k / 50, "power_buffer_w", 200.0, "0")
    got = compute_watched_figures(watched(holed))
    assert got.result["power_w"] == pytest.approx(100)
    assert "polled" in got.provenance["power_w"]["source"]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda _: 5e6, "stood still"),
        (lambda t: 1e6 + 300 * t if t < 16 else 300 * t, "backwards"),
    ],
)
def test_a_counter_that_can_t_be_right_gives_no_figure(spoil, why: str) -> None:  # type: ignore[no-untyped-def]
    samples = Samples()
    for k in range(60):
        samples.add_reading(k / 2, metrics.ENERGY, spoil(k / 2), "0")
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_j"] is None
    polled(samples, 290)
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_source"] == "nvml-power-integral"
    assert why in got.provenance["energy_j"]["source"]


def test_a_counter_that_was_not_read_at_an_edge_is_not_guessed_from_afar() -> None:
    samples = Samples()
    for t in (0.0, 5.0, 10.0, 22.0, 27.0, 30.0):
        samples.add_reading(t, metrics.ENERGY, 300 * t, "0")
    assert compute_watched_figures(watched(samples)).result["energy_j"] is None


def test_a_power_of_zero_watts_is_no_figure() -> None:
    samples = Samples()
    polled(samples, 0.0)
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_j"] is None
    assert got.result["power_w"] is None


def test_of_two_gpus_one_that_tells_0_watts_leaves_no_figure() -> None:
    samples = Samples()
    polled(samples, 300.0, "0")
    polled(samples, 0.0, "1")
    got = compute_watched_figures(watched(samples, ("0", "1")))
    assert got.result["energy_sampled_j"] is None
    assert got.missing["power_w"] == REASONS["no-power"]


def test_pauses_between_short_epochs_are_not_the_epochs() -> None:
    samples = Samples()
    windows = tuple(Window(10 + 0.5 * k, 10.42 + 0.5 * k, k, True) for k in range(30))
    for k in range(30):
        samples.add_reading(9 + k, metrics.ENERGY, 300.0 * (9 + k), "0")
    got = compute_watched_figures(watched(samples, windows=windows))
    assert got.result["energy_source"] == "nvml-counter"
    assert got.result["energy_j"] == pytest.approx(300 * 0.42)


@pytest.mark.parametrize(("seconds", "is_told"), [(0.2, False), (2.99, False), (3.0, True), (3.01, True)])
def test_less_than_three_seconds_tell_no_energy(seconds: float, is_told: bool) -> None:
    """Neither by the counter nor by the integral, whose figure stands by itself, as the power does."""
    samples = Samples()
    counter(samples, 300, stride=0.1)
    polled(samples, 300)
    got = compute_watched_figures(
        watched(samples, windows=(WINDOWS[0], Window(15.0, 15.0 + seconds, 1, True)))
    )
    assert (got.result["energy_j"] is not None) is is_told
    if not is_told:
        assert got.missing["energy_j"] == got.missing["energy_source"]
        assert got.missing["energy_j"] == format_reason("short-energy", f"{seconds:.2f}", 3)
    assert got.result["energy_sampled_j"] == pytest.approx(300 * seconds)
    assert got.result["power_w"] == pytest.approx(300)


def test_windows_reach_three_seconds_together() -> None:
    samples = Samples()
    polled(samples, 300)
    windows = tuple(Window(10.0 + 2 * k, 11.5 + 2 * k, k, True) for k in range(2))
    assert compute_watched_figures(watched(samples, windows=windows)).result["energy_j"] == pytest.approx(450)


@pytest.mark.parametrize(
    ("watts", "is_told"), [(284.9, False), (285.1, True), (300.0, True), (314.9, True), (315.1, False)]
)
def test_a_counter_and_an_integral_that_lie_more_than_5_pct_apart_tell_no_energy(
    watts: float, is_told: bool
) -> None:
    samples = Samples()
    counter(samples, 300)
    polled(samples, watts)
    got = compute_watched_figures(watched(samples))
    assert got.result["energy_j"] == (pytest.approx(1500) if is_told else None)
    if not is_told:
        assert got.missing["energy_j"] == got.missing["energy_source"]
        code, counted, sampled, *_ = encode_reason(got.missing["energy_j"])
        assert (code, counted, sampled[:2]) == ("energy-apart", "1,500", "1,")
    # Power was read even so.
    assert got.result["power_w"] == pytest.approx(watts)


@pytest.mark.parametrize(
    ("seconds", "away_s", "counted"),
    [
        (4.0, 0.049, True),
        (4.0, 0.051, False),
        (100.0, 0.99, True),
        (100.0, 1.01, False),
    ],
)
def test_readings_must_lie_near_a_window_s_edges(seconds: float, away_s: float, counted: bool) -> None:
    """Both together within 0.1 s or 2 % of the window, whichever is more: else the integral stands in."""
    window = Window(50.0, 50.0 + seconds, 1, True)
    samples = Samples()
    between = (window.t0 + 20 * k for k in range(1, 5) if 20 * k < seconds)
    for t in (window.t0 - away_s, *between, window.t1 + away_s):
        samples.add_reading(t, metrics.ENERGY, 300 * t, "0")
    polled(samples, 290, start=45, end=160)
    got = compute_watched_figures(watched(samples, windows=(window,)))
    assert got.result["energy_source"] == ("nvml-counter" if counted else "nvml-power-integral")
    assert got.result["energy_j"] == pytest.approx((300 if counted else 290) * seconds)
