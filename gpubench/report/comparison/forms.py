"""Two sides, compared, as text and as Markdown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gpubench.analysis.comparing import SideBySide
from gpubench.basics.folding import folded
from gpubench.report import layout
from gpubench.report.comparison.answers import answers
from gpubench.report.comparison.grids import FigureGrid, grids
from gpubench.report.comparison.notes import INDENT, notes
from gpubench.report.comparison.side import Side
from gpubench.report.comparison.trial_names import fields_of
from gpubench.report.comparison.unlike import heading
from gpubench.report.markdown import escape, grid


def in_lines(
    a: Side, b: Side, of: SideBySide, *, field: str = "", sort: str = "", width: int | None = None
) -> str:
    """As plain text. `width`: of the terminal, where there is one: sentences wrap, wide grids are in blocks."""
    lines = [*heading(a, b, of, field), "", *answers(of)]
    screen = width or sys.maxsize
    blocks = ["\n".join(_folded(lines, width))]
    blocks += [_grid_text(one, keys=len(fields_of(of)), screen=max(screen, 40)) for one in grids(of, sort)]
    if below := notes(of):
        blocks.append("\n".join(_folded(below, width)))
    return "\n\n".join(blocks) + "\n"


def _grid_text(of: FigureGrid, *, keys: int, screen: int) -> str:
    """A grid, in blocks of columns where it is wider than the screen. `keys`: columns that each block has."""
    head, body = layout.padded(of.headings, of.cells, of.right)
    widths = [len(one) for one in head[0]]
    first = list(range(keys))
    pieces = [[place] for place in range(keys, len(widths))]
    rule = ["-" * one for one in widths]
    lines = [of.title]
    for block in layout.split(first, first, pieces, widths, screen):
        lines += [layout.GAP.join(row[n] for n in block).rstrip() for row in (*head, rule, *body)]
    return "\n".join(lines)


def as_markdown(a: Side, b: Side, of: SideBySide, *, field: str = "", sort: str = "") -> str:
    """As Markdown."""
    blocks = [f"## {escape(a.name)} and {escape(b.name)}"]
    blocks.append("  \n".join(map(escape, heading(a, b, of, field))))
    blocks.append("\n".join(f"- **{escape(one)}**" for one in answers(of)))
    for one in grids(of, sort):
        marks = ["---:" if on_the_right else ":---" for on_the_right in one.right]
        blocks.append(f"### {escape(one.title)}\n\n{grid([one.headings, marks, *one.cells])}")
    blocks.append(
        "\n".join(f"{INDENT if one.startswith(INDENT) else ''}- {escape(one.strip())}" for one in notes(of))
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def _folded(lines: Sequence[str], width: int | None) -> list[str]:
    """Lines of a terminal; those of a list stay indented."""
    found = []
    for line in lines:
        found += folded(line.strip(), width, indent=INDENT if line.startswith(INDENT) else "")
    return found
