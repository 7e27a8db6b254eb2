"""Figures by hand, or from tables of Student's distribution: t(2) at 97.5 % is 4.3027, t(4) 2.7764."""

from __future__ import annotations

import math

import pytest

from gpubench.core.claims import StudentEstimate
from gpubench.stats.distributions import compute_noncentral_t_tail, compute_t_quantile, compute_t_tail
from gpubench.stats.estimates import (
    compute_interval_half_width,
    compute_interval_half_width_pct,
    compute_p_beyond,
    estimate_combined_work,
    estimate_log_ratio,
    estimate_top1_difference,
    estimate_weighted_sum,
    variance,
)


def test_student() -> None:
    assert compute_t_quantile(0.975, 2) == pytest.approx(4.30265, abs=1e-5)
    assert compute_t_tail(4.30265, 2) == pytest.approx(0.025, abs=1e-6)
    assert compute_noncentral_t_tail(2.0, 1e6, 2.0) == pytest.approx(0.5, abs=1e-4)
    assert compute_noncentral_t_tail(1.0, 2, 400.0) == 1.0  # too small a probability for a float


def test_a_ratio_of_processes_and_of_pairs() -> None:
    evidence = estimate_log_ratio(
        {1: math.e, 2: math.e**3, 7: 1.0}, {1: 1.0, 2: math.e, 9: math.e**2}, noise=0.4
    )
    assert evidence.center == pytest.approx(4 / 3 - 1)
    assert evidence.processes == (3, 3)
    assert evidence.noise == 0.4
    assert evidence.is_log
    assert evidence.pairs is not None
    assert evidence.welch is not None
    # By rounds 1 and 2: differences 1 and 2.
    assert (evidence.pairs.center, evidence.pairs.degrees) == (pytest.approx(1.5), 1)
    assert evidence.pairs.error == pytest.approx(0.5)
    assert evidence.pairs.floors == ()
    # Variances 7/3 and 1 of three values each.
    assert evidence.welch.center == evidence.center
    assert evidence.welch.error == pytest.approx(math.sqrt(7 / 9 + 1 / 3))
    assert evidence.welch.degrees == pytest.approx(
        (7 / 9 + 1 / 3) ** 2 / ((7 / 9) ** 2 / 2 + (1 / 3) ** 2 / 2)
    )
    assert evidence.welch.floors == (
        (pytest.approx(math.sqrt(7 / 9)), 2),
        (pytest.approx(math.sqrt(1 / 3)), 2),
    )


def test_what_can_not_be_tested() -> None:
    one = estimate_log_ratio({1: 2.0}, {1: 1.0, 2: 2.0})
    assert (one.pairs, one.welch, one.processes) == (None, None, (1, 2))
    apart = estimate_log_ratio({1: 2.0, 2: 2.1}, {2: 1.0, 3: 2.0})
    assert apart.pairs is None
    assert apart.welch is not None


