"""How series look: colours that colour-blind readers tell apart, and shapes that do without colours."""

from __future__ import annotations

from collections.abc import Sequence

COLOURS: Sequence[str] = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito (2008), without the yellow, which is hard to see on white."""
BLACK = len(COLOURS) - 1
MARKERS: Sequence[str] = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
"""By matplotlib's letters: circle, square, triangle, diamond, … One more than a multiple of the number of colours, so
that eleven times seven series differ."""
LINES: Sequence[str] = ("-", "--", "-.", ":")
"""By matplotlib's words."""
HATCHES: Sequence[str] = ("", "////", "\\\\\\\\", "xxxx", "----", "||||", "++++")
"""By matplotlib's letters; lines alone, for dots make files ten times as large."""
FILLS: Sequence[str] = ("#0072B2", "#F4B183", "#8FD3BF", "#EBC3DA", "#F6D98F", "#BFE3F7", "#BBBBBB")
"""Of bars, as COLOURS: lighter, but for the first, so that hatches show and greys differ."""


def of(looks: Sequence[str], look: int) -> str:
    """The look of this number, beginning again behind the last one."""
    return looks[look % len(looks)]
