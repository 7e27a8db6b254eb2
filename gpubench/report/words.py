"""Words and signs that every report shares."""

from __future__ import annotations

import re

from gpubench.analysis.words import MINUS, listed
from gpubench.rounding import half_up

__all__ = ["ANSI", "UNKNOWN", "WORDS", "clean", "listed", "many", "number", "signed"]

UNKNOWN = "–"
"""Stands where a figure could not be had."""

WORDS = {"oom": "out of memory"}
"""Statuses that have a longer name where people read it."""

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")


def clean(text: str) -> str:
    """One line of text without control codes: reasons may quote what a process printed in colour."""
    plain = ANSI.sub("", text)
    return "".join(sign if sign.isprintable() else " " for sign in plain)


def number(value: float, digits: int = 0) -> str:
    """`1.76`, `−0.05`."""
    return f"{half_up(value, digits):,}".replace("-", MINUS)


def signed(value: float) -> str:
    """A change in whole units: `+22`, `−43`, `0`."""
    whole = half_up(value)
    return f"{'+' if whole > 0 else ''}{number(value)}"


def many(count: int, what: str) -> str:
    """`1 job`, `3 jobs`."""
    return f"{count} {what}{'s' if count != 1 else ''}"
