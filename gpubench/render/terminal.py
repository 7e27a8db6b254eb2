"""Reports as text: on a terminal with bars, marks and a little colour; the same words in ASCII everywhere else."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from gpubench.basics.encodable import replace_unencodable_signs
from gpubench.basics.folding import HANG, wrap_sentence
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.grid import Grid, GridCell, GridRow, make_grid

WIDTH = 80
WIDEST = 100
"""A terminal may be wider; sentences that are so wide can hardly be read."""
HEADING_LINES = 3
LINES_BELOW = 10
"""Lines below a table at most, in 80 columns."""
GAP = "  "
BAR = 16
"""Cells of a bar that is full, where there is room for it."""
NARROWEST_BAR = 6
NARROW_NAME, NARROWEST_NAME = 24, 14
"""Cells of the first column, where names in it are folded; fewer where all columns then have room side by side."""
EIGHTHS = " ▏▎▍▌▋▊▉█"
STYLES = {"answer": "bold", "warning": "yellow", "note": "dim"}
TONES = {"plain": "", "better": "green", "worse": "red", "running": "green"}
CUT = words.Sentence("note", words.CUT, 0)
TO_ASCII = str.maketrans(
    {
        "−": "-", "–": "-", "×": "x", "±": "+-", "≥": ">=", "≤": "<=", "·": "-", "…": "...", "◀": "<", "→": "->",
        "─": "-", "°": " ", "∞": "inf", "\u00a0": " ",
    }
)  # fmt: skip


def print_reports(reports: Sequence[Report], console: Console, *, is_why: bool = False) -> None:
    """Prints reports to `console`, styled on a terminal, else as `format_text`; with `is_why` every claim besides."""
    if not console.is_terminal:
        console.file.write(replace_unencodable_signs(format_text(reports, is_why=is_why), console.encoding))
        return
    for number, report in enumerate(reports):
        lines = _render_report(report, min(console.width, WIDEST), True, is_why)
        for line in [*([Text("")] * (number > 0)), *lines]:
            line.plain = replace_unencodable_signs(line.plain, console.encoding)
            console.print(line, soft_wrap=True, highlight=False)
    if not reports:
        console.print(words.NO_REPORT)


def format_text(reports: Sequence[Report], *, is_why: bool = False) -> str:
    """Reports as plain ASCII text (but for names that somebody else gave), ending in a newline."""
    blocks = [
        "".join(f"{line.plain.rstrip()}\n" for line in _render_report(report, WIDTH, False, is_why))
        for report in reports
    ]
    return "\n".join(blocks) or f"{words.NO_REPORT}\n"


def _render_report(report: Report, width: int, is_rich: bool, is_why: bool) -> list[Text]:
    """All lines of a report."""

    def plain(text: str) -> str:
        return text if is_rich else text.translate(TO_ASCII)

    lines = [Text(line, style) for line, style in _render_heading(report, width, plain)]
    lines += [Text(""), *render_grid(make_grid(report), width, is_rich)]
    if legend := words.format_legend(report):
        lines += [Text(line, "dim") for line in wrap_text(plain(legend), width)]
    lines.append(Text(""))
    chosen = choose_sentences_that_fit(report, is_all=is_why)
    for line in chosen:
        style = STYLES.get(line.kind, "")
        lines += [Text(part, style) for part in wrap_text(plain(line.marked_text), width)]
    if is_why:
        lines += map(Text, _render_claims(report, width, plain))
    elif is_rich and chosen[-1:] != [CUT]:
        lines.append(Text(words.HINT, "dim"))
    return lines


def choose_sentences_that_fit(report: Report, *, is_all: bool = False) -> list[words.Sentence]:
    """Lines below the table for which there is room, the most important first, by 80 columns whatever the terminal has.

    So a pipe gets the same words. The answer is always there.
    """
    lines = words.list_sentences(report)
    heights = [len(wrap_text(words.mark_warning(line.text.translate(TO_ASCII)), WIDTH)) for line in lines]
    room = LINES_BELOW - 1  # the hint is a line, too
    if is_all or sum(heights) <= room:
        return lines
    chosen = set()
    for n in sorted(range(len(lines)), key=lambda n: lines[n].rank):
        if lines[n].kind == "answer" or heights[n] <= room:
            chosen.add(n)
            room -= heights[n]
    return [*(lines[n] for n in sorted(chosen)), CUT]


def _render_heading(report: Report, width: int, plain: Callable[[str], str]) -> list[tuple[str, str]]:
    """At most three lines: the question whole, of the facts what there is room for."""

    def wrap(parts: Sequence[str]) -> list[str]:
        whole = [plain(part).replace(" ", "\u00a0") for part in parts]
        return wrap_text(f"\u00a0{plain('· ')}".join(whole), width, hang="")

    text = plain(words.format_question(report))
    question = wrap_text(text, width, hang="")[: HEADING_LINES - 1] if text else []
    room = HEADING_LINES - len(question)
    parts = words.list_heading_facts(report)
    if room == 1 and len(wrap(parts)) > room:
        # What was measured on what goes before the name of the experiment and the number of processes.
        parts = words.list_heading_facts(report, is_short=True)
    while len(parts) > 1 and len(wrap(parts)) > room:
        parts.pop()
    return [*((line, "dim") for line in wrap(parts)), *((line, "bold") for line in question)]


def wrap_text(text: str, width: int, hang: str = HANG) -> list[str]:
    """Lines of at most so many columns. A number keeps its unit."""
    return [
        line.replace("\u00a0", " ") for line in wrap_sentence(text.replace(" %", "\u00a0%"), width, hang=hang)
    ]


# The table.


@dataclass(frozen=True, slots=True)
class GridLayout:
    """A grid and where its columns stand."""

    grid: Grid
    widths: tuple[int, ...]
    """Of the columns' text."""
    bars: tuple[int, ...]
    """Cells of the bar behind a column's text; 0 for none."""
    is_rich: bool
    width: int
    """Of a line, without the cells at its end where marks of rows stand."""

    def measure_columns_width(self, columns: Sequence[int]) -> int:
        """The width of columns side by side, with their bars."""
        cells = [self.widths[n] + (len(GAP) + self.bars[n] if self.bars[n] else 0) for n in columns]
        return sum(cells) + len(GAP) * (len(cells) - 1)

    def split_columns_into_blocks(self) -> list[list[int]]:
        """The columns that stand side by side, and those for which there is no room, behind the first once more."""
        blocks = [[0]]
        for n in range(1, len(self.widths)):
            if len(blocks[-1]) > 1 and self.measure_columns_width([*blocks[-1], n]) > self.width:
                blocks.append([0])
            blocks[-1].append(n)
        return blocks


