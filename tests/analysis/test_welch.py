"""Welch's t-test against published quantiles, and Holm's correction by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.analysis.certainty.distributions import t_above
from gpubench.analysis.welch import chance_of_no_more, holm

# Quantiles of Student's distribution, as every table of it has them: (freedom, probability above, t).
TABLE = [
    (1, 0.05, 6.313752), (2, 0.05, 2.919986), (4, 0.05, 2.131847), (10, 0.05, 1.812461), (30, 0.05, 1.697261),
    (2, 0.005, 9.924843), (4, 0.001, 7.173182), (1000, 0.025, 1.962339),
]  # fmt: skip


@pytest.mark.parametrize(("freedom", "probability", "t"), TABLE)
def test_the_tail_of_students_distribution(freedom, probability, t):
    assert t_above(t, freedom) == pytest.approx(probability, rel=1e-5)
    assert t_above(-t, freedom) == pytest.approx(1 - probability, rel=1e-5)


@given(st.floats(-50, 50), st.floats(1, 500))
def test_both_tails_make_one(t, freedom):
    assert t_above(t, freedom) + t_above(-t, freedom) == pytest.approx(1)
    assert t_above(t, freedom) >= t_above(t + 1, freedom)


def test_by_hand():
    """Means 12 and 10, variances 1 and 4 of three values: t = (2 - 1) / sqrt(5 / 3) = 0.7746, freedom 2.941."""
    assert chance_of_no_more([11, 12, 13], [8, 10, 12], 1, 0) == pytest.approx(
        t_above(0.774597, 2.941176), rel=1e-5
    )
    # Two values a side: means 13 and 9, variances 2: t = (4 - 1) / sqrt(2), freedom 2.
    assert chance_of_no_more([12, 14], [8, 10], 1, 0) == pytest.approx(t_above(2.121320, 2), rel=1e-5)


def test_what_figures_can_not_resolve_is_no_difference():
    assert chance_of_no_more([50.0] * 3, [49.0] * 3, 1, 0) == 0.5
    assert chance_of_no_more([50.0] * 3, [48.0] * 3, 1, 0) == 0.0
    assert chance_of_no_more([50.0] * 3, [50.0] * 3, 1, 0) == 1.0
    # A variance of 0.25 in place of none: t = 0.1 / sqrt(0.25 / 3 * 2), freedom 4.
    assert chance_of_no_more([50.0] * 3, [48.9] * 3, 1, 0.5) == pytest.approx(t_above(0.244949, 4), rel=1e-5)
    with pytest.raises(ValueError, match=r"^a variance takes two values or more$"):
        chance_of_no_more([50.0], [48.0, 48.0], 1, 0)


def test_it_errs_as_seldom_as_it_says():
    """Where the mean falls by just the margin, one test in twenty rejects at a level of 5 %."""
    chance = random.Random(5)
    runs = [
        [chance.gauss(mean, sd) for _ in range(count)]
        for _ in range(4000)
        for mean, sd, count in ((30, 1, 3), (29, 4, 5))
    ]
    rejected = sum(chance_of_no_more(a, b, 1, 0) <= 0.05 for a, b in zip(runs[::2], runs[1::2], strict=True))
    assert 0.035 < rejected / 4000 < 0.065


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03], 0.05) == [True, False, False], "0.03 is above 0.05 / 2"
    assert holm([0.04, 0.01, 0.02], 0.05) == [True, True, True]
    assert holm([0.02, 0.02, 0.02], 0.05) == [False, False, False], "0.02 is above 0.05 / 3"
    assert holm([0.05], 0.05) == [True], "at the level is not above it"
    assert holm([], 0.05) == []
