"""Tables as Markdown: what table.md holds."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.report.table import Table


def text(tables: Sequence[Table]) -> str:
    """All tables under headings of their own, ending in a newline; empty for none."""
    return "\n".join(_one(table) for table in tables)


def _one(table: Table) -> str:
    marks = ["---:" if table.numeric(number) else ":---" for number in range(len(table.columns))]
    rows = [table.headings, marks, *table.cells]
    grid = ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
    blocks = [f"## {table.name}", "  \n".join(table.heading), "\n".join(grid)]
    blocks += ["\n".join(f"- {escape(note)}" for note in table.notes)] if table.notes else []
    return "\n\n".join(block for block in blocks if block) + "\n"


def escape(cell: str) -> str:
    """A pipe would end the cell, a star or an angle bracket would be taken for mark-up."""
    for sign in ("\\", "|", "*", "<"):
        cell = cell.replace(sign, "\\" + sign)
    return cell.replace("\n", " ")
