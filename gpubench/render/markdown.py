"""Reports as Markdown: what table.md holds."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.grid import Grid, GridRow, make_grid

SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\|*_<>`[]"})
"""A pipe would end a cell, the others would be taken for mark-up."""


def format_text(reports: Sequence[Report]) -> str:
    """All reports under headings of their own, ending in a newline."""
    return "\n".join(map(_format_report, reports)) or f"{words.NO_REPORT}\n"


def _format_report(report: Report) -> str:
    name, *facts = map(escape_markdown, words.list_heading_facts(report))
    items = []
    for line in words.list_sentences(report):
        text = escape_markdown(line.marked_text)
        items.append(f"- **{text}**" if line.kind == "answer" else f"- {text}")
    items += [f"- {escape_markdown(words.mark_warning(problem))}" for problem in report.problems]
    blocks = [
        f"## {name}",
        " · ".join(facts),
        f"**{escape_markdown(words.format_question(report))}**" if words.format_question(report) else "",
        *format_tables(make_grid(report)),
        escape_markdown(words.format_legend(report)),
        "\n".join(items),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def format_tables(grid: Grid) -> list[str]:
    """A table a group, each under its head."""
    headings = [
        f"{series}<br>{heading}" if series else heading
        for series, heading in zip(
            map(escape_markdown, grid.series), map(escape_markdown, grid.headings), strict=True
        )
    ]
    rules = ["---:" if is_number else ":---" for is_number in grid.is_number]
    blocks = []
    for group in grid.groups:
        blocks += [f"**{escape_markdown(group.head)}**{' !' * group.is_warned}"] if group.head else []
        rows = [headings, rules, *(_format_cells(row) for row in group.rows)]
        blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return blocks


def _format_cells(row: GridRow) -> list[str]:
    """Cells of a row, with the answer's in bold."""
    cells = [escape_markdown(text) for text in row.list_texts_with_ending()]
    if row.is_answer:
        cells = [f"**{cell}**" if cell else "" for cell in cells]
    return [cells[0] + " !" * row.is_warned, *cells[1:]]


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    return " ".join(text.split()).translate(SPECIAL)
