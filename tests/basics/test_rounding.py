"""Half up, as people round."""

import math
import random

import pytest

from gpubench.basics.rounding import format_half_up, round_half_up


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (6.25, 1, "6.3"),
        (20.5, 0, "21"),
        (-2.25, 1, "-2.3"),
        (-0.04, 1, "0.0"),
        (12, 2, "12.00"),
        (1.005, 2, "1.01"),
        (3e38, 3, "3" + "0" * 38 + ".000"),
    ],
)
def test_half_up(value, digits, text):
    assert str(round_half_up(value, digits)) == text


@pytest.mark.parametrize("digits", range(7))
def test_as_text_it_is_the_same_number(digits):
    """Of halves as written, of their neighbours on both sides, of what lies near them, and of any other number."""
    draw = random.Random(digits)
    for _ in range(3_000):
        half = (draw.randrange(-(10**5), 10**5) + 0.5) / 10**digits
        any_number = draw.uniform(-1, 1) * 10 ** draw.randrange(-8, 18)
        near = half + draw.uniform(-3e-6, 3e-6) / 10**digits
        for value in (
            half,
            math.nextafter(half, 1e9),
            math.nextafter(half, -1e9),
            near,
            any_number,
            round(half),
        ):
            assert format_half_up(value, digits) == f"{round_half_up(value, digits):,}", value
    for value in (0.0, -0.0, -1e-12, 1e-320, 3e38, 10**300):
        assert format_half_up(value, digits) == f"{round_half_up(value, digits):,}", value
