"""Steps of a window, at their borders. Times are sums of powers of two: nothing is rounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.schema.window import count_block_steps, count_missing_warm_up_steps, count_window_steps


@pytest.mark.parametrize(
    ("window_s", "step_s", "block", "plain", "steps"),
    [
        (3.0, 0.125, 1, 1, 24),
        (3.0, 0.1875, 1, 1, 16),
        (3.0, 0.25 - 2**-20, 1, 1, 13),
        (1.0, 0.25, 1, 1, 4),
        (1.0, 0.5, 1, 1, 3),  # three at least
        (1.0, 10.0, 1, 1, 3),
        (1.0, 10.0, 4, 2, 4),
        (3.0, 0.125, 16, 1, 32),
        (1.0, 0.125, 16, 1, 16),  # just twice the window
        (1.0, 0.125, 17, 1, 8),  # whole waves do not fit
        (1.0, 0.125, 20, 5, 10),
        (0.5, 0.0, 1, 1, 500_000),
    ],
)
def test_a_window_has_steps_for_its_seconds_in_whole_blocks(
    window_s: float, step_s: float, block: int, plain: int, steps: int
) -> None:
    assert count_window_steps(window_s, step_s, block, plain) == steps


@pytest.mark.parametrize(
    ("step_s", "wave", "missing"),
    [
        ([9.0, 0.25, 0.25], 0, 2),
        ([9.0, 0.5, 0.5], 0, 0),
        ([9.0, 0.5, 0.5], 4, 4),  # a wave behind what loaders held ready
        ([0.5, 0.125, 0.125, 0.25], 1, 3),
    ],
)
def test_a_warm_up_goes_on_to_its_second_and_for_a_wave(step_s: list[float], wave: int, missing: int) -> None:
    assert count_missing_warm_up_steps(step_s, wave) == missing


def test_a_block_holds_whole_waves_averagings_and_pairs() -> None:
    assert count_block_steps(3, None, breakdown=False) == (3, 1)
    assert count_block_steps(0, 4, breakdown=True) == (4, 4)
    assert count_block_steps(3, 5, breakdown=True) == (30, 10)


@given(
    window_s=st.floats(0.01, 100),
    step_s=st.floats(1e-4, 100),
    wave=st.integers(0, 64),
    sync_every=st.none() | st.integers(1, 20),
    breakdown=st.booleans(),
)
def test_no_window_is_too_short_nor_cuts_an_averaging(
    window_s: float, step_s: float, wave: int, sync_every: int | None, breakdown: bool
) -> None:
    block, plain = count_block_steps(wave, sync_every, breakdown=breakdown)
    steps = count_window_steps(window_s, step_s, block, plain)
    assert steps % (sync_every or 1) == steps % (1 + breakdown) == 0
    assert steps >= 3
    assert steps * step_s >= window_s * (1 - 1e-9)
    assert steps * step_s <= max(2 * window_s, window_s + plain * step_s, (2 + plain) * step_s)
