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
from gpubench.analyze.questions import make_folder_reports
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean_line
from gpubench.export.finding_sheet import FindingSheet, Style, format_sheet_text
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import SHEETS, Sheet
from gpubench.schema.columns import Column
from gpubench.schema.kinds import find_column_kind, format_value_text, parse_moment

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
    looks = [
        style(num_format=DATE if find_column_kind(column) == "moment" else "General")
        for column in lines.columns
    ]
    for place, column in enumerate(lines.columns):
        sheet.set_column(
            place, place, max(len(column.name) + 6, len(DATE) * (find_column_kind(column) == "moment"))
        )
        sheet.write_string(0, place, column.name, head)
    for row, values in enumerate(lines.lines, start=1):
        for place, (column, value) in enumerate(zip(lines.columns, values, strict=True)):
            if value is not None:
                write_value(
                    sheet, row, place, value, looks[place], is_date=find_column_kind(column) == "moment"
                )
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
