"""Tables as Markdown: what table.md holds."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.basics.words import stem
from gpubench.report.table import Table


def text(tables: Sequence[Table]) -> str:
    """All tables under headings of their own, ending in a newline; empty for none."""
    return "\n".join(_one(table) for table in tables)


def _one(table: Table) -> str:
    marks = ["---:" if on_the_right else ":---" for on_the_right in table.right]
    blocks = [f"## {table.title}", "  \n".join(table.heading)]
    for label, first, end in table.parted():
        blocks += [f"**{escape(label)}**"] if label else []
        blocks.append(grid([table.headings, marks, *table.cells[first:end]]))
    for matrix in table.matrices:
        marks = [":---", *["---:"] * (len(matrix.headings) - 1)]
        blocks += [f"{escape(matrix.title)}:", grid([matrix.headings, marks, *matrix.cells])]
    told = [*map(_answer, table.answers), *map(escape, (*table.remarks, *table.doubts))]
    blocks += ["\n".join(f"- {line}" for line in told)] if told else []
    return "\n\n".join(block for block in blocks if block) + "\n"


def _answer(answer: str) -> str:
    first, rest = stem(answer)
    return f"**{escape(first)}**{escape(rest)}"


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Lines between pipes; the second says where each column's text stands."""
    return "\n".join("| " + " | ".join(map(escape, row)) + " |" for row in rows)


def escape(cell: str) -> str:
    """A pipe would end the cell, a star or an angle bracket would be taken for mark-up."""
    for sign in ("\\", "|", "*", "<"):
        cell = cell.replace(sign, "\\" + sign)
    return cell.replace("\n", " ")
