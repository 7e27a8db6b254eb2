"""A table of a results folder as a picture of a terminal. docs/terminal.svg is made by

PYTHONPATH=tests python -m docs_pages.terminal_picture results/h200x2-2026 mobilenet_v2-2gpu > docs/terminal.svg
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from gpubench.analyze.questions import load_reports
from gpubench.basics.errors import GpubenchError, unknown
from gpubench.render import terminal

WIDTH = 90
"""The terminal's width in characters: a table of a dozen columns fits, and a web page can still show it legibly."""

MARGIN = 2
"""Characters of room on the right, for letters that are a little wider than these."""

LETTER = 0.602
"""Width of a letter over its height, in most of the fonts that SVG names below."""

THEME = TerminalTheme(
    (27, 31, 36), (220, 224, 228),
    [(72, 78, 86), (224, 108, 117), (120, 190, 110), (229, 192, 90), (97, 160, 239), (198, 120, 221),
     (86, 182, 194), (220, 224, 228)],
)  # fmt: skip
"""Background, text, and the eight colours of a terminal."""

SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
}}
.{unique_id}-title {{ font: bold 18px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""A frame of our own around what rich draws: rich's loads its letters from another site, which a README may not."""


def svg(folder: Path, experiment: str) -> str:
    """What `gpubench table FOLDER` shows of this experiment on a terminal, as a picture."""
    reports = {report.name: report for report in load_reports(folder, print)}
    if experiment not in reports:
        raise unknown("experiment", experiment, reports)
    screen = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="standard",
        legacy_windows=False, highlight=False, _environ={},
    )  # fmt: skip
    terminal.show([reports[experiment]], screen)
    title = f"gpubench table {folder}"
    screen.print()  # room for what letters of the last line have below it
    screen.width += MARGIN
    drawn = screen.export_svg(
        title=title, theme=THEME, code_format=SVG, font_aspect_ratio=LETTER, unique_id="terminal"
    )
    return "".join(f"{line.strip()}\n" for line in drawn.splitlines() if line.strip())


if __name__ == "__main__":
    try:
        sys.stdout.write(svg(Path(sys.argv[1]), sys.argv[2]))
    except GpubenchError as error:
        sys.exit(f"gpubench: {error}")