def render_grid(grid: Grid, width: int, is_rich: bool) -> list[Text]:
    """Lines of the table; columns for which there is no room follow below, behind the first column once more."""
    layout = make_grid_layout(grid if is_rich else _convert_to_ascii(grid), width, is_rich)
    lines: list[Text] = []
    for block in layout.split_columns_into_blocks():
        lines += [Text("")] if lines else []
        lines += [line for _, line in render_column_block(layout, block)]
    return lines


def make_grid_layout(grid: Grid, width: int, is_rich: bool) -> GridLayout:
    """Widths of columns by what they hold, and bars by what is left of the line."""
    width -= len(GAP) + 3 if any(row.is_answer or row.is_warned for row in grid.rows) else 0
    widths = [
        max(map(cell_len, (heading, *(row.cells[n].text for row in grid.rows))))
        for n, heading in enumerate(grid.headings)
    ]
    for series, columns in _list_series_columns(grid):
        used = sum(widths[n] for n in columns) + len(GAP) * (len(columns) - 1)
        widths[columns[-1]] += max(0, cell_len(series) - used)
    has_bar = [is_rich and any(row.cells[n].bar is not None for row in grid.rows) for n in range(len(widths))]
    gaps = len(GAP) * (len(widths) - 1 + sum(has_bar))
    if not grid.is_number[0]:  # names take several lines where they are too long
        room = width - sum(widths[1:]) - gaps
        widths[0] = min(widths[0], room if room >= NARROWEST_NAME else NARROW_NAME)
    free = width - sum(widths) - gaps
    bar = min(BAR, free // max(1, sum(has_bar)))
    bars = tuple(bar if has and bar >= NARROWEST_BAR else 0 for has in has_bar)
    return GridLayout(grid, tuple(widths), bars, is_rich, width)


def _list_series_columns(grid: Grid) -> list[tuple[str, list[int]]]:
    """Series with the columns that they have side by side."""
    return [
        (series, list(columns))
        for series, columns in groupby(range(len(grid.series)), grid.series.__getitem__)
    ]


def _convert_to_ascii(grid: Grid) -> Grid:
    """The grid in ASCII, without bars and tones."""

    def translate_row(row: GridRow) -> GridRow:
        cells = tuple(GridCell(cell.text.translate(TO_ASCII)) for cell in row.cells)
        return replace(row, cells=cells, ending=row.ending.translate(TO_ASCII))

    return Grid(
        tuple(text.translate(TO_ASCII) for text in grid.series),
        tuple(text.translate(TO_ASCII) for text in grid.headings),
        grid.is_number,
        tuple(
            replace(group, head=group.head.translate(TO_ASCII), rows=tuple(map(translate_row, group.rows)))
            for group in grid.groups
        ),
    )


def render_column_block(layout: GridLayout, block: Sequence[int]) -> list[tuple[GridRow | None, Text]]:
    """Lines of some columns, each with the row that it is of; None: headings and heads of groups."""
    grid, measure = layout.grid, layout.measure_columns_width
    placed: list[tuple[GridRow | None, Text]] = []
    if any(grid.series):
        parts = [
            (series, [n for n in columns if n in block]) for series, columns in _list_series_columns(grid)
        ]
        upper = [set_cell_size(series, measure(columns)) for series, columns in parts if columns]
        placed.append((None, Text(GAP.join(upper), "bold")))
    padded = {n: _pad_text(grid.headings[n], layout.widths[n], grid.is_number[n]) for n in block}
    headings = [set_cell_size(padded[n], measure([n])) for n in block]
    placed.append((None, Text(GAP.join(headings), "bold")))
    placed.append((None, Text(("─" if layout.is_rich else "-") * measure(block), "dim")))
    for group in grid.groups:
        if group.head:
            head = _cut_text(group.head, layout.width) + f" {words.WARNED}" * group.is_warned
            placed.append((None, Text(head, "bold")))
        placed += [(row, line) for row in group.rows for line in render_row(layout, row, block)]
    return placed


def render_row(layout: GridLayout, row: GridRow, block: Sequence[int]) -> list[Text]:
    """Lines of one row, several where its name is long; its figures stand in the last."""
    style = "bold" if row.is_answer else "dim" if row.is_pending else ""
    label, room = row.cells[0].text, layout.widths[0]
    is_long = any(len(word) > room for word in label.split())
    *above, name = textwrap.wrap(label, room, break_on_hyphens=is_long) or [""]
    lines = [Text(part, style) for part in above]
    line = Text("", style)
    for place, n in enumerate(block):
        cell, bar = row.cells[n], layout.bars[n]
        if row.ending and not any(row.cells[m].text for m in block[place:]):
            ending = f"{words.NO_FIGURES if layout.is_rich else 'x'} {row.ending}"
            line.append(_cut_text(ending, max(10, layout.width - cell_len(line.plain))), "dim")
            break
        text = cell.text if n else name
        line.append(_pad_text(text, layout.widths[n], layout.grid.is_number[n]), TONES[cell.tone])
        if bar:
            line.append(GAP)
            bar_style = TONES["running"] if cell.tone == "running" else ""
            line.append(set_cell_size(draw_bar(cell.bar or 0.0, bar), bar), bar_style)
        line.append(GAP)
    else:
        marks = [words.ANSWER if layout.is_rich else "<"] * row.is_answer + [words.WARNED] * row.is_warned
        line.append(" ".join(marks))
    line.rstrip()
    return [*lines, line]


def _cut_text(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 3).rstrip() + "..."


def _pad_text(text: str, width: int, is_number: bool) -> str:
    space = " " * max(0, width - cell_len(text))
    return space + text if is_number else text + space


def draw_bar(share: float, width: int) -> str:
    """A bar of so many cells for a share of 1, in eighths of a cell: what is above 0 is seen."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    eighths = max(eighths, 1) if share > 0 else 0
    return "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()


# --why.


def _render_claims(report: Report, width: int, plain: Callable[[str], str]) -> list[str]:
    """Every claim under its question as a plain table, and what would settle what is open."""
    lines = []
    for finding in report.findings:
        rows = [tuple(map(plain, words.make_claim_cells(report, claim))) for claim in finding.claims]
        notes = [*filter(None, (words.format_bounds(report, finding), words.format_remedy(finding)))]
        if not rows and not notes:
            continue
        lines += ["", words.QUESTIONS.get(finding.question, finding.question)]
        cells = [words.WHY_HEADINGS, *rows]
        widths = [max(cell_len(row[n]) for row in cells) for n in range(len(words.WHY_HEADINGS))]
        widths[0] = min(widths[0], max(20, width - sum(widths[1:]) - len(GAP) * (len(widths) - 1)))
        for row in cells if rows else []:
            *first, name = textwrap.wrap(row[0], widths[0], subsequent_indent=HANG) or [""]
            aligned = [_pad_text(name, widths[0], False)]
            aligned += [_pad_text(row[n], widths[n], 2 <= n <= 4) for n in range(1, len(row))]
            lines += [*first, GAP.join(aligned)]
        lines += [line for note in notes for line in wrap_text(plain(note), width)]
    if any(finding.claims for finding in report.findings):
        lines += ["", *wrap_text(words.WHY_NOTE, width)]
    return lines
