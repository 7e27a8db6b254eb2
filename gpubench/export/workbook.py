"""A workbook of results folders, for Excel and LibreOffice.

First a sheet a table with its finding, its figures under headings for people, and a chart beside them; then the lines
of the tables, of trials, epochs, environments and warnings under the names of their columns. Figures and dates are
stored as such, everything else as text, which no program runs as a formula.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.utility import quote_sheetname, xl_range_abs
from xlsxwriter.worksheet import Worksheet

from gpubench import __version__
from gpubench.analyze.folder import Folder
from gpubench.analyze.grid import INTERVALS, SOURCES
from gpubench.analyze.questions import make_folder_reports
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean_line
from gpubench.core.report import Report, ReportColumn, ReportRow
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import SHEETS, Sheet
from gpubench.render import words
from gpubench.render.grid import GridRow, format_value, make_grid
from gpubench.render.pictures import vega
from gpubench.schema.columns import TABLE_BY_NAME, Column
from gpubench.schema.kinds import find_column_kind, format_value_text, parse_moment
from gpubench.schema.trial_fields import ABOUT

Style = Callable[..., Format]
"""Gives a format of the workbook by its properties."""

MOST_ROWS = 1_048_576
"""Rows of a sheet in Excel."""
LONGEST_NAME = 31
"""Letters of a sheet's name in Excel."""
FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
"""In names of sheets."""
KEPT_BY_EXCEL = "history"
"""A name that no sheet may have."""
DATE = "yyyy-mm-dd hh:mm:ss"


def make_workbook(folders: Sequence[Folder], options: FormatOptions) -> bytes:  # noqa: ARG001 - a workbook holds every sheet
    """The bytes of the workbook. The same folders make the same ones, whenever it is written."""
    reports = make_folder_reports(folders)
    raw = [make(folders) for make in SHEETS.values()]
    raw.append(make_column_meanings_sheet(raw))
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True, "use_zip64": True}) as book:
        started = max((record.started_at for folder in folders for record in folder.records), default="")
        title = clean_line(", ".join(folder.name for folder in folders))
        created = parse_moment(started) or datetime(2000, 1, 1)
        book.set_properties({"title": title, "comments": f"gpubench {__version__}", "created": created})

        @cache
        def style(**properties: Any) -> Format:
            return book.add_format(properties)

        taken = {KEPT_BY_EXCEL, *(sheet.name for sheet in raw)}
        for report in reports:
            name = make_sheet_name("finding" if len(reports) == 1 else report.name, taken)
            FindingSheet(book.add_worksheet(name), report, style).write(book)
        for lines in raw:
            write_sheet(book, lines, style)
    return out.getvalue()


def make_sheet_name(wanted: str, taken: set[str]) -> str:
    """`wanted` without signs that are forbidden, cut where it is too long, with a number where it is taken. Adds the
    name, in small letters, to those that are taken."""
    plain = FORBIDDEN.sub("-", format_value_text(wanted))
    name, number = plain[:LONGEST_NAME].strip(" '") or "sheet", 1
    while name.lower() in taken:
        number += 1
        end = f" {number}"
        name = plain[: LONGEST_NAME - len(end)].strip(" '") + end
    taken.add(name.lower())
    return name


def make_column_meanings_sheet(raw: Sequence[Sheet]) -> Sheet:
    """A sheet that says what each column means."""
    columns = {column.name: column for sheet in raw for column in sheet.columns}.values()
    return Sheet(
        name="columns",
        columns=tuple(Column(name, "", "") for name in ("column", "unit", "meaning")),
        lines=[(column.name, column.unit or None, column.meaning or None) for column in columns],
    )


def write_sheet(book: Workbook, lines: Sheet, style: Style) -> None:
    """All lines of a sheet. Raises UnusableError where there are more than Excel takes."""
    if len(lines.lines) >= MOST_ROWS:
        raise UnusableError(f"{lines.name} has more rows than a sheet of Excel: --format parquet takes them")
    sheet = book.add_worksheet(lines.name)
    head = style(bold=True, bottom=1, bg_color="#E8EDF3")
    holds_dates = [find_column_kind(column) == "moment" for column in lines.columns]
    for place, (column, is_date) in enumerate(zip(lines.columns, holds_dates, strict=True)):
        sheet.set_column(place, place, max(len(column.name) + 6, len(DATE) * is_date))
        sheet.write_string(0, place, column.name, head)
    looks = [style(num_format=DATE if is_date else "General") for is_date in holds_dates]
    for row, values in enumerate(lines.lines, start=1):
        for place, value in enumerate(values):
            if value is not None:
                write_value(sheet, row, place, value, looks[place], is_date=holds_dates[place])
    sheet.freeze_panes(1, 1)
    sheet.autofilter(0, 0, len(lines.lines), len(lines.columns) - 1)


