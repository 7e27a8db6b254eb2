"""Columns of a table side by side in plain text: widths, alignment, headings on up to two lines."""

from __future__ import annotations

from gpubench.report.table import Table

GAP = "  "


def lines(table: Table) -> tuple[list[list[str]], list[list[str]]]:
    """Heading lines and body lines, each a list of cells padded to their column's width.

    Nothing is ever cut off or wrapped: where a terminal is narrower, its own wrapping shows all of it.
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


def _stack(heading: str) -> list[str]:
    """A heading of several words on two lines, as narrow as can be."""
    words = heading.split()
    if len(words) < 2:
        return [heading]
    cuts = [[" ".join(words[:n]), " ".join(words[n:])] for n in range(1, len(words))]
    return min(cuts, key=lambda cut: max(map(len, cut)))
