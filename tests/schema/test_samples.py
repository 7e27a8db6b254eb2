"""The integral under readings, and what it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import Series


def series(*readings: tuple[float, float]) -> Series:
    return Series(times=[t for t, _ in readings], values=[v for _, v in readings])


def test_each_reading_stands_for_the_time_since_the_one_before() -> None:
    assert series((0, 9), (1, 1), (2, 2), (3, 3)).integrate(0.5, 2.5, 1.0) == pytest.approx(0.5 + 2 + 1.5)


@pytest.mark.parametrize("t", [9.5, 10.0, 11.0, 12.0])
def test_one_steady_reading_near_the_window_is_not_nothing(t: float) -> None:
    assert series((t, 50)).integrate(10, 12, 2.5) == pytest.approx(100)


def test_a_gap_is_refused_wherever_it_lies() -> None:
    for readings in ([], [(0, 1)], [(10, 1), (19.5, 1)], [(9.5, 1), (12, 1), (20, 1)], [(15, 1)]):
        with pytest.raises(Unmeasured):
            series(*readings).integrate(10, 20, 2.0)


def test_a_gap_that_begins_inside_and_ends_beyond_the_window_is_measured_by_the_reading_before_it() -> None:
    assert series((9, 7), (10, 7), (100, 1)).integrate(9, 11, 2.0) == pytest.approx(14)


@given(
    steps=st.lists(st.tuples(st.floats(0.01, 0.5), st.floats(0, 1000)), min_size=1, max_size=50),
    cut=st.floats(0, 1),
)
def test_parts_add_up_and_the_mean_lies_between_the_readings(
    steps: list[tuple[float, float]], cut: float
) -> None:
    t, readings = 0.0, [(0.0, steps[0][1])]
    for dt, value in steps:
        t += dt
        readings.append((t, value))
    one = series(*readings)
    middle = cut * t
    whole = one.integrate(0, t, 1.0)
    assert one.integrate(0, middle, 1.0) + one.integrate(middle, t, 1.0) == pytest.approx(whole, abs=1e-6)
    values = [v for _, v in readings]
    assert min(values) * t - 1e-6 <= whole <= max(values) * t + 1e-6


def test_away_is_the_distance_to_the_nearest_reading() -> None:
    assert series((1, 0), (4, 0)).compute_distance_to_reading_s(2) == 1
    assert series((1, 0), (4, 0)).compute_distance_to_reading_s(9) == 5
    assert series().compute_distance_to_reading_s(0) == float("inf")
