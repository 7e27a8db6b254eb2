"""Figures as the text of a table's cells."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from gpubench.analysis import scaling
from gpubench.analysis.sharing import busy, stored_resources
from gpubench.basics.rounding import half_up
from gpubench.basics.words import UNKNOWN, clean, number, signed
from gpubench.report.spread import UNKNOWN_PCT, Spread, spread
from gpubench.schema.columns import OF_GROUPS, Column
from gpubench.schema.row import Row, TableRow, column_of

FINEST = 4
"""Digits after the point that a spread may ask for."""

KNOWN_OF_SPREAD = 3
"""Digits of a spread that are shown at most, and its time as finely: more would be noise."""
KNOWN_OF_ONE = 4
"""Digits of an extrapolated time that are shown at most where nobody knows how it spreads."""

DOUBTED = "!"
"""Marks the status of a row with doubts."""


def texts(column: Column, rows: Sequence[TableRow], found: Sequence[Any] | None = None) -> list[str]:
    """The cells of a column. `found`: what stands in it, where that is known."""
    name = column.name
    if name == "status":
        return [f"{row.endings} {DOUBTED}" if row.doubts else row.endings for row in rows]
    if found is None:
        found = list(column_of(rows, name))
    if name == "epoch_time_s":
        spreads = [spread(row) for row in rows]
        ends = [end for row, apart in zip(rows, spreads, strict=True) for end in _ends(row, name, apart)]
        digits = shown_digits(column, found, ends)
        each = zip(rows, found, spreads, strict=True)
        texts = [
            _empty(row, name) if value is None else _epoch_time(row, value, digits, apart)
            for row, value, apart in each
        ]
    elif name == "top1_crossing_s":
        ends = [end for row in rows for end in _ends(row, name, None)]
        digits = shown_digits(column, found, ends)
        texts = [
            _empty(row, name) if value is None else _crossing(row, value, digits)
            for row, value in zip(rows, found, strict=True)
        ]
    else:
        text_of = _once_each(shown_digits(column, found, ()), growth=name.endswith("_growth_pct"))
        texts = [
            _empty(row, name) if value is None else text_of(value)
            for row, value in zip(rows, found, strict=True)
        ]
    once: dict[str, str] = {}  # kept once: of 100,000 rows most cells are alike
    return [once.setdefault(text, text) for text in texts]


def _empty(row: TableRow, name: str) -> str:
    """The cell of a row that has no value there."""
    if name == "full_together" and _nothing_full(row):
        return "nothing"
    return "" if _need_not_be(row, name) else UNKNOWN


def _once_each(digits: int | None, *, growth: bool) -> Callable[[Any], str]:
    """Puts values into words, each once, of which many rows have the same. True is as good a key as 1, and 1.0 as 1,
    but no such text, so those of each type are by themselves."""
    known: defaultdict[type, dict[Any, str]] = defaultdict(dict)

    def text_of(value: Any) -> str:
        same = known[type(value)]
        if (text := same.get(value)) is None:
            text = same[value] = signed_percent(value) if growth else _text(value, digits)
        return text

    return lambda value: _text(value, digits) if isinstance(value, list) else text_of(value)


def _nothing_full(row: Row) -> bool:
    """Whether the resources of a group were looked at, and none of them may have been full."""
    resources = stored_resources(row.together)
    return bool(resources) and not busy(resources)


def _need_not_be(row: Row, name: str) -> bool:
    """Whether a row has no such figure because it is none of its business."""
    compares = name.endswith("_growth_pct") or name in scaling.COLUMNS
    if row.group:
        # Top-1 is left to the same trial alone.
        return compares or (name == "top1_pct" and row.status == "ok")
    return (compares and row.status == "ok") or name in ("group", "job", *OF_GROUPS)


def shown_digits(column: Column, found: Sequence[Any], beside: Sequence[float]) -> int | None:
    """Digits after the point: the column's; of measured ones one more for each leading zero, none that all rows lack.

    `beside`: figures that stand in the same cells. What has no unit, a ratio, is worked out and lacks no digits.
    """
    numbers = [abs(value) for value in found if isinstance(value, (int, float)) and value]
    if column.digits is None or not numbers or not column.unit:
        return column.digits
    digits = column.digits
    if column.unit == "s":
        smallest = min(numbers)
        digits += (smallest < 1) + (smallest < 0.1)
    most = 0
    for figure in (*numbers, *beside):
        if most == digits:
            break
        most = max(most, len(f"{figure:.{digits}f}".rstrip("0").partition(".")[2]))
    return most


def _ends(row: TableRow, name: str, apart: Spread | None) -> list[float]:
    """Times that stand in brackets behind the row's figure of this name. `apart`: the spread of an epoch time."""
    if name == "top1_crossing_s":
        return [end for end in (row.top1_crossing_low_s, row.top1_crossing_high_s) if end is not None]
    return [apart.low, apart.high] if apart and apart.kind in ("interval", "quartiles") else []


def epoch_time(row: Row, value: float, digits: int | None) -> str:
    """`3.21`, `~3.21` where extrapolated; with a `Spread`: `3.21 ± 0.02`, `4.10 (0.68–7.51)`, `3.21 ± >100 %`."""
    return _epoch_time(row, value, digits, spread(row))


def _epoch_time(row: Row, value: float, digits: int | None, found: Spread | None) -> str:
    mark = "~" if row.epoch_time_source == "extrapolated" else ""
    if found is None:
        finest = digits if digits is None or not mark else min(digits, _leading(value, KNOWN_OF_ONE))
        return f"{mark}{_text(value, finest)}"
    if found.kind == "unknown":
        return f"{mark}{_text(value, digits)} ± >{UNKNOWN_PCT:g} %"
    if digits is not None:
        width = found.high if found.kind == "half" else found.high - found.low
        digits = min(
            max(digits, _digits_to_show(width)), _leading((found.high - found.low) / 2, KNOWN_OF_SPREAD)
        )
    if found.kind != "half":
        return f"{mark}{_text(value, digits)} ({_text(found.low, digits)}–{_text(found.high, digits)})"
    least = 10**-FINEST
    shown = f"<{least:g}" if 0 < found.high < least / 2 else _text(found.high, digits)
    return f"{mark}{_text(value, digits)} ± {shown}"


def _leading(value: float, digits: int) -> int:
    """Digits after the point that leave so many of `value`, which is none of a spread of 0; below 0: of its tens."""
    return digits - 1 - math.floor(math.log10(value)) if value > 0 else FINEST


def _crossing(row: TableRow, value: float, digits: int | None) -> str:
    """`46.8`, and of several seeds `46.8 (40.1–54.6)`."""
    low, high = row.top1_crossing_low_s, row.top1_crossing_high_s
    if low is None or high is None:
        return _text(value, digits)
    return f"{_text(value, digits)} ({_text(low, digits)}–{_text(high, digits)})"


def _digits_to_show(spread: float) -> int:
    """Digits after the point up to the first that is not 0: a spread that was measured never reads 0.0."""
    return next((n for n in range(FINEST) if spread >= 0.5 * 10**-n), FINEST) if spread else 0


def _text(value: Any, digits: int | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and digits is not None:
        tens = 10 ** max(0, -digits)
        return number(tens * float(half_up(value / tens)), 0) if tens > 1 else number(value, digits)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return clean(str(value))


def signed_percent(value: float) -> str:
    """`+22 %`, `−43 %`, `0 %`."""
    return f"{signed(value)} %"
