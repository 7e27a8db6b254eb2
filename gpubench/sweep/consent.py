"""Asks before a sweep fills the disk with images, where somebody is there to answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from gpubench.datasets import built
from gpubench.datasets.locate import MakingStep

MUCH_BYTES = 200_000_000
"""Fewer are made without a question."""
LOOK_S = 5.0
"""How often `meanwhile` is called while nobody answers."""


def is_much(steps: Sequence[MakingStep]) -> bool:
    """Whether these images are many enough to ask first."""
    return sum(step.need_bytes for step in steps) > MUCH_BYTES


def can_ask() -> bool:
    """Whether somebody sits there: the question and its answer are on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(steps: Sequence[MakingStep], *, answers: TextIO | None = None) -> bool:
    """Asks on stderr whether to make these images, until the answer is yes (or nothing) or no (or its end)."""
    source = answers or sys.stdin
    size = built.amount(sum(step.need_bytes for step in steps))
    while True:
        print(
            f"Make about {size} of images in {steps[0].place.parent}? [Y/n] ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        line = source.readline()
        word = line.strip().lower()
        if not line or word in ("n", "no"):
            return False
        if word in ("", "y", "yes"):
            return True
