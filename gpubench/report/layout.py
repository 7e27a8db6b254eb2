"""Columns of a table side by side in plain text: widths, alignment, headings on up to two lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.report.pairs import Matrix
from gpubench.report.table import Table
from gpubench.schema.columns import Column

GAP = "  "


def lines(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """Heading lines and body lines, each a list of cells padded to their column's width."""
    return padded(table.headings, table.cells, table.right)


def padded(
    headings: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]
) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of any grid, as wide as its widest cells. `right`: the columns of numbers.

    Nothing is ever cut off or wrapped.
    """
    stacked = [stack(heading) for heading in headings]
    height = max(len(words) for words in stacked)
    columns = []
    for number, words in enumerate(stacked):
        texts = [""] * (height - len(words)) + words + [row[number] for row in cells]
        width = max(map(len, texts))
        columns.append(
            [text.rjust(width) for text in texts] if right[number] else [text.ljust(width) for text in texts]
        )
    rows = [list(row) for row in zip(*columns, strict=True)]
    return rows[:height], rows[height:]


def matrix_lines(matrix: Matrix) -> tuple[list[list[str]], list[list[str]]]:
    """Lines of a matrix: names on the left, figures on the right."""
    return padded(matrix.headings, matrix.cells, [number > 0 for number in range(len(matrix.headings))])


def numbered(table: Table) -> Table:
    """The table with a column of row numbers in front, by which `blocks` can name rows in short."""
    cells = tuple((str(number), *row) for number, row in enumerate(table.cells, 1))
    return replace(table, columns=(ROW, *table.columns), right=(True, *table.right), cells=cells)


def fitted(table: Table, screen: int) -> tuple[Table, list[list[int]]]:
    """The table as it is to be printed on a screen so wide (in characters), and its columns in blocks.

    Where the columns that tell rows apart would take most of each block, rows get numbers, and only the first block
    has those columns.
    """
    widths = _widths(table)
    keys = _keys(table)
    made = blocks(table, widths, screen)
    if len(made) == 1 or len(keys) < MANY_KEYS or 2 * _wide(keys, widths) < screen:
        return table, made
    table = numbered(table)
    return table, blocks(table, _widths(table), screen)


def _widths(table: Table) -> list[int]:
    return [len(cell) for cell in lines(table)[0][0]]


def _keys(table: Table) -> list[int]:
    named = (ROW.name, *table.varied, *PLACE)
    return [number for number, column in enumerate(table.columns) if column.name in named]


def blocks(table: Table, widths: Sequence[int], screen: int) -> list[list[int]]:
    """Columns by number, in as many blocks as the screen needs; each begins with those that tell rows apart.

    `widths`: of each column, `screen`: of the terminal, in characters. A growth column stays with what it is of.
    Names of groups are in none: they stand above their rows (`above`).
    """
    names = [column.name for column in table.columns]
    keys = _keys(table)
    pieces: list[list[int]] = []
    for number, name in enumerate(names):
        if number in keys or name == SECTION:
            continue
        if name.endswith("_growth_pct") and pieces:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    again = (
        [number for number in keys if names[number] in (ROW.name, "job")] if ROW in table.columns else keys
    )
    return split(keys, again, pieces, widths, screen)


def split(
    keys: Sequence[int],
    again: Sequence[int],
    pieces: Sequence[Sequence[int]],
    widths: Sequence[int],
    screen: int,
) -> list[list[int]]:
    """Columns by number, in as many blocks as the screen needs, every piece whole in one.

    The first block begins with `keys`, the others with `again`; where that is less, the first may have nothing else.
    """
    made = [list(keys)]
    begun = len(keys) if len(again) == len(keys) else 0
    for piece in pieces:
        if len(made[-1]) > begun and _wide([*made[-1], *piece], widths) > screen:
            made.append(list(again))
            begun = len(again)
        made[-1] = [*made[-1], *piece]
    return made


def above(table: Table, row: int) -> list[str]:
    """Lines that stand above a row: that of the part that begins there, and that of the group."""
    part = next((part.label for part in table.parts if part.first == row), "")
    return [*([""] if part and row else []), *(line for line in (part, section(table, row)) if line)]


def section(table: Table, row: int) -> str:
    """The name of the group that begins at a row; else empty."""
    names = [column.name for column in table.columns]
    return table.cells[row][names.index(SECTION)] if SECTION in names else ""


ROW = Column("row", "", "", "row")
MANY_KEYS = 3
"""Columns from which it pays to have a number instead."""

SECTION = "group"
PLACE = ("job", "gpu_name", "cpu_name")
"""Columns that tell rows apart beside the fields that were varied."""


def _wide(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[number] for number in columns) + len(GAP) * (len(columns) - 1)


def stack(heading: str) -> list[str]:
    """A heading of several words on two lines, as narrow as can be."""
    words = heading.split()
    if len(words) < 2:
        return [heading]
    cuts = [[" ".join(words[:n]), " ".join(words[n:])] for n in range(1, len(words))]
    return min(cuts, key=lambda cut: max(map(len, cut)))
