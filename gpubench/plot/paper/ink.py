"""How wide texts are, and into which lines they are broken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from gpubench.plot.paper.sheet import FONT, MARGIN, SMALL, WIDTH

_PIECE = re.compile(r"[^ =&+_,-]*[=&+_,-]* *")
"""Where a word that is wider than a line may be broken: behind a sign in it."""


class Ink:
    """How wide texts are."""

    def __init__(self, figure: Figure) -> None:
        self._renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        self._dpi = figure.dpi
        self._known: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """In inches."""
        key = (text, size, bold)
        if key not in self._known:
            self._known[key] = self._measured(text, size, bold=bold)
        return self._known[key]

    def _measured(self, text: str, size: float, *, bold: bool) -> float:
        font = FontProperties(family=[FONT], size=size, weight="bold" if bold else "normal")
        wide, _, _ = self._renderer.get_text_width_height_descent(text, font, False)
        return float(wide) / self._dpi

    def wrapped(self, text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
        """The text in lines that are no wider; a word that is wider by itself is broken."""
        lines: list[str] = []
        space = self.width("x x", size, bold=bold) - self.width("xx", size, bold=bold)
        for paragraph in text.split("\n"):
            line, used = "", 0.0
            pieces = [
                piece
                for word in re.findall(r"[^ ]+ ?", paragraph)
                for piece in (
                    [word] if self.width(word.rstrip(" "), size, bold=bold) <= width else _PIECE.findall(word)
                )
            ]
            for piece in pieces:
                wide = self.width(piece.rstrip(" "), size, bold=bold)
                if used + wide <= width:
                    line += piece
                    used += wide + (space if piece.endswith(" ") else 0.0)
                    continue
                lines.append(line)
                line = piece
                while line and self.width(line.rstrip(" "), size, bold=bold) > width:
                    fits = max(1, int(len(line) * width / self.width(line, size, bold=bold)))
                    lines.append(line[:fits])
                    line = line[fits:]
                used = self.width(line.rstrip(" "), size, bold=bold) + (space if line.endswith(" ") else 0.0)
            lines.append(line)
        return [line.strip(" ") for line in lines if line.strip(" ")]

    def columns(self, names: Sequence[str]) -> tuple[int, int]:
        """In how many columns a legend of these names is no wider than the picture, and how many lines it has then."""
        for columns in range(min(len(names), 6), 0, -1):
            rows = -(-len(names) // columns)
            split = [
                names[place : place + rows] for place in range(0, len(names), rows)
            ]  # filled column by column
            wide = sum(max(self._widest(name) for name in column) + 0.42 for column in split)
            if wide <= WIDTH - 2 * MARGIN or columns == 1:
                lines = max(sum(name.count("\n") + 1 for name in column) for column in split)
                return len(split), lines
        return 1, 0

    def _widest(self, text: str) -> float:
        return max(self.width(line, SMALL) for line in text.split("\n"))
