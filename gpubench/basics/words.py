"""Words and signs that sentences and reports share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.basics.quoted import ANSI, clean
from gpubench.basics.rounding import format_half_up

__all__ = [
    "ANSI",
    "LOGGED",
    "MINUS",
    "UNKNOWN",
    "WORDS",
    "all_of",
    "clean",
    "listed",
    "machine_name",
    "many",
    "number",
    "signed",
]

MINUS = "−"  # U+2212: as wide as the plus sign, and never taken for a dash

UNKNOWN = "–"
"""Stands where a figure could not be had."""

WORDS = {"oom": "out of memory"}
"""Statuses that have a longer name where people read it."""

LOGGED = ("failed", "timeout")
"""Statuses whose cause the log of what the processes printed may tell."""


def format_list(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def format_decimal(value: float, digits: int = 0) -> str:
    """`1.76`, `−0.05`."""
    return format_half_up(value, digits).replace("-", MINUS)


def format_signed(value: float, digits: int = 0) -> str:
    """A change: `+22`, `−43`, `0`; with digits `+0.3`."""
    rounded = format_half_up(value, digits)
    is_more = not rounded.startswith("-") and rounded.strip("0.")
    return f"{'+' if is_more else ''}{rounded}".replace("-", MINUS)


def format_count(count: int, what: str) -> str:
    """`1 job`, `3 jobs`."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def format_machine_name(key: str) -> str:
    """A machine's key as people read it: `NVIDIA H200, 143,771 MiB`."""
    return re.sub(r"\b\d{4,}(?= MiB)", lambda match: f"{int(match[0]):,}", key)


def format_all(count: int, what: str) -> str:
    """`the only job`, `both jobs`, `all 3 jobs`."""
    if count == 1:
        return f"the only {what}"
    return f"both {what}s" if count == 2 else f"all {count:,} {what}s"
