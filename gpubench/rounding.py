"""Rounding as people do it: half up, on the number as written."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def half_up(value: float, digits: int = 0) -> Decimal:
    """`value` with so many digits after the point: 20.5 becomes 21, 6.25 becomes 6.3; never -0. Must be finite."""
    return (
        Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0
    )  # takes the sign off -0.0
