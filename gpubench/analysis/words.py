"""Words and signs of sentences that say what was found."""

from __future__ import annotations

from collections.abc import Sequence

MINUS = "−"  # U+2212: as wide as the plus sign, and never taken for a dash


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
