"""A meter that is late, averages, drifts and is noisy: its delay, and the energy of windows, are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from gpubench.stats.alignment import MOST_S, StepCurve, align_meter

FINE_S = 0.01
AFTER_S = 8.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A load on a machine, and a meter that shows it late. Times are the host's, from the launch of the trial."""

    delay_s: float = 0.0
    """From what is drawn to the reading."""
    drift: float = 0.0
    """How many seconds the meter's clock gains a second."""
    period_s: float = 1.0
    width_s: float = 1.0
    """A reading is the mean over it."""
    idle_w: float = 80.0
    load_w: float = 300.0
    noise_w: float = 0.0
    begins: tuple[float, ...] = (1.2,)
    ends: tuple[float, ...] = (6.7,)
    seed: int = 0

    def _draw(self) -> tuple[np.ndarray, np.ndarray]:
        """A fine time line, and the share of the load at each moment: less while it starts and ends."""
        t = np.arange(-20.0, self.ends[-1] + AFTER_S, FINE_S)
        share = np.where((t >= 0.2) & (t < self.begins[0]), 0.2, 0.0)
        for begin, end in zip(self.begins, self.ends, strict=True):
            share[(t >= begin) & (t < end)] = 1.0
            share[(t >= end) & (t < end + 0.3)] = 0.15
        return t, share * (1 + 0.03 * np.sin(7 * t))

    def _integral(self, scale: float, base: float) -> Callable[[np.ndarray | float], np.ndarray]:
        t, share = self._draw()
        total = np.concatenate(([0.0], np.cumsum(base + scale * share) * FINE_S))
        return lambda at: np.interp(at, np.append(t, t[-1] + FINE_S), total)

    def meter(self) -> StepCurve:
        """Its readings, on its own clock as it stands to the host's when the trial begins."""
        random = np.random.default_rng(self.seed)
        joules = self._integral(self.load_w, self.idle_w)
        told = np.arange(random.uniform(0, self.period_s), self.ends[-1] + AFTER_S, self.period_s)
        of = told - self.delay_s
        watts = (joules(of) - joules(of - self.width_s)) / self.width_s
        return StepCurve(told * (1 + self.drift), watts + random.normal(0, self.noise_w, len(told)))

    def reference(self) -> StepCurve:
        """The CPUs' load, ten times a second, with the noise of ticks."""
        random = np.random.default_rng(self.seed + 1)
        times = np.arange(0.0, self.ends[-1] + AFTER_S, 0.1)
        shares = np.diff(self._integral(1.0, 0.0)(times)) / 0.1
        return StepCurve(times, np.concatenate(([0.0], shares)) + random.normal(0, 0.02, len(times)))

    @property
    def late_s(self) -> float:
        """The delay as `Alignment` has it: of the middle of what a reading tells of."""
        return self.delay_s + (self.width_s - self.period_s) / 2

    def joules(self, t0: float, t1: float) -> float:
        joules = self._integral(self.load_w, self.idle_w)
        return float(joules(t1) - joules(t0))


def check(trial: Trial, *windows: tuple[float, float], offset_s: float, energy: float) -> None:
    alignment = align_meter(trial.meter(), trial.reference())
    assert alignment is not None
    assert alignment.delay_s == pytest.approx(trial.late_s, abs=offset_s)
    for window in windows:
        assert alignment.compute_joules(*window) == pytest.approx(trial.joules(*window), rel=energy)


WINDOW = (2.7, 6.7)
"""The last four seconds of the load: it ends where the window does."""


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 1.0, 2.5, 5.0])
@pytest.mark.parametrize(
    "meter",
    [
        {"period_s": 1.0, "width_s": 1.0},
        {"period_s": 0.5, "width_s": 1.0},
        {"period_s": 0.1, "width_s": 1.0},
        {"period_s": 0.1, "width_s": 0.1},
        {"period_s": 0.5, "width_s": 2.0},
    ],
)
def test_delay_and_energy_are_recovered(delay_s: float, meter: dict[str, float]) -> None:
    """Within 2 % of the longest delay, and of the energy: of hundreds of watts, with noise of 1 %."""
    trial = Trial(delay_s=delay_s, noise_w=3.0, **meter)
    check(trial, WINDOW, offset_s=0.1, energy=0.02)


@pytest.mark.parametrize("load_w", [4.0, 15.0, 60.0, 400.0])
def test_from_a_few_watts_to_hundreds(load_w: float) -> None:
    """The less the load is, the less it matters how well the delay is known."""
    for seed in range(5):
        trial = Trial(delay_s=2.0, load_w=load_w, noise_w=0.1 * load_w / 4, period_s=0.5, seed=seed)
        check(trial, WINDOW, offset_s=0.15, energy=0.02)


