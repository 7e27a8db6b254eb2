"""Sentences as lines of a terminal."""

from __future__ import annotations

import textwrap

HANG = "  "
"""What the lines of a sentence after its first begin with, so that one sees where each sentence begins."""
NARROWEST = 20
"""Columns for a line, however narrow the terminal."""


def wrap_sentence(sentence: str, width: int | None, *, indent: str = "", hang: str = HANG) -> list[str]:
    """Lines of at most so many columns, broken at spaces alone, so that no path is: wider words stay whole.

    `width=None`: where no terminal is, a sentence is one line. `indent`: before all of them; `hang`: before all but the
    first.
    """
    if width is None:
        return [f"{indent}{sentence}"]
    lines = textwrap.wrap(
        sentence,
        max(NARROWEST, width),
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [""]
