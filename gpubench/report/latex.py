"""Tables as LaTeX with the rules of booktabs, for a paper: caption, table, answers and doubts as notes below."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.report.table import Table

HEAD = "% In the preamble: \\usepackage{booktabs}. In UTF-8.\n"

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
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape(table.title)}}}"]
    if table.heading:
        lines += [r"\par{\small " + r" \\ ".join(map(escape, table.heading)) + r"\par}"]
    columns = "".join("r" if right else "l" for right in table.right)
    lines += [rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}", r"\toprule", _row(table.headings), r"\midrule"]
    for label, first, end in table.parted():
        lines += [r"\midrule"] if first else []
        if label:
            lines += [rf"\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{{escape(label)}}} \\"]
        lines += [_row(cells) for cells in table.cells[first:end]]
    lines += [r"\bottomrule", r"\end{tabular}"]
    for matrix in table.matrices:
        columns = "l" + "r" * (len(matrix.headings) - 1)
        lines += ["", r"\medskip", escape(matrix.title), ""]
        lines += [
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            _row(matrix.headings),
            r"\midrule",
        ]
        lines += [*map(_row, matrix.cells), r"\bottomrule", r"\end{tabular}"]
    notes = [escape(note) for note in table.notes]
    if notes:
        lines += ["", r"\medskip", r"\begin{minipage}{\linewidth}\footnotesize\raggedright"]
        lines += [rf"{note}\par" for note in notes]
        lines += [r"\end{minipage}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escape, cells)) + r" \\"


def escape(words: str) -> str:
    """Text that LaTeX sets as it stands, on one line."""
    one_line = " ".join(words.split())
    return "{}".join(_SIGN.sub(lambda found: SIGNS[found[0]], part) for part in _LIGATURE.split(one_line))