@pytest.mark.parametrize("drift", [0.0, 1e-4, -1e-4, 1e-3])
def test_a_clock_that_drifts_over_a_long_trial(drift: float) -> None:
    """Of five minutes, at 1,000 ppm by 0.3 s: the delay is that of its middle."""
    trial = Trial(delay_s=1.0, drift=drift, noise_w=3.0, period_s=0.5, ends=(300.0,))
    alignment = align_meter(trial.meter(), trial.reference())
    assert alignment is not None
    assert alignment.delay_s == pytest.approx(trial.late_s + 150 * drift, abs=0.2)
    assert alignment.compute_joules(5.0, 300.0) == pytest.approx(trial.joules(5.0, 300.0), rel=0.002)


def test_several_epochs_with_pauses_between() -> None:
    trial = Trial(delay_s=3.3, noise_w=3.0, period_s=0.5, begins=(1.2, 8.0, 15.0), ends=(6.0, 13.0, 21.0))
    check(trial, (8.0, 13.0), (15.0, 21.0), offset_s=0.1, energy=0.02)


def test_of_loads_drawn_at_random_energy_is_right_within_2_pct() -> None:
    """Of 100 the delay is off by more than 0.1 s in two at most."""
    apart = []
    for seed in range(100):
        random = np.random.default_rng(seed)
        load_w, end = random.uniform(10, 500), 2.7 + random.uniform(3, 60)
        trial = Trial(
            delay_s=random.uniform(0, 5), period_s=random.choice([0.1, 0.25, 0.5, 1.0]), load_w=load_w,
            idle_w=random.uniform(20, 300), noise_w=0.01 * load_w, ends=(end,), seed=seed,
        )  # fmt: skip
        check(trial, (2.7, end), offset_s=0.3, energy=0.02)
        alignment = align_meter(trial.meter(), trial.reference())
        assert alignment is not None
        apart.append(abs(alignment.delay_s - trial.late_s))
    assert sum(delay_s > 0.1 for delay_s in apart) <= 2


def test_the_uncertainty_is_that_of_many_such_records() -> None:
    """It has the true delay in 95 of 100, and is at most half as wide again as it need be."""
    apart, told, gains = [], [], []
    for seed in range(100):
        trial = Trial(delay_s=2.0, load_w=20.0, noise_w=2.0, period_s=0.5, seed=seed)
        alignment = align_meter(trial.meter(), trial.reference())
        assert alignment is not None
        apart.append(abs(alignment.delay_s - trial.late_s))
        told.append(alignment.error_s)
        gains.append(alignment.gain)
        assert 0.8 < alignment.share < 1
    assert np.mean(np.array(apart) <= np.array(told)) >= 0.93
    assert np.median(told) <= 1.5 * np.quantile(apart, 0.95)
    assert np.mean(gains) == pytest.approx(20.0, rel=0.015)


def _flat(times: np.ndarray, random: np.random.Generator) -> np.ndarray:  # noqa: ARG001
    return np.full(len(times), 100.0)


def _noise(times: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return random.normal(100, 3, len(times))


def _trend(times: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return 100 + 0.5 * times + random.normal(0, 0.5, len(times))


def _falls_under_load(times: np.ndarray, random: np.random.Generator) -> np.ndarray:  # noqa: ARG001
    return np.where((times > 1.2) & (times < 6.7), 50.0, 100.0)


@pytest.mark.parametrize("shows", [_flat, _noise, _trend, _falls_under_load])
def test_a_meter_that_does_not_follow_the_load_has_no_delay(shows) -> None:  # type: ignore[no-untyped-def]
    for seed in range(20):
        trial = Trial(period_s=0.5, seed=seed)
        times = trial.meter().times
        meter = StepCurve(times, shows(times, np.random.default_rng(seed)))
        assert align_meter(meter, trial.reference()) is None


def test_a_load_without_an_edge_tells_no_delay() -> None:
    trial = Trial(delay_s=1.0, noise_w=3.0)
    meter = trial.meter()
    inside = (meter.times > 3.7) & (meter.times < 7.0)
    assert align_meter(StepCurve(meter.times[inside], meter.values[inside]), trial.reference()) is None


def test_a_delay_beyond_what_is_looked_for_is_not_guessed() -> None:
    assert align_meter(replace(Trial(), delay_s=MOST_S + 2).meter(), Trial().reference()) is None


def test_before_its_first_value_a_quantity_is_at_its_least() -> None:
    steps = StepCurve(np.array([10.0, 11.0, 12.0]), np.array([7.0, 5.0, 3.0]))
    assert list(steps.integrate_to(np.array([8.0, 10.0, 11.5, 12.0, 14.0]))) == [-6.0, 0.0, 6.5, 8.0, 14.0]
