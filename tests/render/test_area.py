"""Lines that are rewritten in place at the bottom of a terminal, as the terminal shows them."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.text import Text
from screen import Screen

from gpubench.render.area import LiveArea


class Watched:
    """An area on a screen of so many cells."""

    def __init__(self, width: int = 20, height: int = 8) -> None:
        self.screen = Screen(width, height)
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None, _environ={}
        )
        self.area = LiveArea(self.console)
        self._read = 0

    def show(self, *lines: str) -> str:
        self.area.show([Text(line) for line in lines])
        return self.feed()

    def above(self, line: str) -> str:
        self.area.print_above(Text(line))
        return self.feed()

    def feed(self) -> str:
        """Shows what was written since, and gives it."""
        new = self.file.getvalue()[self._read :]
        self._read += len(new)
        self.screen.feed(new)
        return new

    def resize(self, width: int, height: int) -> None:
        self.screen.resize(width, height)
        self.console.size = (width, height)  # type: ignore[assignment]


def test_lines_stand_until_others_take_their_place() -> None:
    seen = Watched()
    seen.show("table", "", "bar 1")
    assert seen.screen.lines == ["table", "", "bar 1"]
    seen.show("table", "", "bar 2")
    assert seen.screen.lines == ["table", "", "bar 2"]
    seen.show("table", "one row more", "", "b")
    assert seen.screen.lines == ["table", "one row more", "", "b"]
    seen.show("only this")
    assert seen.screen.lines == ["only this"]


def test_only_what_has_changed_is_written() -> None:
    seen = Watched()
    seen.show("a table that stands", "bar 1")
    written = seen.show("a table that stands", "bar 2")
    assert "bar 2" in written
    assert "table" not in written
    assert seen.show("a table that stands", "bar 2") == ""


def test_lines_that_stay_stand_above_it() -> None:
    seen = Watched()
    seen.above("before")
    seen.show("table", "bar")
    seen.above("a trial has ended")
    assert seen.screen.lines == ["before", "a trial has ended", "table", "bar"]
    seen.above("0123456789" * 3)
    assert seen.screen.lines == [
        "before", "a trial has ended", "0123456789" * 2, "0123456789", "table", "bar",
    ]  # fmt: skip
    for number in range(9):
        seen.above(f"line {number}")
    assert seen.screen.lines[-3:] == ["line 8", "table", "bar"]


def test_what_is_too_wide_is_cut_for_a_wrapped_line_would_stay() -> None:
    seen = Watched(width=10)
    for _ in range(3):
        seen.show("0123456789abc", "bar")
        seen.show("0123456789", "bar 2")
    assert seen.screen.lines == ["0123456789", "bar 2"]


def test_it_goes_and_gives_the_cursor_back() -> None:
    seen = Watched()
    seen.above("stays")
    seen.show("table", "bar")
    assert not seen.screen.cursor
    seen.area.close()
    seen.feed()
    assert seen.screen.lines == ["stays"]
    assert seen.screen.cursor
    seen.area.close()
    assert seen.feed() == ""


@pytest.mark.parametrize("width", [5, 7, 19, 40])
def test_a_terminal_that_is_made_narrower_or_wider_keeps_nothing_of_it(width: int) -> None:
    seen = Watched()
    seen.above("stays")
    seen.show("a table so wide.", "a bar", "another bar, long")
    seen.resize(width, 30)
    seen.show("table", "bar")
    assert seen.screen.lines == ["stays", "table", "bar"]
