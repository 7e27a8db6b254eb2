"""Tables as LaTeX with the rules of booktabs, for a paper: caption, table, answers and doubts as notes below.

A table that is wider than the text shrinks to its width. A float can't break over pages: one of many rows goes on in
further ones, and notes for which its page has no room follow behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.report.layout import SECTION, section, stack
from gpubench.report.table import Table

HEAD = (
    "% In the preamble: \\usepackage{booktabs,graphicx}. In UTF-8.\n"
    "% Wide tables shrink; --columns=-NAME leaves some out.\n"
)
MOST_ROWS = 36
"""Rows of one float."""
PAGE = 48
"""Lines that fit on a page, by the size of the table's text; headings and captions take some of them."""
NOTE = 100
"""Signs of a note that fit on a line; such a line is SMALLER than those of the table."""
SMALLER = 0.8

BOX = (
    r"\sbox0{", r"}\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
)  # fmt: skip
"""Before and behind a table: it is no wider than the text."""

SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "–": "--", "—": "---", "…": r"\ldots{}",
    "°": r"$^\circ$", "†": r"\dag{}", "‡": r"\ddag{}", "µ": r"$\mu$", "μ": r"$\mu$", "≤": r"$\le$", "≥": r"$\ge$",
    "→": r"$\to$", "²": "$^2$", "³": "$^3$", "\u00a0": "~", "[": "{[}", "]": "{]}", "*": "{*}",
    "`": r"\textasciigrave{}",
}  # fmt: skip
"""What means something else to LaTeX, or is in no font of its oldest kind. A bracket or a star that opens a row would
be taken for an argument of the line's end before it."""

_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_LIGATURE = re.compile(r"(?<=-)(?=-)")
"""Two hyphens would become a dash: `--epochs`."""


def text(tables: Sequence[Table]) -> str:
    """A `table` each, ending in a newline; empty for none."""
    return "\n".join([HEAD, *map(_one, tables)]) if tables else ""


def _one(table: Table) -> str:
    rows = _rows(table)
    begin, *further = [rows[first : first + MOST_ROWS] for first in range(0, len(rows), MOST_ROWS)] or [[]]
    heading = [r"\par{\small " + r" \\ ".join(map(escape, table.heading)) + r"\par}"] if table.heading else []
    own = _shown(table)
    names, right = [table.headings[n] for n in own], [table.right[n] for n in own]
    lines = [*_float(table.title), *heading, *_tabular(names, right, begin)]
    for more in further:
        lines += [r"\end{table}", "", *_float(f"{table.title}, continued")]
        lines += _tabular(names, right, more)
    for matrix in table.matrices:
        numbers = [number > 0 for number in range(len(matrix.headings))]
        lines += ["", r"\medskip", escape(matrix.title), ""]
        lines += _tabular(matrix.headings, numbers, [_row(cells) for cells in matrix.cells])
    used = len(further[-1] if further else begin) + sum(len(matrix.cells) + 4 for matrix in table.matrices)
    lines += _notes(table, used + (0 if further else 1 + 2 * len(table.heading)))
    return "\n".join(lines) + "\n"


def _float(caption: str) -> list[str]:
    return [r"\begin{table}", r"\centering", rf"\caption{{{escape(caption)}}}"]


def _rows(table: Table) -> list[str]:
    """Its rows, each with what stands above it: the name of its part, or of the group that begins there."""
    own = _shown(table)
    parts = {first: label for label, first, _ in table.parted()}
    rows = []
    for number, cells in enumerate(table.cells):
        above = [r"\midrule"] * (number > 0 and number in parts)
        named = [name for name in (parts.get(number, ""), section(table, number)) if name]
        above += [rf"\multicolumn{{{len(own)}}}{{@{{}}l}}{{{escape(name)}}} \\" for name in named]
        rows.append("\n".join([*above, _row([cells[n] for n in own])]))
    return rows


def _shown(table: Table) -> list[int]:
    """Its columns by number, without that of groups: their names stand above their rows."""
    return [number for number, column in enumerate(table.columns) if column.name != SECTION]


def _tabular(headings: Sequence[str], right: Sequence[bool], rows: Sequence[str]) -> list[str]:
    columns = "".join("r" if one else "l" for one in right)
    over = " & ".join(
        _over(heading, "r" if one else "l") for heading, one in zip(headings, right, strict=True)
    )
    return [
        rf"{BOX[0]}\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", rf"{over} \\", r"\midrule", *rows,
        r"\bottomrule", rf"\end{{tabular}}{BOX[1]}",
    ]  # fmt: skip


def _over(heading: str, side: str) -> str:
    """A heading, on two lines where that makes its column narrower."""
    lines = [escape(line) for line in stack(heading)]
    if len(lines) < 2:
        return lines[0]
    return rf"\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}" + r"\\".join(lines) + r"\end{tabular}"


def _notes(table: Table, used: float) -> list[str]:
    """The end of the last float, with the notes in it, or behind it. `used`: lines of its page."""
    notes = [rf"{escape(note)}\par" for note in table.notes]
    if not notes:
        return [r"\end{table}"]
    long = SMALLER * sum(-(-len(note) // NOTE) for note in table.notes)
    if used + long <= PAGE:
        box = r"\begin{minipage}{\linewidth}\footnotesize\raggedright"
        return ["", r"\medskip", box, *notes, r"\end{minipage}", r"\end{table}"]
    begin = rf"{{\footnotesize\raggedright\noindent\textbf{{{escape(table.title)}}}\par"
    return [r"\end{table}", "", begin, *notes, "}"]


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def escape(words: str) -> str:
    """Text that LaTeX sets as it stands, on one line."""
    one_line = " ".join(words.split())
    return "{}".join(_SIGN.sub(lambda found: SIGNS[found[0]], part) for part in _LIGATURE.split(one_line))
