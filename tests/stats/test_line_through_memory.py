"""The line through memory over the batch size, its doubt, and where it reaches a GPU's memory."""

import csv

import committed
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.stats.distributions import compute_t_quantile
from gpubench.stats.memory_line import MemoryLine, fit_line_to_largest_sizes, fit_memory_line

LOG = committed.HOME / "titan-xp-2021" / "trials.csv"
WORKED = [(100.0, 1100.0), (200.0, 1950.0), (300.0, 3150.0), (400.0, 4000.0)]
"""By hand: means 250 and 2,550; sums of squares 50,000 and 495,000, so 9.9 MiB an image and 75 MiB at none; off the
line by 35, −105, 105 and −35, so a standard deviation of √(24,500 / 2)."""


def half_width(line: MemoryLine, batch: float) -> float:
    """Half the 95 % interval in which the memory of a trial with this batch size lies."""
    apart = (batch - line.middle) ** 2 / line.spread
    return float(compute_t_quantile(0.975, line.count - 2)) * line.error * (1 + 1 / line.count + apart) ** 0.5


def test_a_line_worked_by_hand():
    found = fit_memory_line(WORKED)
    assert found is not None
    assert fit_memory_line(WORKED[:2]) is None
    assert (found.slope, found.predict_mib(0), found.error) == pytest.approx((9.9, 75.0, (24_500 / 2) ** 0.5))
    # Student's t of 97.5 % with two degrees of freedom is 4.3027; 1 + 1 / 4 + 250² / 50,000 = 2.5.
    assert half_width(found, 500) == pytest.approx(4.3027 * (24_500 / 2 * 2.5) ** 0.5, rel=1e-4)


def test_the_published_line_from_16_to_256_and_what_was_logged_at_512():
    committed.folder("titan-xp-2021")
    with LOG.open() as file:
        logged = {
            int(one["batch_size"]): float(one["gpu_mem_mib"])
            for one in csv.DictReader(file)
            if one["experiment"] == "resnet34-4gpu"
        }
    found = fit_line_to_largest_sizes([(batch, mib) for batch, mib in logged.items() if batch <= 256])
    assert found is not None
    assert found.count == 5
    assert f"{found.predict_mib(512):,.0f}" == "10,085"
    assert logged[512] == 9_905
    assert abs(logged[512] - found.predict_mib(512)) <= half_width(found, 512)


points = st.lists(
    st.tuples(st.integers(1, 4096), st.floats(100, 1e5)), min_size=3, max_size=8, unique_by=lambda one: one[0]
)


@given(points, st.floats(1, 2e5))
def test_the_ends_are_where_the_prediction_interval_reaches_the_room(found, room):
    fitted = fit_memory_line(found)
    reached = fitted.solve_batch_size(room)
    if reached is None:
        return
    value, low, high = reached
    scale = max(room, *(mib for _, mib in found))
    assert low <= value <= high
    assert fitted.predict_mib(value) == pytest.approx(room, abs=1e-6 * scale)
    if high < 1e6 and low > -1e6:
        assert fitted.predict_mib(low) + half_width(fitted, low) == pytest.approx(room, abs=1e-3 * scale)
        assert fitted.predict_mib(high) - half_width(fitted, high) == pytest.approx(room, abs=1e-3 * scale)


def test_the_interval_holds_the_next_trial_in_95_of_100_cases():
    draw = np.random.default_rng(13)
    sizes = np.array([16.0, 32, 64, 128, 256])
    held = 0
    for _ in range(1000):
        mib = 1000 + 20 * sizes + draw.normal(0, 60, 5)
        _, low, high = fit_memory_line(list(zip(sizes, mib, strict=True))).solve_batch_size(
            1000 + 20 * 512 + draw.normal(0, 60)
        )
        held += low <= 512 <= high
    assert 930 <= held <= 970
