"""A grid as an HTML table's cells: as many rows as there is room for."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from markupsafe import escape

from gpubench.core.report import Report
from gpubench.render.grid import GridGroup, GridRow, make_grid

CELL_BYTES, LINE_BYTES = 40, 60
"""Of mark-up around a cell's text, and around a row."""
LETTER_PIXELS, PADDING_PIXELS = 7, 16
NAME_LETTERS = 24
"""Of the first column: longer names take several lines."""


@dataclass(frozen=True, slots=True)
class PageCell:
    """One cell, or one that stands for several."""

    text: str
    is_number: bool
    bar: float | None = None
    """0 to 100."""
    tone: str = "plain"
    span: int = 1
    """Columns."""
    is_ending: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table, with how many of its rows have no room."""

    series: tuple[tuple[str, int], ...]
    """The upper line of headings with how many columns each spans; empty where there is none."""
    headings: tuple[tuple[str, bool], ...]
    """With whether the column is one of numbers."""
    groups: tuple[GridGroup, ...]
    left_out: int

    @property
    def rows(self) -> list[GridRow]:
        return [row for group in self.groups for row in group.rows]

    @property
    def width(self) -> int:
        """In CSS pixels, about."""
        lines = [[text for text, _ in self.headings]]
        lines += [[cell.text for cell in self.place_cells(row)] for row in self.rows]
        columns = zip(*(line for line in lines if len(line) == len(self.headings)), strict=True)
        letters = [max(map(len, column)) for column in columns]
        letters[0] = min(letters[0], NAME_LETTERS)
        return sum(PADDING_PIXELS + LETTER_PIXELS * count for count in letters)

    def place_cells(self, row: GridRow) -> list[PageCell]:
        """The cells of a row. Of one without figures the ending stands in place of the empty cells at its end, else of
        the first that is empty."""
        cells = [
            PageCell(cell.text, is_number, None if cell.bar is None else round(100 * cell.bar, 1), cell.tone)
            for cell, (_, is_number) in zip(row.cells, self.headings, strict=True)
        ]
        if not row.ending:
            return cells
        last = next((n for n in range(len(cells), 0, -1) if cells[n - 1].text), 0)
        if last < len(cells):
            return [*cells[:last], PageCell(row.ending, False, span=len(cells) - last, is_ending=True)]
        first = next((n for n, cell in enumerate(cells) if not cell.text), None)
        if first is not None:
            cells[first] = replace(cells[first], text=row.ending, is_ending=True)
        return cells


def make_table(report: Report, reserve: Callable[[int], bool]) -> PageTable:
    """The table of a report, the recommended row marked. `reserve`: whether there is room for so many bytes more; the
    first row has it always."""
    grid = make_grid(report)
    groups: list[GridGroup] = []
    count = 0
    is_full = False
    for group, sources in zip(grid.groups, report.groups, strict=True):
        rows: list[GridRow] = []
        for row, source in zip(group.rows, sources.rows, strict=True):
            is_full = is_full or not (reserve(measure(row)) or count == 0)
            if not is_full:
                rows.append(replace(row, is_answer=report.recommended in source.labels))
                count += 1
        if rows:
            groups.append(replace(group, rows=tuple(rows)))
    series = [(name, len(list(members))) for name, members in itertools.groupby(grid.series)]
    return PageTable(
        tuple(series) if any(grid.series) else (),
        tuple(zip(grid.headings, grid.is_number, strict=True)),
        tuple(groups),
        len(grid.rows) - count,
    )


def measure(row: GridRow) -> int:
    """The bytes that a row takes, about."""
    texts = [row.ending, *(cell.text for cell in row.cells)]
    return LINE_BYTES + sum(len(escape(text).encode(errors="replace")) + CELL_BYTES for text in texts)
