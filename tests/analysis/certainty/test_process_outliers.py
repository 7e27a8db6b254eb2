"""Processes that lie far from the others."""

import math

import numpy as np
from gpubench.analysis.certainty.outliers import outliers
from hypothesis import given
from hypothesis import strategies as st

# Rosner's own 54 values (1983), as NIST's Engineering Statistics Handbook (1.3.5.17.3) has them: three outliers, which
# hide each other from a test for one.
ROSNER = [
    -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69, 1.70,
    1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40,
    2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
]  # fmt: skip


def test_rosners_example():
    assert outliers([math.exp(value) for value in ROSNER]) == (51, 52, 53)


def test_the_limit_for_five_is_grubbs():
    """Grubbs' two-sided limit for five values at 5 % is 1.715 (of 1.789 at most): 0, 0, 0, 0 and x reach the latter."""
    assert outliers([1.0, 1.0, 1.0, 1.0, 1.3]) == (4,)
    # (x, −1, 0, 1, 0): its distance is 1.713 standard deviations at x = 5.25 and 1.719 at 5.5.
    assert outliers([math.exp(value) for value in (0.0, 5.5, -1.0, 0.0, 1.0)]) == (1,)
    assert outliers([math.exp(value) for value in (0.0, 5.25, -1.0, 0.0, 1.0)]) == ()


def test_a_fast_one_is_one_too():
    assert outliers([0.7, 1.0, 1.01, 0.99, 1.0, 1.02]) == (0,)


def test_among_few_nothing_tells():
    assert outliers([1.0, 1.0, 1.0, 100.0]) == ()
    assert outliers([]) == ()


def test_five_that_are_the_same():
    assert outliers([1.0] * 5) == ()


def test_two_of_six_don_t_hide_each_other():
    assert outliers([1.0, 1.31, 1.01, 0.99, 1.3, 1.0]) == (1, 4)


def test_at_most_a_third():
    assert len(outliers([1.0, 1.001, 0.999, 1.0, 2.0, 3.0, 5.0])) <= 2


def test_samples_without_any_are_seldom_flagged():
    draw = np.random.default_rng(1)
    for count, share in ((5, 0.048), (10, 0.084)):
        lines = np.exp(draw.normal(size=(2000, count))).tolist()
        assert abs(sum(bool(outliers(line)) for line in lines) / 2000 - share) < 0.02


@given(st.lists(st.floats(0.5, 2), min_size=5, max_size=9, unique=True), st.randoms(use_true_random=False))
def test_their_order_changes_nothing(times, chance):
    shuffled = chance.sample(times, len(times))
    assert {shuffled[place] for place in outliers(shuffled)} == {times[place] for place in outliers(times)}
