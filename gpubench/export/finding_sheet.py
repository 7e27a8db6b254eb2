"""The first sheet of a workbook: a table's finding, its figures under headings for people, room for a chart beside."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xlsxwriter.chart import Chart
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from gpubench.analyze.grid import INTERVALS, SOURCES
from gpubench.core.report import Cell, Report, ReportColumn, ReportRow
from gpubench.render import words
from gpubench.render.grid import Grid, GridRow, format_value, make_grid
from gpubench.schema.kinds import as_text

Look = dict[str, Any]
"""Properties of a format."""
Style = Callable[..., Format]
"""Gives a format of the workbook by its properties."""

WIDEST, LEAST_WIDTH = 45.0, 80.0
"""Of a column, and of all columns together, in digits: sentences stand below the table."""
SMALL = 0.8
"""The width of a small letter, in digits."""
LETTERS = 1.25
"""How many letters of a sentence take the room of a digit."""
CHART_COLUMNS, COLUMN_WIDTH = 9, 8.43
"""Columns over which the chart stands, and how wide each is."""
POINTS = 15
"""The height of a line of text."""
A4 = 9
GREY, ANSWER_FILL = "#6B7280", "#FFF2CC"
LONGEST_TEXT = 32_767
"""UTF-16 units of a cell in Excel."""


def truncate(text: str, longest: int) -> str:
    """The start of a text, of so many units of UTF-16."""
    return text.encode("utf-16-le")[: 2 * longest].decode("utf-16-le", "ignore")


def to_text(value: Any) -> str:
    """What a cell holds of a value in words."""
    text = truncate(as_text(value), LONGEST_TEXT)
    # XlsxWriter would take it for runs of text in its own mark-up, and write it as it stands.
    return f" {text}" if text.startswith("<r>") else text


def set_page(sheet: Worksheet) -> None:
    """Print a sheet as wide as a page."""
    sheet.set_landscape()
    sheet.set_paper(A4)
    sheet.fit_to_pages(1, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SheetColumn:
    """A column of the table: figures of a column of the report, or one end of their intervals."""

    source: ReportColumn
    place: int
    """Of the source in the report."""
    end: str
    """`value`, `low` or `high`."""
    heading: str
    name: str
    """In table.csv; empty where that has no such column."""


def list_columns(report: Report, grid: Grid) -> list[SheetColumn]:
    """The report's columns, behind each the ends of its intervals, where it has any."""
    columns = []
    for place, source in enumerate(report.columns):
        heading = grid.headings[place].removesuffix(" %" if is_percent(source) else "")
        name = SOURCES.get(source.name, source.name)
        low, high = INTERVALS.get(source.name, ("", ""))
        for end, text, column in (
            (
                "value",
                f"{grid.series[place]}\n{heading}".strip(),
                name if name in words.COLUMNS_BY_NAME else "",
            ),
            ("low", "from", low),
            ("high", "to", high),
        ):
            if end == "value" or any(getattr(row.cells[place], end) is not None for row in report.rows):
                columns.append(SheetColumn(source=source, place=place, end=end, heading=text, name=column))
    return columns


def is_percent(column: ReportColumn) -> bool:
    """Whether a column is in per cent: then its cells hold shares of 1, as per cents do in spreadsheets."""
    definition = words.COLUMNS_BY_NAME.get(column.name)
    return definition is not None and definition.unit == "%"


def split_jobs(report: Report, row: ReportRow) -> list[list[Cell]]:
    """The cells of a row, a line a job where its figures are those of several; the first has what they share."""

    def pick(column: ReportColumn, cell: Cell, job: int) -> Cell:
        if column.is_number and isinstance(cell.value, tuple):
            return replace(cell, value=cell.value[job])
        return cell if job == 0 else Cell(value=None)

    pairs = list(zip(report.columns, row.cells, strict=True))
    jobs = [len(cell.value) for column, cell in pairs if column.is_number and isinstance(cell.value, tuple)]
    return [[pick(column, cell, job) for column, cell in pairs] for job in range(max(jobs, default=1))]


def convert_figure(column: ReportColumn, value: float, mark: str) -> tuple[float, str]:
    """A figure as a cell holds it, and the format in which it reads as on a terminal. `mark`: stands behind it."""
    digits = re.search(r"\.(\d+)", format_value(column, value))
    decimals = digits[0].translate(str.maketrans("123456789", "000000000")) if digits else ""
    if not is_percent(column):
        return value, f"#,##0{decimals}{mark}"
    form = f"0{decimals} %{mark}"
    is_change = format_value(column, 1.0).startswith("+")
    return value / 100, f"+{form};-{form};{form}" if is_change else form


