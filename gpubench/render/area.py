"""Lines at the bottom of a terminal that are rewritten in place, below others that stay.

Only what has changed is written, in one piece: a table that stands above a moving bar costs nothing and never flickers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
LINE, BELOW = "\x1b[2K", "\x1b[J"
"""Erase the line that the cursor is on; all from the cursor on."""


class LiveArea:
    """The cursor, hidden, rests on its last line. It starts no thread and asks the terminal nothing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[Text] = []
        """The lines as they came, and as they were written."""
        self._shown: list[Text] = []
        self._size = (0, 0)
        """Of the terminal when they were written."""

    def show(self, lines: Sequence[Text]) -> None:
        """These stand there now, for as long as none of them is changed. What is wider than the terminal is cut."""
        size = self._console.size
        if size != self._size or len(lines) != len(self._lines):
            shown = [self._cut(line) for line in lines]
            self._write(f"{HIDE}{self._move_to_top()}{BELOW}{self._join_lines(shown)}")
        else:
            both = zip(lines, self._lines, self._shown, strict=True)
            shown = [old if line is given else self._cut(line) for line, given, old in both]
            self._write(self._write_changes(shown))
        self._lines, self._shown, self._size = list(lines), shown, size

    def print_above(self, line: Text) -> None:
        """One more line that stays, above the area; where it is wider than the terminal, that wraps it."""
        if not self._shown:
            self._write(f"{self._to_ansi(line)}\n")
        else:
            self._write(
                f"{self._move_to_top()}{BELOW}{self._to_ansi(line)}\r\n{self._join_lines(self._shown)}"
            )

    def close(self) -> None:
        """It goes, and the terminal is given back."""
        if self._shown:
            gone, self._lines, self._shown = self._move_to_top(), [], []
            self._write(f"{gone}{BELOW}{SHOW}")

    def _cut(self, line: Text) -> Text:
        cut = line.copy()
        cut.truncate(self._console.width, overflow="ellipsis")
        return cut

    def _write_changes(self, new: Sequence[Text]) -> str:
        last = len(new) - 1
        parts = [
            f"{_move_up(last - number)}\r{LINE}{self._to_ansi(line)}\r{_move_down(last - number)}"
            for number, (line, before) in enumerate(zip(new, self._shown, strict=True))
            if line is not before and line != before
        ]
        return "".join(parts)

    def _join_lines(self, lines: Sequence[Text]) -> str:
        return "\r\n".join(map(self._to_ansi, lines)) + "\r"

    def _move_to_top(self) -> str:
        """To where the area begins. A terminal that has become narrower has wrapped its lines."""
        if not self._shown:
            return ""
        width = max(1, self._console.width)
        rows = sum(max(1, -(-line.cell_len // width)) for line in self._shown[:-1])
        return f"\r{_move_up(rows)}"

    def _to_ansi(self, line: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True, highlight=False)
        return captured.get()

    def _write(self, text: str) -> None:
        if text:
            send(self._console, text)


def send(console: Console, text: str) -> None:
    """Writes there, if that can be: whoever looked on may have gone, and the measuring goes on."""
    # A closed pipe, a terminal that hung up, a full disk behind a redirection.
    with contextlib.suppress(OSError):
        console.file.write(text)
        console.file.flush()


def _move_up(rows: int) -> str:
    return f"\x1b[{rows}A" if rows > 0 else ""


def _move_down(rows: int) -> str:
    return f"\x1b[{rows}B" if rows > 0 else ""
