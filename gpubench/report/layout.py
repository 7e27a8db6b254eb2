"""Columns of a table side by side in plain text: widths, alignment, headings on up to two lines."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.report.table import Table

GAP = "  "


def lines(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """Heading lines and body lines, each a list of cells padded to their column's width.

    Nothing is ever cut off or wrapped.
    """
    stacked = [_stack(heading) for heading in table.headings]
    height = max(len(words) for words in stacked)
    columns = []
    for number, words in enumerate(stacked):
        texts = [""] * (height - len(words)) + words + [row[number] for row in table.cells]
        width = max(map(len, texts))
        right = table.numeric(number)
        columns.append([text.rjust(width) if right else text.ljust(width) for text in texts])
    rows = [list(row) for row in zip(*columns, strict=True)]
    return rows[:height], rows[height:]


def blocks(table: Table, widths: Sequence[int], screen: int) -> list[list[int]]:
    """Columns by number, in as many blocks as the screen needs; each begins with those that tell rows apart.

    `widths`: of each column, `screen`: of the terminal, in characters. A growth column stays with what it is of.
    """
    names = [column.name for column in table.columns]
    keys = [number for number, name in enumerate(names) if name in (*table.varied, *PLACE)]
    pieces: list[list[int]] = []
    for number, name in enumerate(names):
        if number in keys:
            continue
        if name.endswith("_growth_pct") and pieces:
            pieces[-1].append(number)
        else:
            pieces.append([number])
    made = [keys]
    for piece in pieces:
        if len(made[-1]) > len(keys) and _wide([*made[-1], *piece], widths) > screen:
            made.append(list(keys))
        made[-1] = [*made[-1], *piece]
    return made


PLACE = ("group", "job", "gpu_name", "cpu_name")
"""Columns that tell rows apart beside the fields that were varied."""


def _wide(columns: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[number] for number in columns) + len(GAP) * (len(columns) - 1)


def _stack(heading: str) -> list[str]:
    """A heading of several words on two lines, as narrow as can be."""
    words = heading.split()
    if len(words) < 2:
        return [heading]
    cuts = [[" ".join(words[:n]), " ".join(words[n:])] for n in range(1, len(words))]
    return min(cuts, key=lambda cut: max(map(len, cut)))