class FindingSheet:
    """A report on a sheet."""

    def __init__(self, sheet: Worksheet, report: Report, style: Style) -> None:
        self.sheet = sheet
        self.report = report
        self.style = style
        self.grid = make_grid(report)
        self.columns = list_columns(report, self.grid)
        self.widths = self.measure_widths()
        self.row = 0
        """The next one to be written: rows are written in their order."""
        self.top = 0
        """The row of the headings."""

    def measure_widths(self) -> list[float]:
        """Widths of the columns, and of one behind them for marks of rows."""
        widths = []
        for column in self.columns:
            texts = [*column.heading.split("\n")]
            if not column.source.is_number:
                texts += [row.cells[column.place].text for row in self.grid.rows]
            widths.append(min(WIDEST, max(7.0, max(map(len, texts)) + 2, SMALL * len(column.name) + 1)))
        widths.append(4.0)
        scale = max(1.0, LEAST_WIDTH / sum(widths))
        return [width * scale for width in widths]

    def write(self) -> None:
        """All that the report says, in the order of a terminal, but for the answer, which is the title."""
        for place, width in enumerate(self.widths):
            self.sheet.set_column(place, place, width)
        self.sheet.hide_gridlines(2)
        set_page(self.sheet)
        report, first = self.report, self.report.findings[0] if self.report.findings else None
        answer, sentences = words.title_finding(report, first) if first else (report.name, [])
        self.sheet.set_row(0, 1.6 * POINTS)
        self.write_text(0, answer, bold=True, font_size=15)
        self.row = 1
        self.write_sentence(" ".join(sentences), is_above=True)
        self.write_sentence(words.write_question(report), is_above=True, italic=True)
        self.write_sentence(words.describe_certainty(first) if first else "", is_above=True)
        self.write_sentence(" · ".join(words.describe_facts(report)), is_above=True, font_color=GREY)
        self.row += 1
        self.write_headings()
        for group, texts in zip(report.groups, self.grid.groups, strict=True):
            if texts.head:
                self.write_text(0, texts.head + f" {words.WARNED}" * texts.is_warned, bold=True)
                self.row += 1
            for row, row_texts in zip(group.rows, texts.rows, strict=True):
                self.write_jobs(row, row_texts)
        self.row += 1
        self.write_sentence(words.write_legend(report, "from, to"), font_color=GREY)
        for line in words.write_lines(report):
            if line.kind != "answer" and line.text not in sentences:
                self.write_sentence(line.marked_text)
        for problem in report.problems:
            self.write_sentence(words.mark_warning(problem))

    def insert(self, chart: Chart) -> None:
        """Puts a chart beside the table."""
        self.sheet.insert_chart(self.top, len(self.widths), chart, {"x_offset": 16})

    def write_text(self, place: int, text: str, **look: Any) -> None:
        write = self.sheet.write_string if text else self.sheet.write_blank
        write(self.row, place, to_text(text), self.style(**look))

    def write_sentence(self, text: str, *, is_above: bool = False, **look: Any) -> None:
        """A row of text, as high as it takes, over the table and, above it, the chart as well; none for no text."""
        if not text:
            return
        look = {"text_wrap": True, "valign": "top", **look}
        more = CHART_COLUMNS if is_above else 0
        width = sum(self.widths) + more * COLUMN_WIDTH
        self.sheet.set_row(self.row, POINTS * len(textwrap.wrap(text, int(LETTERS * width))))
        self.sheet.merge_range(self.row, 0, self.row, len(self.columns) + more, "", self.style(**look))
        self.write_text(0, text, **look)
        self.row += 1

    def write_headings(self) -> None:
        """A row of headings, and one of the names in table.csv."""
        self.top = self.row
        self.sheet.set_row(self.row, POINTS * (1 + any(self.grid.series)))
        for place, column in enumerate(self.columns):
            color = {} if column.end == "value" else {"font_color": GREY}
            self.write_text(place, column.heading, bold=True, text_wrap=True, **align(column), **color)
        self.row += 1
        for place, column in enumerate(self.columns):
            self.write_text(place, column.name, font_size=8, font_color=GREY, bottom=1, **align(column))
        self.write_text(len(self.columns), "", bottom=1)
        self.row += 1

    def write_jobs(self, row: ReportRow, texts: GridRow) -> None:
        """The lines of a row, with its marks behind the first."""
        look: Look = {"bg_color": ANSWER_FILL, "bold": True} if row.is_answer else {}
        marks = words.ANSWER * row.is_answer + words.WARNED * texts.is_warned
        lines = split_jobs(self.report, row)
        for number, cells in enumerate(lines):
            shown = [
                "" if number or (column.is_number and isinstance(cell.value, tuple)) else text.text
                for column, cell, text in zip(self.report.columns, row.cells, texts.cells, strict=True)
            ]
            self.write_line(cells, shown, look, texts.ending if number == 0 else "")
            self.write_text(len(self.columns), marks if number == 0 else "", **look)
            self.row += 1

    def write_line(self, cells: Sequence[Cell], texts: Sequence[str], look: Look, ending: str) -> None:
        """Figures as numbers, all else as text; of a row without figures the reason in place of those."""
        for place, column in enumerate(self.columns):
            value = getattr(cells[column.place], column.end)
            text = texts[column.place] if column.end == "value" else ""
            cell_look = {**look, **align(column)}
            if column.end != "value":
                cell_look["font_color"] = GREY
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                is_unknown = cells[column.place].word == "unknown" and column.end == "value"
                figure, form = convert_figure(column.source, value, '" ?"' if is_unknown else "")
                self.sheet.write_number(self.row, place, figure, self.style(num_format=form, **cell_look))
            elif ending and not any(texts[later.place] for later in self.columns[place:]):
                self.write_text(place, f"{words.NO_FIGURES} {ending}", font_color=GREY, indent=1)
                return
            else:
                self.write_text(place, text, **cell_look)


def align(column: SheetColumn) -> Look:
    """Numbers stand at the right, and text behind them with a gap."""
    if column.source.is_number:
        return {"align": "right"}
    return {"align": "left", "indent": 1 if column.place else 0}
