"""Variance between processes and inside them."""

import math

import pytest
from gpubench.analysis.certainty.components import components

TIMES = [math.exp(value) for value in (-0.1, 0.0, 0.1)]
"""Their logarithms have a variance of 0.01."""


def test_by_hand():
    """Within: (0.03² + 0.04² + 0.05²) / 3 = 0.005 / 3. Between: 0.01 less that."""
    found = components(TIMES, [0.03, 0.04, 0.05])
    assert found.within_sd == pytest.approx(math.sqrt(0.005 / 3))
    assert found.between_sd == pytest.approx(math.sqrt(0.01 - 0.005 / 3))
    assert found.total_sd == pytest.approx(0.1)
    assert found.processes == 3


def test_what_the_inside_explains_is_not_between():
    found = components(TIMES, [0.2, 0.2, 0.2])
    assert (found.between_sd, found.within_sd, found.total_sd) == pytest.approx((0, 0.2, 0.1))
    exact = components(TIMES, [0.0] * 3)
    assert exact.between_sd == pytest.approx(0.1)


def test_one_process_tells_nothing_of_others():
    assert components([1.0], [0.1]) is None
    assert components([], []) is None
    assert components([1.0, 1.0], [0.0, 0.0]).total_sd == 0
    with pytest.raises(ValueError, match="one standard error"):
        components([1.0, 1.1], [0.1])


def test_the_unit_changes_nothing():
    here, there = components(TIMES, [0.03] * 3), components([1000 * time for time in TIMES], [0.03] * 3)
    assert here.between_sd == pytest.approx(there.between_sd)
