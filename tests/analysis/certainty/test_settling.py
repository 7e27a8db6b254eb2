"""What an open answer would take: against statsmodels' power of t-tests, and against drawn samples."""

import math

import numpy as np
import pytest
from gpubench.analysis.certainty.interval import ratio, ratio_by_rounds
from gpubench.analysis.certainty.power import (
    Settling,
    power_of_difference,
    power_of_equality,
    settling_ratio,
    smallest_effect,
)


def spread(count, sd=1.0):
    """So many times whose logarithms have mean 0 and this standard deviation."""
    logs = np.arange(count) - (count - 1) / 2
    return np.exp(logs / logs.std(ddof=1) * sd).tolist()


def settled(over, under, margin, **asked):
    return settling_ratio(ratio(over, under), margin, **asked)


def paired(count):
    return ratio_by_rounds(dict(enumerate(spread(count))), dict.fromkeys(range(count), 1.0))


@pytest.mark.parametrize(("count", "effect"), [(3, 3.264044), (5, 1.681997), (10, 0.996002)])
def test_the_smallest_effect_of_pairs(count, effect):
    """statsmodels' TTestPower().solve_power(nobs=count, alpha=0.05, power=0.8), in standard deviations."""
    assert math.log(smallest_effect(paired(count))) == pytest.approx(effect, rel=1e-5)


def test_what_is_asked_for_moves_the_smallest_effect():
    usual = smallest_effect(paired(5))
    assert smallest_effect(paired(5), level=0.005) > usual > smallest_effect(paired(5), power=0.5)
    assert smallest_effect(ratio([1.0, 1.0], [2.0, 2.0])) == 1
    assert smallest_effect(ratio([1.0, 2e200], [1.0, 1.0])) == math.inf


@pytest.mark.parametrize(
    ("some", "others", "noisier"), [(3, 3, 1), (5, 5, 1), (10, 10, 1), (3, 10, 1), (5, 5, 3)]
)
@pytest.mark.parametrize("level", [0.05, 0.005])
def test_a_smallest_effect_shows_in_about_four_of_five(some, others, noisier, level):
    found = ratio(spread(some, 0.05), spread(others, 0.05 * noisier))
    effect = smallest_effect(found, level)
    draw = np.random.default_rng(some)
    over = effect * np.exp(draw.normal(0, 0.05, (1500, some)))
    under = np.exp(draw.normal(0, 0.05 * noisier, (1500, others)))
    shown = [
        ratio(a, b).log.chance_at_most(0) <= level / 2
        for a, b in zip(over.tolist(), under.tolist(), strict=True)
    ]
    assert 0.74 < sum(shown) / 1500 < 0.89


def test_processes_that_would_settle_it():
    still = [1.0, 1.01, 0.99]
    found = settled(still, [1.1 * time for time in still], 0.02)
    assert found == Settling(difference=3, equality=None), "10 % lie outside the margin"
    assert found.fewest == 3
    alike = settled(still, still, 0.02)
    assert alike.difference is None
    assert alike.equality == alike.fewest
    near = settled([1.01 * time for time in still], still, 0.02)
    assert near.equality > alike.equality, "half of the margin is used up"
    assert near.difference > found.difference
    assert near.fewest == min(near.equality, near.difference)
    assert Settling(difference=None, equality=None).fewest is None


def test_which_way_round_changes_nothing():
    some, others = [1.0, 1.1, 1.05], [1.2, 1.25, 1.19, 1.22]
    assert settled(some, others, 0.02) == settled(others, some, 0.02)


def test_the_fewest_processes_are_the_first_with_that_power():
    some, others = [1.0, 1.1, 1.05], [1.02, 1.12, 1.2]
    found = settled(some, others, 0.2)
    logs = np.log(some), np.log(others)
    variances = [one.var(ddof=1) for one in logs]
    effect = abs(logs[0].mean() - logs[1].mean())
    for power, count in (
        (lambda n: power_of_difference(variances, n, effect), found.difference),
        (lambda n: power_of_equality(variances, n, effect, math.log(1.2)), found.equality),
    ):
        assert power(count - 1) < 0.8 <= power(count)
    stricter = settled(some, others, 0.2, level=0.005)
    assert stricter.difference > found.difference
    assert stricter.equality > found.equality
    assert settled(some, others, 0.2, power=0.9).difference > found.difference


def test_power_of_many_is_that_of_the_normal_distribution():
    """Φ(δ − 1.960) for the difference; for equality 2 Φ(δ − 1.645) − 1: δ = 3 is 0.851 and 0.825."""
    effect = 3 * math.sqrt(2 / 1000)
    assert power_of_difference([1.0, 1.0], 1000, effect) == pytest.approx(0.851, abs=0.002)
    assert power_of_equality([1.0, 1.0], 1000, 0, effect) == pytest.approx(0.825, abs=0.002)
    assert power_of_equality([1.0, 1.0], 1000, effect, effect) == pytest.approx(0.05, abs=0.002)
    assert power_of_equality([1.0, 1.0], 3, 0, 0.1) == 0


def test_power_is_1_where_scipy_has_no_number_for_it():
    """31 processes with a noise of 0.2 %: the chance to miss 2 % is below 1e-300, for which scipy 1.17 says nan."""
    found = [
        power_of_equality([0.002**2] * 2, count, 0, math.log(1.02)) for count in (5, 30, 31, 32, 33, 1000)
    ]
    assert found == [1.0] * 6
    still = spread(10, 0.002)
    assert settled(still, still, 0.02).equality == 2


def test_power_without_noise():
    assert power_of_difference([0.0, 0.0], 2, 0.1) == 1
    assert power_of_equality([0.0, 0.0], 2, 0.1, 0.2) == 1
    assert power_of_equality([0.0, 0.0], 2, 0.2, 0.2) == 0


def test_more_than_anybody_would_run_is_none():
    assert settled([1.0, 2.0], [1.0, 2.01], 1e-4) == Settling(difference=None, equality=None)