@pytest.mark.parametrize("figure", [0.0, -1.0, math.inf, math.nan])
def test_a_figure_without_a_logarithm(figure: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        estimate_log_ratio({1: figure}, {1: 1.0})


def test_p_values_and_bounds_are_each_others_inverse() -> None:
    estimate = StudentEstimate(center=1.0, error=0.5, degrees=2)
    half = compute_interval_half_width(estimate, 0.025)
    assert half == pytest.approx(4.30265 / 2, abs=1e-5)
    assert [compute_p_beyond(estimate, distance) for distance in (half, -half, 0.0)] == pytest.approx(
        [0.025, 0.975, 0.5]
    )


def test_no_sample_alone_leaves_more_than_all() -> None:
    """Of two processes with all the variance and fifty without, degrees are about 1 whatever Welch's formula gives."""
    estimate = StudentEstimate(center=3.0, error=1.1, degrees=10, floors=((1.0, 1), (0.458, 49), (0.0, 0.1)))
    alone = StudentEstimate(center=3.0, error=1.0, degrees=1)
    assert compute_interval_half_width(estimate, 0.025) == pytest.approx(
        compute_interval_half_width(alone, 0.025)
    )
    assert compute_p_beyond(estimate, 3.0) == pytest.approx(compute_p_beyond(alone, 3.0))


def test_where_nothing_varies() -> None:
    exact = estimate_weighted_sum(0.5, [([1.0, 1.0, 1.0], 1.0), ([0.5, 0.5], -1.0)])
    assert (exact.error, exact.degrees) == (0.0, 1)
    assert compute_interval_half_width(exact, 0.025) == 0.0
    assert [compute_p_beyond(exact, distance) for distance in (0.1, 0.0, -0.1)] == [0.0, 0.5, 1.0]
    assert variance([0.1, 0.1, 0.1]) == 0.0


def test_the_work_of_unlike_jobs() -> None:
    """Alone 1 and 2 s; together 2 and 2 s: 0.5 + 1 of the work, weights 1/3 and 2/3."""
    evidence = estimate_combined_work(
        {"a": [math.e**0.1, math.e**-0.1], "b": [2.0, 2.0]},
        [("a", [2 * math.e**0.3, 2 * math.e**-0.3]), ("b", [2 * math.e**0.3, 2 * math.e**-0.3])],
        noise=0.3,
    )
    assert math.exp(evidence.center) == pytest.approx(1.5)
    assert evidence.processes == (2, 2, 2)
    assert evidence.noise == 0.3
    assert evidence.pairs is None
    assert evidence.welch is not None
    # One run slows both jobs: the group's variance is that of one, not of the mean of two that are independent.
    assert evidence.welch.error == pytest.approx(math.sqrt(0.09 + (0.1 / 3) ** 2))
    assert evidence.welch.degrees == pytest.approx((0.09 + 0.01 / 9) ** 2 / (0.09**2 + (0.01 / 9) ** 2))


def test_copies_share_what_they_took_alone() -> None:
    alone = [math.e**0.1, math.e**-0.1]
    evidence = estimate_combined_work({"a": alone}, [("a", [1.25, 1.25]), ("a", [5.0, 5.0])])
    assert math.exp(evidence.center) == pytest.approx(0.8 + 0.2)
    assert evidence.welch is not None
    assert evidence.welch.error == pytest.approx(0.1)  # weights 0.8 and 0.2 of one baseline, not of two
    assert evidence.processes == (2, 2)


def test_a_group_of_one_run() -> None:
    evidence = estimate_combined_work({"a": [1.0, 1.0]}, [("a", [2.0]), ("a", [2.0])], noise=0.4)
    assert (evidence.welch, evidence.noise) == (None, 0.4)
    with pytest.raises(ValueError, match="as many runs"):
        estimate_combined_work({"a": [1.0]}, [("a", [1.0, 2.0]), ("a", [1.0])])


def test_seeds() -> None:
    evidence = estimate_top1_difference([61.0, 62.0, 63.0], [60.0, 60.0, 60.0])
    assert (evidence.center, evidence.is_log, evidence.processes) == (2.0, False, (3, 3))
    assert evidence.welch is not None
    assert evidence.welch.error == pytest.approx(math.sqrt(1 / 3))
    assert estimate_top1_difference([61.0, 62.0], [60.0, 60.0, 60.0]).welch is None


def test_seeds_resolve_no_less_than_an_image() -> None:
    evidence = estimate_top1_difference([61.0] * 3, [60.0] * 3, images=100)
    assert evidence.welch is not None
    assert evidence.welch.error == pytest.approx(math.sqrt(2 / 3 / 12))


def test_half_an_interval_in_per_cent_of_the_mean() -> None:
    """Logarithms 0, 0.02 and 0.04: 0.02 / sqrt(3) times Student's 4.3027 of two degrees is 0.04968."""
    figures = [1.0, math.exp(0.02), math.exp(0.04)]
    assert compute_interval_half_width_pct(figures) == pytest.approx(100 * math.sinh(0.0496828), rel=1e-5)
    assert compute_interval_half_width_pct([2.0, 2.0]) == 0.0
    assert compute_interval_half_width_pct([2.0]) is None
    assert compute_interval_half_width_pct([1e-300, 1e300]) == math.inf
