"""A workbook of results folders, for Excel and LibreOffice.

First a sheet a table with its finding (`finding_sheet.py`), then the lines of the tables, of trials, epochs,
environments and warnings under the names of their columns. Figures and dates are stored as such, everything else as
text, which no program runs as a formula.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from gpubench import __version__
from gpubench.analyze.folder import Folder
from gpubench.analyze.questions import report_folders
from gpubench.basics.words import clean
from gpubench.export.finding_sheet import FindingSheet, Style, set_page, to_text, truncate
from gpubench.export.formats import FormatOptions
from gpubench.export.native_chart import ChartDrawer, make_chart
from gpubench.export.sheets import SHEETS, Sheet
from gpubench.schema.columns import Column
from gpubench.schema.kinds import as_text, kind, moment

MOST_ROWS = 1_048_576
"""Rows of a sheet in Excel."""
LONGEST_NAME = 31
"""UTF-16 units of a sheet's name in Excel."""
FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")
"""In names of sheets."""
KEPT_BY_EXCEL = "history"
"""A name that no sheet may have."""
SAMPLE = 200
"""Lines by which the widths and digits of columns are chosen."""
WIDEST = 60
"""Of a column, in digits."""
DATE = "yyyy-mm-dd hh:mm:ss"


def write(folders: Sequence[Folder], options: FormatOptions) -> bytes:  # noqa: ARG001 - a workbook holds every sheet
    """The bytes of the workbook. The same folders make the same ones, whenever it is written."""
    reports = report_folders(folders)
    raw = [make(folders) for make in SHEETS.values()]
    raw.append(describe_columns(raw))
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True, "use_zip64": True}) as book:
        started = max((record.started_at for folder in folders for record in folder.records), default="")
        title = clean(", ".join(folder.name for folder in folders))
        created = moment(started) or datetime(2000, 1, 1)
        book.set_properties({"title": title, "comments": f"gpubench {__version__}", "created": created})

        @cache
        def style(**properties: Any) -> Format:
            return book.add_format(properties)

        taken = {KEPT_BY_EXCEL, "chart data", *(sheet.name for sheet in raw)}
        findings = []
        for report in reports:
            name = name_sheet("finding" if len(reports) == 1 else report.name, taken)
            findings.append(FindingSheet(book.add_worksheet(name), report, style))
            findings[-1].write()
        for lines in raw:
            write_lines(book, lines, taken, style)
        drawer = ChartDrawer(book, book.add_worksheet("chart data"), style)
        for finding in findings:
            if (chart := make_chart(finding.report)) is not None:
                finding.insert(drawer.draw(chart, finding.sheet.name))
    return out.getvalue()


def name_sheet(wanted: str, taken: set[str]) -> str:
    """`wanted` without signs that are forbidden, cut where it is too long, with a number where it is taken. Adds the
    name, in small letters, to those that are taken."""
    plain = FORBIDDEN.sub("-", as_text(wanted))
    name, number = truncate(plain, LONGEST_NAME).strip(" '") or "sheet", 1
    while name.lower() in taken:
        number += 1
        end = f" {number}"
        name = truncate(plain, LONGEST_NAME - len(end)).strip(" '") + end
    taken.add(name.lower())
    return name


def describe_columns(raw: Sequence[Sheet]) -> Sheet:
    """A sheet that says what each column means."""
    columns = {column.name: column for sheet in raw for column in sheet.columns}.values()
    return Sheet(
        name="columns",
        columns=tuple(Column(name, "", "") for name in ("column", "unit", "meaning")),
        values=tuple(
            [getattr(column, name) or None for column in columns] for name in ("name", "unit", "meaning")
        ),
    )


def write_lines(book: Workbook, lines: Sheet, taken: set[str], style: Style) -> None:
    """All lines of a sheet; where there are more than Excel takes, they go on in further ones."""
    forms = [
        choose_format(column, values[:SAMPLE])
        for column, values in zip(lines.columns, lines.values, strict=True)
    ]
    looks = [style(num_format=form) for form in forms]
    head = style(bold=True, bottom=1, bg_color="#E8EDF3")
    for start in range(0, max(len(lines.values[0]), 1), MOST_ROWS - 1):
        sheet = book.add_worksheet(name_sheet(lines.name, taken) if start else lines.name)
        part = [values[start : start + MOST_ROWS - 1] for values in lines.values]
        for place, (column, form) in enumerate(zip(lines.columns, forms, strict=True)):
            sheet.set_column(place, place, measure_width(column.name, form, part[place][:SAMPLE]))
            sheet.write_string(0, place, column.name, head)
        row = 0
        for row, values in enumerate(zip(*part, strict=True), start=1):
            for place, value in enumerate(values):
                if value is not None:
                    write_value(sheet, row, place, value, looks[place], is_date=forms[place] == DATE)
        sheet.freeze_panes(1, 1)
        sheet.autofilter(0, 0, row, len(lines.columns) - 1)
        sheet.repeat_rows(0)
        set_page(sheet)


def write_value(sheet: Worksheet, row: int, place: int, value: Any, look: Format, *, is_date: bool) -> None:
    """A cell: numbers, yes and no, and dates as what they are, all else as text. What is not finite stays empty."""
    if isinstance(value, bool):
        sheet.write_boolean(row, place, value, look)
    elif isinstance(value, (int, float)):
        if math.isfinite(value):
            sheet.write_number(row, place, value, look)
    elif is_date and (date := moment(value)):
        sheet.write_datetime(row, place, date, look)
    else:
        sheet.write_string(row, place, to_text(value), look)


def choose_format(column: Column, values: Sequence[Any]) -> str:
    """How a column's values are shown: figures with as many digits after the point as their column has for people, with
    more where they are so small that these would tell nothing."""
    if kind(column) == "moment":
        return DATE
    if kind(column) not in ("whole", "number") or column.digits is None:
        return "General"
    sizes = [abs(value) for value in values if isinstance(value, (int, float)) and value]
    telling = 1 - math.floor(math.log10(min(sizes))) if sizes and min(sizes) < 1 else 0
    digits = min(6, max(column.digits, telling))
    return "#,##0" + ("." + "0" * digits if digits else "")


def measure_width(name: str, form: str, values: Sequence[Any]) -> float:
    """Room for the column's name beside the arrow of its filter, for a date or a number, and for text up to WIDEST."""
    texts = (len(as_text(value)) for value in values if isinstance(value, (str, list, tuple)))
    return min(
        WIDEST, max(1.15 * len(name) + 4, len(DATE) + 1 if form == DATE else max(texts, default=8) + 1)
    )
