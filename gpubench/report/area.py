"""Lines at the bottom of a terminal that are rewritten in place, below others that stay.

Only what has changed is written, in one piece: a table that stands above a moving bar costs nothing and never flickers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
LINE, BELOW = "\x1b[2K", "\x1b[J"
"""Erase the line that the cursor is on; all from the cursor on."""


class Area:
    """The cursor, hidden, rests on its last line. It starts no thread and asks the terminal nothing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: list[Text] = []
        self._width = 0
        """Of the terminal when they were written."""

    def show(self, lines: Sequence[Text]) -> None:
        """These stand there now. None may be wider than the terminal: what is, is cut."""
        width = self._console.width
        new = [line.copy() for line in lines]
        for line in new:
            line.truncate(width, overflow="ellipsis")
        if width == self._width and len(new) == len(self._shown):
            self._write(self._changes(new))
        else:
            self._write(f"{HIDE}{self._top()}{BELOW}{self._block(new)}")
        self._shown, self._width = new, width

    def above(self, line: Text) -> None:
        """One more line that stays, above the area; where it is wider than the terminal, that wraps it."""
        if not self._shown:
            self._write(f"{self._ansi(line)}\n")
        else:
            self._write(f"{self._top()}{BELOW}{self._ansi(line)}\r\n{self._block(self._shown)}")
            self._width = self._console.width

    def close(self) -> None:
        """It goes, and the terminal is given back."""
        if self._shown:
            gone, self._shown = self._top(), []
            self._write(f"{gone}{BELOW}{SHOW}")

    def _changes(self, new: Sequence[Text]) -> str:
        last = len(new) - 1
        parts = [
            f"{_up(last - number)}\r{LINE}{self._ansi(line)}\r{_down(last - number)}"
            for number, (line, before) in enumerate(zip(new, self._shown, strict=True))
            if line != before
        ]
        return "".join(parts)

    def _block(self, lines: Sequence[Text]) -> str:
        return "\r\n".join(map(self._ansi, lines)) + "\r"

    def _top(self) -> str:
        """To where the area begins. A terminal that has become narrower has wrapped its lines."""
        if not self._shown:
            return ""
        width = max(1, self._console.width)
        rows = sum(max(1, -(-line.cell_len // width)) for line in self._shown[:-1])
        return f"\r{_up(rows)}"

    def _ansi(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True, highlight=False)
        return captured.get()

    def _write(self, text: str) -> None:
        if text:
            self._console.file.write(text)
            self._console.file.flush()


def _up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows > 0 else ""


def _down(rows: int) -> str:
    return f"\x1b[{rows}B" if rows > 0 else ""
