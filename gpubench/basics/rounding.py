"""Rounding as people do it: half up, on the number as written."""

from __future__ import annotations

import functools
from decimal import ROUND_HALF_UP, Context, Decimal

_WIDE = Context(prec=400)
"""Digits enough for any float: the loss of a training that diverges may have forty before the point."""


@functools.cache
def _make_rounding_unit(digits: int) -> Decimal:
    """1 at the last of so many digits."""
    return Decimal(1).scaleb(-digits)


_FAR = 1e-6
"""Farther from a half, in units of the last digit, Python rounds a number as people do: what it is and what is written
of it are on the same side."""


def format_half_up(value: float, digits: int) -> str:
    """`round_half_up` with commas: `1,234.5`. In a third of the time, for all but few numbers."""
    if type(value) is float:
        units = value * 10.0**digits
        if -1e9 < units < 1e9 and abs(units % 1 - 0.5) > _FAR:
            return f"{value:z,.{digits}f}"
    return f"{round_half_up(value, digits):,}"


def round_half_up(value: float, digits: int) -> Decimal:
    """`value` with so many digits after the point: 20.5 becomes 21, 6.25 becomes 6.3; never -0. Must be finite."""
    rounded = Decimal(str(value)).quantize(_make_rounding_unit(digits), ROUND_HALF_UP, _WIDE)
    return rounded or abs(rounded)  # takes the sign off -0.0
