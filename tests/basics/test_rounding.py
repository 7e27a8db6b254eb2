"""Half up, as people round."""

import pytest

from gpubench.basics.rounding import half_up


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
    assert str(half_up(value, digits)) == text
