"""Tables as a notebook shows them: plain HTML that takes the notebook's own style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gpubench.report.table import Table


def html(tables: Sequence[Table]) -> str:
    """All tables, each with its heading above it, the answers first below it, and its doubts last."""
    return "\n".join(_one(table) for table in tables)


def _one(table: Table) -> str:
    heading = "".join(f"<p>{escape(line)}</p>" for line in table.heading)
    answers = "".join(f"<p><b>{escape(line)}</b></p>" for line in table.answers)
    rest = "".join(f"<li>{escape(line)}</li>" for line in (*table.remarks, *table.doubts))
    return (
        f"<h4>{escape(table.title)}</h4>{heading}{_grid(table)}{answers}{f'<ul>{rest}</ul>' if rest else ''}"
    )


def _grid(table: Table) -> str:
    sides = ["right" if right else "left" for right in table.right]
    names = "".join(
        f'<th scope="col" style="text-align: {side}">{escape(name)}</th>'
        for name, side in zip(table.headings, sides, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align: {side}">{escape(cell)}</td>'
            for cell, side in zip(cells, sides, strict=True)
        )
        + "</tr>"
        for cells in table.cells
    )
    return f"<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"
