r"""Reports as LaTeX with the rules of booktabs, for a paper: caption, table, findings and warnings as notes below.

A table that is wider than the text shrinks to its width.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.grid import Grid, GridRow, make_grid

HEAD = "% In the preamble: \\usepackage{booktabs,graphicx}. In UTF-8.\n"
BOX = (
    r"\sbox0{", r"}\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
)  # fmt: skip
"""Before and behind a table: it is no wider than the text."""
SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "−": "$-$", "±": r"$\pm$", "×": r"$\times$", "·": r"$\cdot$", "–": "--", "—": "---", "…": r"\ldots{}",
    "°": r"$^\circ$", "µ": r"$\mu$", "μ": r"$\mu$", "≤": r"$\le$", "≥": r"$\ge$", "→": r"$\to$", "²": "$^2$",
    "∞": r"$\infty$", "³": "$^3$", "\u00a0": "~", "[": "{[}", "]": "{]}", "*": "{*}", "`": r"\textasciigrave{}",
}  # fmt: skip
"""What means something else to LaTeX, or is in no font of its oldest kind. A bracket or a star that opens a row would
be taken for an argument of the line's end before it."""
_SIGN = re.compile("|".join(map(re.escape, SIGNS)))
_LIGATURE = re.compile(r"(?<=-)(?=-)")
"""Two hyphens would become a dash: `--rounds`."""


def format_text(reports: Sequence[Report]) -> str:
    """A `table` each, ending in a newline."""
    return "\n".join([HEAD, *map(_format_report, reports)]) if reports else f"% {words.NO_REPORT}\n"


def _format_report(report: Report) -> str:
    grid = make_grid(report)
    caption = words.format_question(report) or words.list_heading_facts(report)[0]
    facts = " · ".join(words.list_heading_facts(report))
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\par{{\small {escape_latex(facts)}\par}}",
        *_format_table(grid, _format_rows_with_heads(grid)),
        *_format_notes(report),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _format_rows_with_heads(grid: Grid) -> list[str]:
    """Rows, the first of a group with its head above it."""
    rows = []
    for number, group in enumerate(grid.groups):
        rows += [r"\midrule"] * (number > 0)
        if group.head:
            head = escape_latex(group.head + " !" * group.is_warned)
            rows.append(rf"\multicolumn{{{len(grid.headings)}}}{{@{{}}l}}{{{head}}} \\")
        rows += map(_format_row, group.rows)
    return rows


def _format_row(row: GridRow) -> str:
    texts = [cell.text for cell in row.cells]
    cells = [
        rf"\textbf{{{escape_latex(text)}}}" if row.is_answer and text else escape_latex(text)
        for text in texts
    ]
    cells[0] += " !" * row.is_warned
    if row.ending:
        filled = max((place for place, text in enumerate(texts) if text), default=-1) + 1
        if filled < len(texts):
            ending = rf"\multicolumn{{{len(texts) - filled}}}{{l@{{}}}}{{{escape_latex(row.ending)}}}"
            cells = [*cells[:filled], ending]
    return " & ".join(cells) + r" \\"


def _format_table(grid: Grid, rows: Sequence[str]) -> list[str]:
    columns = "".join("r" if is_number else "l" for is_number in grid.is_number)
    above = []
    if any(grid.series):
        spans = [(series, len(list(columns))) for series, columns in groupby(grid.series)]
        cells = [rf"\multicolumn{{{count}}}{{c}}{{{escape_latex(series)}}}" for series, count in spans]
        above = [" & ".join(cells) + r" \\"]
    headings = " & ".join(map(escape_latex, grid.headings))
    return [
        rf"{BOX[0]}\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", *above, rf"{headings} \\", r"\midrule",
        *rows, r"\bottomrule", rf"\end{{tabular}}{BOX[1]}",
    ]  # fmt: skip


def _format_notes(report: Report) -> list[str]:
    texts = [words.format_legend(report)]
    texts += [line.marked_text for line in words.list_sentences(report)]
    texts += map(words.mark_warning, report.problems)
    notes = [rf"{escape_latex(text)}\par" for text in texts if text]
    head = ["", r"\medskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright"]
    return [*head, *notes, r"\end{minipage}"] if notes else []


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it stands, on one line."""
    parts = _LIGATURE.split(" ".join(text.split()))
    return "{}".join(_SIGN.sub(lambda match: SIGNS[match[0]], part) for part in parts)
