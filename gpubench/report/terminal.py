"""Tables on a terminal, with a little colour; the same as plain text everywhere else."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.basics.encodable import encodable
from gpubench.basics.folding import HANG
from gpubench.basics.words import stem
from gpubench.report import layout
from gpubench.report.pairs import Matrix
from gpubench.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

STYLES = {"ok": "green", "oom": "bold yellow", "skipped": "dim", "missing": "dim"}
"""The colours of the status column; everything else is an accident, and red."""

_WORD = re.compile(r"\s*\S+(?: %[^\w\s]*(?=\s|$))?\s*")
"""A word with the spaces around it; a number with its per cent is one."""


def text(table: Table) -> str:
    """The table as plain text without control codes, ending in a newline."""
    heading, body = layout.lines(table)
    widths = [len(cell) for cell in heading[0]]
    (block,) = layout.blocks(table, widths, sys.maxsize)
    rule = ["-" * width for width in widths]
    grid = [_joined(cells, block) for cells in (*heading, rule)]
    for number, cells in enumerate(body):
        grid += layout.above(table, number)
        grid.append(_joined(cells, block))
    notes = [line for part in _parts(table) for line in ("", *part)]
    matrices = [line for matrix in table.matrices for line in ("", matrix.title, *_grid(matrix))]
    return "\n".join((table.title, *table.heading, "", *grid, *matrices, *notes)) + "\n"


def _parts(table: Table) -> list[tuple[str, ...]]:
    """The sentences below a table, with an empty line above each part: first the answers, then all else."""
    return [part for part in (table.answers, (*table.remarks, *table.doubts)) if part]


def _joined(cells: Sequence[str], block: Sequence[int]) -> str:
    return layout.GAP.join([cells[n] for n in block]).rstrip()


def _grid(matrix: Matrix, screen: int = sys.maxsize) -> list[str]:
    """Lines of a matrix, in blocks of columns where it is wider than the screen."""
    heading, body = layout.matrix_lines(matrix)
    widths = [len(cell) for cell in heading[0]]
    lines: list[str] = []
    for block in layout.split([0], [0], [[n] for n in range(1, len(widths))], widths, screen):
        lines += [""] if lines else []
        lines += [_joined(cells, block) for cells in (*heading, ["-" * width for width in widths], *body)]
    return lines


def show(tables: Sequence[Table], console: Console) -> None:
    """Print to `console`: styled on a terminal, else exactly `text`.

    Nothing is truncated, whatever the width: on a terminal sentences wrap at words, and a table that is too wide is
    shown in blocks of columns.
    """
    for number, table in enumerate(tables):
        if number:
            console.file.write("\n")
        if console.is_terminal:
            _styled(table, console)
        else:
            console.file.write(encodable(text(table), console.encoding))


def _styled(table: Table, console: Console) -> None:
    from rich.text import Text

    table, blocks = layout.fitted(table, console.width)
    heading, body = layout.lines(table)

    def put(line: Text, *, grid: bool = False) -> None:
        line.plain = encodable(line.plain, console.encoding)
        line.rstrip()
        console.print(line, soft_wrap=grid, highlight=False)

    put(Text(table.title, "bold"))
    for sentence in table.heading:
        put(Text(sentence, "dim"))
    console.print()
    widths = [len(cell) for cell in heading[0]]
    for index, block in enumerate(blocks):
        if index:
            console.print()
        for cells in heading:
            put(Text(layout.GAP.join(cells[n] for n in block), "bold"), grid=True)
        put(Text(layout.GAP.join("─" * widths[n] for n in block), "dim"), grid=True)
        for number, (cells, row) in enumerate(zip(body, table.rows, strict=True)):
            for above in layout.above(table, number):
                put(Text(above, "bold"))
            line = Text()
            for n in block:
                line.append(cells[n], style(table.columns[n].name, str(row.endings)))
                line.append(layout.GAP)
            put(line, grid=True)
    for matrix in table.matrices:
        console.print()
        put(Text(matrix.title, "bold"))
        for words in _grid(matrix, console.width):
            put(Text(words.replace("-", "─") if set(words) == {"-", " "} else words), grid=True)
    for part in _parts(table):
        console.print()
        for note in part:
            first, rest = stem(note) if part is table.answers else ("", note)
            whole = Text.assemble(
                (encodable(first, console.encoding), "bold"), encodable(rest, console.encoding)
            )
            for line in _hanging(whole, console):
                console.print(line, soft_wrap=True, highlight=False)


def _hanging(words: Text, console: Console) -> list[Text]:
    """Lines as wide as the console; all but the first are indented, so that one sees where each note begins."""
    from rich.text import Text

    first = wrapped(words, console.width)[0]
    rest = words[len(first) :]
    rest = rest[len(rest) - len(rest.plain.lstrip()) :]
    if not rest.plain:
        return [first]
    return [
        first,
        *(Text(HANG).append_text(line) for line in wrapped(rest, max(1, console.width - len(HANG)))),
    ]


def wrapped(words: Text, width: int) -> list[Text]:
    """Lines of at most so many cells, broken at spaces alone.

    A path that is wider stays whole: the terminal shows it on two lines, and it can be copied as one.
    """
    from rich.cells import cell_len

    breaks, used = [], 0
    for word in _WORD.finditer(words.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    lines = list(words.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def style(column: str, endings: str) -> str:
    """The colour of a cell, by its column and how its row ended."""
    if column == "status":
        return STYLES.get(endings, "bold red")
    if endings in ("skipped", "missing"):
        return "dim"
    return "cyan" if column.endswith("_growth_pct") else ""
