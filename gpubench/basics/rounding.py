"""Rounding as people do it: half up, on the number as written."""

from __future__ import annotations

import functools
from decimal import ROUND_HALF_UP, Context, Decimal

_WIDE = Context(prec=400)
"""Digits enough for any float: the loss of a training that diverges may have forty before the point."""


@functools.cache
def _last(digits: int) -> Decimal:
    """1 at the last of so many digits."""
    return Decimal(1).scaleb(-digits)


def half_up(value: float, digits: int = 0) -> Decimal:
    """`value` with so many digits after the point: 20.5 becomes 21, 6.25 becomes 6.3; never -0. Must be finite."""
    rounded = Decimal(str(value)).quantize(_last(digits), ROUND_HALF_UP, _WIDE)
    return rounded or abs(rounded)  # takes the sign off -0.0
