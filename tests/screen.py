"""A terminal, as far as a sweep uses one: what is written to it becomes lines, and it wraps them anew when resized."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]")


class Screen:
    """Lines of so many cells; what is scrolled out at the top is kept, and can't be reached any more."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.cursor = True
        """Whether it is shown."""
        self._rows: list[list[str]] = [[]]
        self._wraps: set[int] = set()
        """Rows that go on in the next one."""
        self._row = self._column = 0

    @property
    def lines(self) -> list[str]:
        """All that it shows and has shown, without what is empty below."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip("\n").split("\n")

    @property
    def seen(self) -> list[str]:
        """What stands on it now."""
        return self.lines[max(0, len(self._rows) - self.height) :]

    def feed(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            mode, number, end = piece.groups()
            if end is None:
                self._put(piece[0])
            elif mode:
                self.cursor = {"25h": True, "25l": False}.get(number + end, self.cursor)
            elif end == "A":
                self._row = max(self._row - int(number or 1), len(self._rows) - self.height, 0)
            elif end == "B":
                self._row = min(self._row + int(number or 1), len(self._rows) - 1)
            elif end == "K" and number == "2":
                self._rows[self._row] = []
                self._wraps.discard(self._row)
            elif end == "J" and not number:
                del self._rows[self._row + 1 :]
                del self._rows[self._row][self._column :]
                self._wraps = {row for row in self._wraps if row < self._row}
            elif end != "m":
                raise ValueError(f"a screen that does not know {piece[0]!r}")

    def resize(self, width: int, height: int) -> None:
        """Lines are wrapped anew, as most terminals do; the cursor stays in its line's first row."""
        whole: list[list[str]] = []
        at = 0
        for number, row in enumerate(self._rows):
            if number and number - 1 in self._wraps:
                whole[-1] += row
            else:
                whole.append(list(row))
            if number == self._row:
                at = len(whole) - 1
        self.width, self.height = width, height
        self._rows, self._wraps = [], set()
        for number, line in enumerate(whole):
            if number == at:
                self._row = len(self._rows)
            parts = [line[n : n + width] for n in range(0, len(line), width)] or [[]]
            self._wraps |= {len(self._rows) + n for n in range(len(parts) - 1)}
            self._rows += parts

    def _put(self, sign: str) -> None:
        if sign == "\r":
            self._column = 0
        elif sign == "\n":
            self._down()
        else:
            if self._column == self.width:
                self._wraps.add(self._row)
                self._down()
            row = self._rows[self._row]
            row += [" "] * (self._column + 1 - len(row))
            row[self._column] = sign
            self._column += 1

    def _down(self) -> None:
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])
