"""A value as text, in CSVs, headings and labels alike."""

from __future__ import annotations

from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""By which a spreadsheet knows a formula; by the full-width ones where it is set to Chinese or Japanese."""


def format_cell(value: Any, digits: int = 6) -> str:
    """A value as text: empty for unknown, lists as 0+1, numbers to so many significant digits."""
    if isinstance(value, float):  # most of large tables are
        return f"{value:.{digits}g}" if value == value else ""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return "+".join(format_cell(v) for v in value)
    if not isinstance(value, str):
        return str(value)
    # A spreadsheet runs text that begins like a formula; an apostrophe in front makes it plain text.
    return "'" + value if value[:1] in FORMULA else value