def write_value(sheet: Worksheet, row: int, place: int, value: Any, look: Format, *, is_date: bool) -> None:
    """A cell: numbers, yes and no, and dates as what they are, all else as text. What is not finite stays empty."""
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value, look)
    elif isinstance(value, (int, float)):
        if math.isfinite(value):
            sheet.write_number(row, place, value, look)
    elif is_date and (date := parse_moment(value)):
        sheet.write_datetime(row, place, date, look)
    else:
        sheet.write_string(row, place, format_sheet_text(value), look)


# ---- the finding ----

CHARTED = ("work", "speedup", "time_to_top1_s", "images_per_s", "epoch_time_s")
"""The first of these columns that a table has is that of its chart."""
MOST_BARS = 60
"""More can't be read."""
LEAST_WIDTH = 80
"""Of the table, in digits: sentences stand above and below it."""
LETTERS = 1.15
"""How many letters of a sentence take the room of a digit."""
LONGEST_TEXT = 16_000
"""Excel takes twice as many, but counts some signs twice."""
GREY, ANSWER_FILL = "#6B7280", "#FFF2CC"


def format_sheet_text(value: Any) -> str:
    """What a cell holds of a value in words."""
    text = format_value_text(value)[:LONGEST_TEXT]
    # XlsxWriter would take it for runs of text in its own mark-up, and write it as it stands.
    return f" {text}" if text.startswith("<r>") else text


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


def list_sheet_columns(report: Report) -> list[SheetColumn]:
    """The report's columns, behind each the ends of its intervals, where it has any."""
    columns = []
    for place, source in enumerate(report.columns):
        heading = " ".join(words.format_column_heading(report, source)).strip()
        heading = heading.removesuffix(" %") if is_percent(source) else heading
        name = SOURCES.get(source.name, source.name)
        low, high = INTERVALS.get(source.name, ("", ""))
        for end, text, column in (
            ("value", heading, name if name in TABLE_BY_NAME else ""),
            ("low", "from", low),
            ("high", "to", high),
        ):
            if end == "value" or any(getattr(row.cells[place], end) is not None for row in report.rows):
                columns.append(SheetColumn(source=source, place=place, end=end, heading=text, name=column))
    return columns


def is_percent(column: ReportColumn) -> bool:
    """Whether a column is in per cent: then its cells hold shares of 1, as per cents do in spreadsheets."""
    definition = TABLE_BY_NAME.get(column.name)
    return definition is not None and definition.unit == "%"


def make_number_with_format(column: ReportColumn, value: float) -> tuple[float, str]:
    """A figure as a cell holds it, and the format in which it reads as on a terminal."""
    digits = re.search(r"\.(\d+)", format_value(column, value))
    decimals = "." + "0" * len(digits[1]) if digits else ""
    if not is_percent(column):
        return value, f"#,##0{decimals}"
    form = f"0{decimals} %"
    is_change = format_value(column, 1.0).startswith("+")
    return value / 100, f"+{form};-{form};{form}" if is_change else form


