"""What LaTeX makes of the tables: a page each, nothing beyond its edges."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from committed import HOME, load_reports

from gpubench.render import latex

PDFLATEX = shutil.which("pdflatex")
PAGE = r"""\documentclass%s{article}
\usepackage{booktabs,graphicx}
\begin{document}
\input{tables}
\end{document}
"""


@pytest.mark.slow
@pytest.mark.skipif(PDFLATEX is None, reason="there is no pdflatex")
@pytest.mark.parametrize("columns", ["", "[twocolumn]"])
@pytest.mark.parametrize("name", ["titan-xp-2021", "h200x4-2026", "h200x4-groups-2026", "h200-pairs-2026"])
def test_every_table_fits_on_a_page(name: str, columns: str, tmp_path: Path) -> None:
    reports = load_reports(HOME / name, lambda _: None)
    (tmp_path / "tables.tex").write_text(latex.format_text(reports), "utf-8")
    (tmp_path / "page.tex").write_text(PAGE % columns, "utf-8")
    ended = subprocess.run(
        [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path,
        capture_output=True,
        timeout=120,
    )
    said = ended.stdout.decode("utf-8", "replace")
    assert ended.returncode == 0, said[-2000:]
    # A column of a page is half as wide, so its notes are twice as long.
    assert "Float too large" not in said or columns
    wide = [float(points) for points in re.findall(r"Overfull .hbox .([\d.]+)pt too wide", said)]
    assert max(wide, default=0.0) < 5
