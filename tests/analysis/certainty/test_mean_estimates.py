"""Intervals and p-values of a sum of means: consistent with each other, and right where nothing varies."""

import math

import pytest
from gpubench.analysis.certainty.distributions import noncentral_t_above, shift_seen, t_above, t_quantile
from gpubench.analysis.certainty.mean_estimate import MeanEstimate, Part, mean, part_of, variance
from hypothesis import given
from hypothesis import strategies as st

parts = st.lists(st.builds(Part, st.floats(1e-4, 1), st.floats(1, 30)), min_size=1, max_size=4).map(tuple)


def test_students_and_the_noncentral_distribution():
    """Published quantiles; scipy.stats.nct.sf(3, 4, 2) and its inverse."""
    assert t_quantile(0.975, 4) == pytest.approx(2.776445)
    assert t_quantile(0.95, 2) == pytest.approx(2.919986)
    assert t_above(2.776445, 4) == pytest.approx(0.025)
    assert t_above(-2.776445, 4) == pytest.approx(0.975)
    assert noncentral_t_above(2.776445, 4, 0) == pytest.approx(0.025)
    assert noncentral_t_above(4.302653, 2, 3) == pytest.approx(1 - 0.6126106)
    assert noncentral_t_above(4.302653, 2, shift_seen(4.302653, 2, 0.8)) == pytest.approx(0.8)


def test_sums_of_variances_by_hand():
    """Parts 1/3 and 4/3 with freedom 2: error √(5/3), freedom (5/3)² / ((1/9 + 16/9) / 2) = 50/17."""
    found = MeanEstimate(center=2.0, parts=(Part(1 / 3, 2), Part(4 / 3, 2)))
    assert found.error == pytest.approx(math.sqrt(5 / 3))
    assert found.freedom == pytest.approx(50 / 17)
    # t of 97.5 %: 3.212 at 50/17 for the whole, 4.303 for the noisier part: 4.303 × 1.1547 is more than 3.212 × 1.2910.
    assert found.half_width() == pytest.approx(4.302653 * math.sqrt(4 / 3))
    assert found.half_width(0.5) == pytest.approx(t_quantile(0.75, 50 / 17) * math.sqrt(5 / 3)), (
        "nearer the middle"
    )
    assert found.chance_at_most(1.0) == pytest.approx(
        max(t_above(1 / found.error, 50 / 17), t_above(0.866025, 2))
    )
    assert found.chance_at_least(1.0) == pytest.approx(t_above(-math.sqrt(3), 2)), (
        "the quieter part's is more"
    )


def test_one_part_is_students_test():
    found = MeanEstimate(center=3.0, parts=(Part(1.0, 4),))
    assert found.freedom == pytest.approx(4)
    assert found.half_width() == pytest.approx(2.776445)
    assert found.chance_at_most(3 - 2.776445) == pytest.approx(0.025)
    assert found.chance_at_least(3 + 2.776445) == pytest.approx(0.025)
    assert found.chance_equal(3 + 2.776445) == pytest.approx(0.05)
    assert found.chance_equal(3) == 1
    assert found.chance_outside(3 - 2.776445, 9) == pytest.approx(0.025), "the nearer end decides"
    assert found.chance_outside(-9, 3 + 2.776445) == pytest.approx(0.025)


def test_where_nothing_varies_it_is_certain():
    found = MeanEstimate(center=1.0, parts=(Part(0.0, 2), Part(0.0, 5)))
    assert (found.error, found.freedom, found.half_width()) == (0, 2, 0)
    assert [found.chance_at_most(value) for value in (0.9, 1.0, 1.1)] == [0.0, 0.5, 1.0]
    assert [found.chance_at_least(value) for value in (0.9, 1.0, 1.1)] == [1.0, 0.5, 0.0]
    assert [found.chance_equal(value) for value in (0.9, 1.0, 1.1)] == [0.0, 1.0, 0.0]
    still = MeanEstimate(center=1.0, parts=(Part(0.0, 2), Part(1.0, 4)))
    assert still.half_width() == pytest.approx(2.776445), "a part without any variance adds none"


def test_samples():
    assert variance([1.0, 2.0, 4.0]) == pytest.approx(7 / 3)
    assert variance([0.1, 0.1, 0.1]) == 0, "no rounding makes one"
    assert mean([1e16, 1.0, -1e16]) == pytest.approx(1 / 3)
    assert part_of([1.0, 2.0, 4.0], weight=-2.0) == Part(pytest.approx(4 * 7 / 9), 2)
    assert part_of([50.0, 50.0], least_sd=0.2) == Part(pytest.approx(0.02), 1)
    assert part_of([1.0, 2.0, 4.0], least_sd=0.2) == part_of([1.0, 2.0, 4.0])


@given(st.floats(-1, 1), parts, st.floats(0.5, 0.99))
def test_the_interval_ends_where_the_p_value_says(center, parts, confidence):
    found = MeanEstimate(center=center, parts=parts)
    half = found.half_width(confidence)
    assert found.chance_at_most(center - half) == pytest.approx((1 - confidence) / 2, rel=1e-5)
    assert found.chance_equal(center + half) == pytest.approx(1 - confidence, rel=1e-5)
    assert found.chance_outside(center - half, center + half) == pytest.approx((1 - confidence) / 2, rel=1e-5)
    assert found.half_width(confidence) <= found.half_width((1 + confidence) / 2)


def test_of_what_nobody_knows_nothing_is_told():
    found = MeanEstimate(center=1.0, parts=(Part(0.01, 4), Part(math.inf, 1)))
    assert found.half_width() == math.inf
    assert found.freedom == 1
    assert found.chance_equal(0.0) == found.chance_outside(-1.0, 1.0) * 2 == 1.0


def test_a_larger_sample_with_the_same_noise():
    assert Part(0.5, 4).size == 5
    assert Part(0.5, 4).of_more(10) == Part(0.25, 9)
