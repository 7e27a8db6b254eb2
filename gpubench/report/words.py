"""Words and signs that every report shares."""

from __future__ import annotations

import re

UNKNOWN = "–"
"""Stands where a figure could not be had."""

WORDS = {"oom": "out of memory"}
"""Statuses that have a longer name where people read it."""

MINUS = "−"  # U+2212: as wide as the plus sign, and never taken for a dash

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")


def clean(text: str) -> str:
    """One line of text without control codes: reasons may quote what a process printed in colour."""
    plain = ANSI.sub("", text)
    return "".join(sign if sign.isprintable() else " " for sign in plain)
