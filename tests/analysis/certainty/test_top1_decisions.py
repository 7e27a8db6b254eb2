"""Top-1 of seeds, and when one was reached."""

import math

import numpy as np
import pytest
from gpubench.analysis.certainty.accuracy import compare_top1
from gpubench.analysis.certainty.distributions import t_above

ONE = [71.2, 71.9, 70.8]
OTHER = [71.0, 71.3, 71.6]


def test_equal_inside_a_margin():
    """By Welch p is 0.0348 (statsmodels' ttost_ind); of ONE alone, t = 1 / √(0.31 / 3) with freedom 2, it is 0.0448."""
    found = compare_top1(ONE, OTHER, 1.0)
    assert (found.word, found.margin) == ("equal", 1.0)
    assert found.equal == pytest.approx(0.04482715)
    assert found.difference == pytest.approx(0)
    assert found.high == pytest.approx(4.302653 * math.sqrt(0.31 / 3))
    assert found.low == pytest.approx(-found.high)
    assert compare_top1(ONE, OTHER, 0.9).word == "open"
    assert compare_top1(ONE, OTHER, 1.0, level=0.01).word == "open"


def test_higher_and_lower():
    higher = [value + 5 for value in ONE]
    found = compare_top1(higher, OTHER, 1.0)
    assert (found.word, found.difference) == ("higher", pytest.approx(5))
    assert compare_top1(OTHER, higher, 1.0).word == "lower"
    assert found.differs == compare_top1(OTHER, higher, 1.0).differs <= 0.05
    assert compare_top1([71.0, 71.1, 71.2, 71.1], [70.7, 70.8, 70.9, 70.8], 1.0).word == "equal", (
        "though they differ"
    )


def test_fewer_than_three_seeds_say_nothing():
    assert compare_top1(ONE[:2], OTHER, 1.0) is None
    assert compare_top1(ONE, OTHER[:2], 1.0) is None
    for margin in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="above 0"):
            compare_top1(ONE, OTHER, margin)


def test_what_the_images_can_not_resolve():
    """Of 100 images top-1 is a whole number: seeds that agree have a standard deviation of 0.289, not of 0."""
    same = [71.0, 71.0, 71.0]
    assert compare_top1(same, [70.0] * 3, 1.01).word == "equal"
    found = compare_top1(same, [70.0] * 3, 1.01, resolution=100 / 100 / math.sqrt(12))
    assert (found.word, found.equal) == ("higher", pytest.approx(t_above(0.01 / math.sqrt(2 / 36), 4)))


def test_it_errs_as_seldom_as_it_says():
    """A margin apart, at most one in twenty is called equal; of equal ones, at most one in twenty differs."""
    draw = np.random.default_rng(1)
    for some, others, noisier in ((3, 3, 1), (3, 5, 4), (5, 5, 1)):
        one = draw.normal(70, 0.3, (2000, some))
        other = draw.normal(70, 0.3 * noisier, (2000, others))
        pairs = list(zip(one.tolist(), other.tolist(), strict=True))
        at_margin = [compare_top1([v + 1 for v in a], b, 1.0).word == "equal" for a, b in pairs]
        differs = [compare_top1(a, b, 1.0).differs <= 0.05 for a, b in pairs]
        assert 0.005 < sum(at_margin) / 2000 < 0.062
        assert 0.01 < sum(differs) / 2000 < 0.062
