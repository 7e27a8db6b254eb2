"""A grid as an HTML table's cells."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from gpubench.core.report import Report
from gpubench.render.grid import GridGroup, GridRow, make_grid

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
    """A table."""

    series: tuple[tuple[str, int], ...]
    """The upper line of headings with how many columns each spans; empty where there is none."""
    headings: tuple[tuple[str, bool], ...]
    """With whether the column is one of numbers."""
    groups: tuple[GridGroup, ...]

    @property
    def rows(self) -> list[GridRow]:
        return [row for group in self.groups for row in group.rows]

    @property
    def width(self) -> int:
        """In CSS pixels, about."""
        lines = [[text for text, _ in self.headings]]
        lines += [[cell.text for cell in self.make_row_cells(row)] for row in self.rows]
        columns = zip(*(line for line in lines if len(line) == len(self.headings)), strict=True)
        letters = [max(map(len, column)) for column in columns]
        letters[0] = min(letters[0], NAME_LETTERS)
        return sum(PADDING_PIXELS + LETTER_PIXELS * count for count in letters)

    def make_row_cells(self, row: GridRow) -> list[PageCell]:
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


def make_table(report: Report, most: int) -> PageTable:
    """The first rows of a report's table, the recommended one marked."""
    grid = make_grid(report)
    groups: list[GridGroup] = []
    for group, sources in zip(grid.groups, report.groups, strict=True):
        rows = tuple(
            replace(row, is_answer=report.recommended_row in source.labels)
            for row, source in zip(group.rows[:most], sources.rows[:most], strict=True)
        )
        groups += [replace(group, rows=rows)] if rows else []
        most -= len(rows)
    series = [(name, len(list(members))) for name, members in itertools.groupby(grid.series)]
    return PageTable(
        tuple(series) if any(grid.series) else (),
        tuple(zip(grid.headings, grid.is_number, strict=True)),
        tuple(groups),
    )
