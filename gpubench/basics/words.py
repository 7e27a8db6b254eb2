"""Words and signs that sentences and reports share."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.basics.quoted import clean_line

__all__ = ["LOGGED", "WORDS", "clean_line", "format_count", "format_hardware_key", "format_list"]

WORDS = {"oom": "out of memory"}
"""Statuses that have a longer name where people read it."""

LOGGED = ("failed", "timeout")
"""Statuses whose cause the log of what the processes printed may tell."""


def format_list(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def format_count(count: int, what: str) -> str:
    """`1 job`, `3 jobs`."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def format_hardware_key(key: str) -> str:
    """A machine's key as people read it: `NVIDIA H200, 143,771 MiB`."""
    return re.sub(r"\b\d{4,}(?= MiB)", lambda match: f"{int(match[0]):,}", key)