class FindingSheet:
    """A report on a sheet."""

    def __init__(self, sheet: Worksheet, report: Report, style: Style) -> None:
        self.sheet = sheet
        self.report = report
        self.style = style
        self.grid = make_grid(report)
        self.columns = list_sheet_columns(report)
        self.widths = [self.compute_column_width(column) for column in self.columns]
        self.widths.append(max(4, LEAST_WIDTH - sum(self.widths)))  # of a column for endings and marks
        name = next((name for name in CHARTED if any(c.source.name == name for c in self.columns)), None)
        self.charted = [n for n, c in enumerate(self.columns) if c.source.name == name and c.end == "value"]
        """Places of the columns that the chart draws."""
        self.row = 0
        """The next one to be written: rows are written in their order."""

    def compute_column_width(self, column: SheetColumn) -> int:
        texts = [column.heading, column.name]
        if not column.source.is_number:
            texts += [row.cells[column.place].text for row in self.grid.rows]
        return min(45, max(9, max(map(len, texts)) + 2))

    def write(self, book: Workbook) -> None:
        """All that the report says, in the order of a terminal, but for the answer, which is the title."""
        for place, width in enumerate(self.widths):
            self.sheet.set_column(place, place, width)
        self.sheet.hide_gridlines(2)
        self.sheet.set_landscape()
        self.sheet.fit_to_pages(1, 0)
        report, first = self.report, self.report.findings[0] if self.report.findings else None
        answer, sentences = words.format_finding_title(report, first) if first else (report.name, [])
        self.write_wrapped_sentence(answer, bold=True, font_size=15)
        self.write_wrapped_sentence(" ".join(sentences))
        self.write_wrapped_sentence(words.format_question(report), italic=True)
        self.write_wrapped_sentence(words.describe_certainty(first) if first else "")
        self.write_wrapped_sentence(" · ".join(words.list_heading_facts(report)), font_color=GREY)
        self.row += 1
        self.write_figures_table(book)
        self.row += 1
        self.write_wrapped_sentence(words.format_legend(report, "from, to"), font_color=GREY)
        for line in words.list_sentences(report):
            if line.kind != "answer" and line.text not in sentences:
                self.write_wrapped_sentence(line.marked_text)
        for problem in report.problems:
            self.write_wrapped_sentence(words.mark_warning(problem))

    def write_text(self, place: int, text: str, **look: Any) -> None:
        write = self.sheet.write_string if text else self.sheet.write_blank
        write(self.row, place, format_sheet_text(text), self.style(**look))

    def write_wrapped_sentence(self, text: str, **look: Any) -> None:
        """Text over the table, in as many rows as it takes."""
        for line in textwrap.wrap(text, int(LETTERS * sum(self.widths)), break_on_hyphens=False):
            self.write_text(0, line, **look)
            self.row += 1

    def write_figures_table(self, book: Workbook) -> None:
        """Headings, the names in table.csv below them, then a line a row, and the chart beside them."""
        for kind in ("heading", "name"):
            for place, column in enumerate(self.columns):
                color = {"font_color": GREY} if kind == "name" or column.end != "value" else {}
                look = make_alignment(column) | color | {"bold": kind == "heading"}
                self.write_text(place, getattr(column, kind), **look)
            self.row += 1
        top = self.row
        for group, texts in zip(self.report.groups, self.grid.groups, strict=True):
            if texts.head:
                self.write_text(0, texts.head + f" {words.WARNED}" * texts.is_warned, bold=True)
                self.row += 1
            for row, row_texts in zip(group.rows, texts.rows, strict=True):
                self.write_figures_row(row, row_texts)
        if self.charted and 1 < self.row - top <= MOST_BARS:
            self.draw_chart(book, top, self.row - 1)

    def write_figures_row(self, row: ReportRow, texts: GridRow) -> None:
        """Figures as numbers, all else as text; behind them how a row without figures ended, and marks."""
        look = {"bg_color": ANSWER_FILL, "bold": True} if row.is_answer else {}
        for place, column in enumerate(self.columns):
            cell = row.cells[column.place]
            value = getattr(cell, column.end)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                figure, form = make_number_with_format(column.source, value)
                if cell.word == "unknown" and column.end == "value":
                    form = ";".join(f'{part}" ?"' for part in form.split(";"))
                color = {} if column.end == "value" else {"font_color": GREY}
                self.sheet.write_number(self.row, place, figure, self.style(num_format=form, **look, **color))
            else:
                text = texts.cells[column.place].text if column.end == "value" else ""
                self.write_text(place, text, **look, **make_alignment(column))
        marks = [words.ANSWER] * row.is_answer + [words.WARNED] * texts.is_warned
        ending = [f"{words.NO_FIGURES} {texts.ending}"] if texts.ending else []
        self.write_text(len(self.columns), " ".join([*ending, *marks]), **look)
        for number, place in enumerate(self.charted):
            cell = row.cells[self.columns[place].place]
            for behind, end in enumerate((cell.low, cell.high), 1 + 2 * number):
                if end is not None and cell.value is not None:
                    self.sheet.write_number(self.row, len(self.columns) + behind, abs(end - cell.value))
        self.row += 1

    def draw_chart(self, book: Workbook, top: int, bottom: int) -> None:
        """Bars of the table's main column with its intervals. How far these reach stands in the cells that the chart
        covers: a program takes error bars from cells alone."""
        chart = book.add_chart({"type": "bar"})
        fields = list(itertools.takewhile(lambda c: not c.place or c.source.name in ABOUT, self.columns))
        name = self.sheet.get_name()
        for number, place in enumerate(self.charted):
            low, high = (
                f"={quote_sheetname(name)}!{xl_range_abs(top, behind, bottom, behind)}"
                for behind in (len(self.columns) + 1 + 2 * number, len(self.columns) + 2 + 2 * number)
            )
            series = {
                "name": self.columns[place].heading,
                "categories": [name, top, 0, bottom, len(fields) - 1],
                "values": [name, top, place, bottom, place],
                "fill": {"color": vega.COLORS[number % len(vega.COLORS)]},
                "gap": 60,
            }
            if any(c.place == self.columns[place].place and c.end != "value" for c in self.columns):
                series["x_error_bars"] = {"type": "custom", "minus_values": low, "plus_values": high}
            chart.add_series(series)
        has_several = len(self.charted) > 1
        heading = {"name": self.columns[self.charted[0]].heading, "name_font": {"size": 11, "bold": False}}
        chart.set_title({"none": True} if has_several else heading)
        chart.set_legend({"position": "bottom"} if has_several else {"none": True})
        chart.set_x_axis({"min": 0, "major_gridlines": {"visible": True, "line": {"color": "#E6E8EB"}}})
        chart.set_y_axis({"reverse": True, "major_gridlines": {"visible": False}})
        chart.set_size({"width": 560, "height": max(340, 110 + 20 * (bottom - top) * len(self.charted))})
        self.sheet.insert_chart(top - 2, len(self.columns) + 1, chart)


def make_alignment(column: SheetColumn) -> dict[str, Any]:
    """Numbers stand at the right, and text behind them with a gap."""
    return (
        {"align": "right"} if column.source.is_number else {"align": "left", "indent": int(column.place > 0)}
    )
