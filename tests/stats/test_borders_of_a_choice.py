"""A choice where bounds lie exactly on a border."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gpubench.core.claims import Evidence, StudentEstimate
from gpubench.stats.choice import FIRM_BOUND, make_row_choice


def with_bounds(*bounds: Evidence) -> Callable[[int, int], Evidence]:
    """Compares the rows 2, 3 … with the first."""
    return lambda other, row: bounds[other - 2] if row == 1 else pytest.fail("the first is the fastest")


def exactly(center: float) -> Evidence:
    """Evidence of processes that do not vary."""
    return Evidence(
        center=center, processes=(3, 3), pairs=StudentEstimate(center=center, error=0.0, degrees=2)
    )


def test_who_is_no_faster_gains_nothing() -> None:
    choice = make_row_choice({1: 2.0, 2: 1.0}, {}, with_bounds(exactly(0.0)))
    assert (choice.bound, choice.gains, choice.is_firm) == (0.0, {}, True)


def test_a_bound_on_the_border_is_an_answer_and_no_bound_beside_rows_that_are_not_known() -> None:
    center = math.log(1 + FIRM_BOUND)
    assert math.expm1(center) == FIRM_BOUND
    choice = make_row_choice({1: 2.0, 2: 1.0}, {}, with_bounds(exactly(center)))
    assert (choice.bound, choice.is_firm) == (FIRM_BOUND, True)
    unknown = Evidence(center=0.0, processes=(1, 1))
    choice = make_row_choice({1: 2.0, 2: 1.0, 3: 1.0}, {}, with_bounds(exactly(center), unknown))
    assert (choice.bound, choice.gains, choice.is_firm) == (None, {2: pytest.approx(FIRM_BOUND)}, False)
