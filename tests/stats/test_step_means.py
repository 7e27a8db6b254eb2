"""Means of steps, how sure they are, and where steps begin to be steady."""

import math
import statistics

import numpy as np
import pytest
from simulated_processes import resembling, stalling

from gpubench.stats.distributions import compute_t_quantile
from gpubench.stats.steps import FEWEST_STEPS, count_effective_steps, estimate_step_mean


def test_batches_by_hand():
    """43 steps: 8 batches of 5, of the last 40."""
    draw = np.random.default_rng(1)
    steps = (1 + 0.1 * draw.normal(size=43)).tolist()
    batches = [statistics.fmean(steps[3 + 5 * n : 8 + 5 * n]) for n in range(8)]
    found = estimate_step_mean(steps)
    assert (found.steps, found.batches) == (40, 8)
    assert found.seconds == pytest.approx(statistics.fmean(steps[3:]))
    assert found.error == pytest.approx(statistics.stdev(batches) / math.sqrt(8) / found.seconds)


@pytest.mark.parametrize(
    ("steps", "batches", "length"),
    [(40, 8, 5), (63, 9, 7), (64, 8, 8), (127, 15, 8), (128, 8, 16), (190, 11, 16)],
)
def test_long_batches_hold_whole_rhythms_of_eight(steps, batches, length):
    draw = np.random.default_rng(2)
    found = estimate_step_mean((1 + 0.1 * draw.normal(size=steps)).tolist())
    assert (found.batches, found.steps) == (batches, batches * length)


def test_every_eighth_step_that_waits_is_no_noise():
    steps = [2.0 if n % 8 == 3 else 1.0 for n in range(128)]
    found = estimate_step_mean(steps)
    assert (found.seconds, found.error) == (1.125, 0)
    assert statistics.stdev(steps) / math.sqrt(128) > 0.02  # of independent steps


def test_too_few_steps_have_no_error():
    draw = np.random.default_rng(3)
    steps = (1 + 0.1 * draw.normal(size=FEWEST_STEPS)).tolist()
    assert estimate_step_mean(steps) is not None
    assert estimate_step_mean(steps[1:]) is None
    assert estimate_step_mean([]) is None
    assert estimate_step_mean([1.0] * FEWEST_STEPS).error == 0


def test_steps_that_resemble_each_other_count_for_few():
    """1 to 4 lie −1.5, −0.5, 0.5, 1.5 from their mean: r = (0.75 − 0.25 + 0.75) / 5 = 0.25, and 4 × 0.75 / 1.25."""
    assert count_effective_steps([1.0, 2.0, 3.0, 4.0]) == pytest.approx(2.4)
    assert count_effective_steps([1.0, 2.0, 1.0, 2.0]) == 4, "no more than there are"
    assert count_effective_steps([1.0, 1.0, 1.0]) == 3
    ramp = [1 + n / 100 for n in range(200)]
    assert estimate_step_mean(ramp) is None
    slow = resembling(np.random.default_rng(4), (300, 100), 0.9)
    assert sum(estimate_step_mean(line) is None for line in (1 + 0.05 * slow).tolist()) > 270


def test_the_unit_changes_nothing():
    steps = (1 + 0.1 * np.random.default_rng(5).normal(size=100)).tolist()
    one, other = estimate_step_mean(steps), estimate_step_mean([1000 * step for step in steps])
    assert (other.error, other.seconds) == pytest.approx((one.error, 1000 * one.seconds))


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "kind"), [(64, 0.0), (100, 0.5), (200, 0.5), (1000, 0.9), (400, "stalls")])
def test_a_standard_error_holds_the_truth_as_often_as_it_says(steps, kind):
    draw = np.random.default_rng(7)
    windows = (
        stalling(draw, 500, steps) if kind == "stalls" else 1 + 0.05 * resembling(draw, (500, steps), kind)
    )
    truth = 1.375 if kind == "stalls" else 1.0
    found = [one for line in windows.tolist() if (one := estimate_step_mean(line))]
    assert len(found) > 450
    held = sum(
        abs(one.seconds - truth) <= compute_t_quantile(0.975, one.batches - 1) * one.error * one.seconds
        for one in found
    )
    assert 0.92 < held / len(found) < 0.98
