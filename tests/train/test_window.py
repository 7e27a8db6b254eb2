"""Steps of a warm-up and of a window, at their borders. Times are sums of powers of two: nothing is rounded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.schema.window import blocks, count_window_steps, late_step_s, warm_up_left, warm_up_steps


@pytest.mark.parametrize(
    ("wave", "sync_every", "breakdown", "expected"),
    [
        (0, None, False, (1, 1)),
        (4, None, False, (4, 1)),
        (4, 6, False, (12, 6)),
        (4, None, True, (4, 2)),
        (3, None, True, (6, 2)),
        (3, 5, True, (30, 10)),
        (0, 3, True, (6, 6)),
    ],
)
def test_a_block_holds_whole_waves_averagings_and_pairs_of_steps(
    wave: int, sync_every: int | None, breakdown: bool, expected: tuple[int, int]
) -> None:
    assert blocks(wave, sync_every, breakdown=breakdown) == expected


@pytest.mark.parametrize(("ahead", "steps"), [(0, 10), (10, 10), (11, 11), (64, 64)])
def test_a_warm_up_uses_up_what_loaders_hold_ready(ahead: int, steps: int) -> None:
    assert warm_up_steps(ahead) == steps


@pytest.mark.parametrize(
    ("step_s", "wave", "left"),
    [
        ([9.0, *[0.125] * 8], 0, 0),  # a second has passed since the first step
        ([9.0, *[0.125] * 7], 0, 1),
        ([9.0, 0.125, 0.375], 0, 2),  # half a second at the pace of the last steps
        ([9.0, 5.0], 0, 0),
        ([9.0, *[0.125] * 8], 1, 0),  # one worker's batches come one by one
        ([9.0, *[0.125] * 8], 2, 2),
        ([9.0, *[0.125] * 8], 5, 5),
        ([9.0, *[0.125] * 2], 2, 6),
        ([9.0, 0.0], 0, 1_000_000),  # a clock that shows nothing
    ],
)
def test_a_warm_up_lasts_a_second_after_its_first_step_and_one_wave(
    step_s: Sequence[float], wave: int, left: int
) -> None:
    assert warm_up_left(step_s, wave) == left


@pytest.mark.parametrize(
    ("wave", "step_s", "mean_s"),
    [
        (0, [7], 7),
        (0, [1, 2, 4], 4),
        (0, [1, 2, 4, 8], 6),
        (1, [1, 2, 4, 8], 6),
        (2, [1, 2, 4, 8], 6),
        (2, [1, 2, 4, 8, 16, 32, 64], 48),  # half are three, which is one wave
        (3, [64, 0, 0, 1, 2, 3], 2),
        (4, [1, 2, 4, 9], 4),  # one whole wave, though it is more than half
        (5, [1, 2, 4, 8], 6),  # there is none
    ],
)
def test_a_step_takes_as_long_as_in_the_later_half_in_whole_waves(
    wave: int, step_s: Sequence[float], mean_s: float
) -> None:
    assert late_step_s(step_s, wave) == mean_s


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
    block, plain = blocks(wave, sync_every, breakdown=breakdown)
    steps = count_window_steps(window_s, step_s, block, plain)
    assert steps % (sync_every or 1) == steps % (1 + breakdown) == 0
    assert steps >= 3
    assert steps * step_s >= window_s * (1 - 1e-9)
    assert steps * step_s <= max(2 * window_s, window_s + plain * step_s, (2 + plain) * step_s)
