"""One sheet of lines under a header: typed cells, number formats, widths, filters, and a header that stays in view."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from math import ceil, isfinite
from typing import Any
from xml.sax.saxutils import escape

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.utility import cell_autofit_width, xl_col_to_name
from xlsxwriter.worksheet import Worksheet

from gpubench.export.sheets import Sheet
from gpubench.export.xlsx.names import SheetNames
from gpubench.schema.columns import Column
from gpubench.schema.kinds import as_text, kind, moment

MOST_ROWS = 1_048_576
"""Rows of a sheet in Excel."""
LONGEST_TEXT = 32_767
"""UTF-16 units of a cell in Excel."""
LOOKED_AT = 200
"""Lines by which widths and digits are chosen."""
NARROWEST, WIDEST = 7, 60
EPOCH = datetime(1899, 12, 30)
"""The day from which Excel counts."""
DAY = timedelta(days=1)
SPELLED = {
    "%": "pct",
    "°C": "c",
    "images/s": "images_per_s",
    "images/J": "images_per_joule",
    "J s": "js",
    "GMAC": "gmacs",
}
"""How names of columns spell units, where that is not the unit in small letters."""
A4 = 9
"""As XlsxWriter numbers it."""
HEADER_POINTS, LINE_POINTS = 6.0, 15.0
"""Of the header: what it has besides its lines, and each of these."""
ROW_POINTS = 16
"""Of all other rows: without a height of their own LibreOffice prints the header over the first."""
DIGIT, PADDING = 7, 5
"""Pixels of the digits that widths are counted in, and what a column has besides."""
BOLD = 1.06
"""By how much bold signs are wider, at most."""
ARROW = 18
"""Pixels of the filter's arrow, which stands beside the heading."""

Cell = Callable[[int, Any], str]
"""The XML of a value in a row (from 1)."""


class Lines(Worksheet):  # type: ignore[misc]
    """A worksheet of XlsxWriter that takes whole rows as they stand in the file, in the workbook's constant memory.

    Cell by cell XlsxWriter takes six times as long, and rounds numbers to 16 digits, of which some need 17.
    """

    def put(self, row: int, width: int, cells: str, attributes: str = "") -> None:
        """Writes row number `row` (from 0) of so many columns. Rows come in order."""
        self._check_dimensions(row, width - 1)
        self._check_dimensions(row, 0)
        self.fh.write(f'<row r="{row + 1}"{attributes}>{cells}</row>')
        self.previous_row = row + 1


class Grids:
    """Writes sheets into one workbook."""

    def __init__(self, book: Workbook, names: SheetNames) -> None:
        self.book = book
        self._names = names
        self._formats: dict[str, Format] = {}
        self._heading = book.add_format(
            {"bold": True, "bg_color": "#E8EDF3", "bottom": 1, "valign": "vcenter", "text_wrap": True}
        )

    def write(self, sheet: Sheet, *, frozen: int = 1) -> list[str]:
        """Writes all lines of a sheet, and returns the names of the worksheets that it took: Excel takes so many rows
        in each. The first one has the sheet's own name. `frozen`: columns that stay in view."""
        sample = list(islice(sheet.lines(), LOOKED_AT))
        looks = [
            self._look(column, [line[index] for line in sample]) for index, column in enumerate(sheet.columns)
        ]
        cells = [
            _cell(column, xl_col_to_name(index), style._get_xf_index())
            for index, (column, (style, _)) in enumerate(zip(sheet.columns, looks, strict=True))
        ]
        head = self._heading._get_xf_index()
        header = "".join(
            _text(xl_col_to_name(index), head)(1, header_of(column))
            for index, column in enumerate(sheet.columns)
        )
        height = HEADER_POINTS + LINE_POINTS * max(
            (
                _header_lines(header_of(column), width)
                for column, (_, width) in zip(sheet.columns, looks, strict=True)
            ),
            default=1,
        )
        lines = sheet.lines()
        made: list[str] = []
        first = next(lines, None)
        while first is not None or not made:
            name = self._names.of(sheet.name) if made else sheet.name
            made.append(name)
            here = self.book.add_worksheet(name, Lines)
            here.put(0, len(sheet.columns), header, f' ht="{height:g}" customHeight="1"')
            rows: Iterator[Sequence[Any]] = chain([first] if first is not None else [], lines)
            number = 0
            for number, line in enumerate(islice(rows, MOST_ROWS - 1), start=1):
                text = "".join(
                    make(number + 1, value)
                    for make, value in zip(cells, line, strict=True)
                    if value is not None
                )
                here.put(number, len(cells), text)
            for index, (style, width) in enumerate(looks):
                here.set_column(index, index, width, style)
            here.freeze_panes(1, frozen)
            here.autofilter(0, 0, number, len(sheet.columns) - 1)
            here.set_default_row(ROW_POINTS)
            printed(here)
            first = next(lines, None)
        return made

    def _look(self, column: Column, values: Sequence[Any]) -> tuple[Format, float]:
        """The number format of a column, and its width."""
        form = _number_format(column, values)
        if form not in self._formats:
            self._formats[form] = self.book.add_format({"num_format": form, "valign": "vcenter"})
        longest = max((len(_shown(value, form)) for value in values if value is not None), default=0)
        heading = ceil((_pixels(header_of(column)) + ARROW - PADDING) / DIGIT)
        return self._formats[form], max(NARROWEST, min(WIDEST, max(longest + 2, heading)))


def header_of(column: Column) -> str:
    """The column's name, with its unit where the name has none: `batch_size (images)`, but `epoch_time_s`."""
    spelled = SPELLED.get(column.unit, column.unit.lower())
    is_told = f"_{spelled}_" in f"_{column.name}_"
    return f"{column.name} ({column.unit})" if column.unit and not is_told else column.name


def _header_lines(heading: str, width: float) -> int:
    """Lines that a heading takes in a column so wide, at most."""
    return max(1, ceil(_pixels(heading) / (DIGIT * width + PADDING)))


def _pixels(heading: str) -> float:
    """How wide a heading is. Not by its length: an `m` is as wide as three of `l`."""
    return BOLD * float(cell_autofit_width(heading))


def printed(here: Worksheet) -> None:
    """How a sheet of lines is printed: every column on one page, under the header, behind the first column."""
    here.set_landscape()
    here.set_paper(A4)
    here.set_margins(left=0.4, right=0.4)
    here.fit_to_pages(1, 0)
    here.repeat_rows(0)
    here.repeat_columns(0)


def _number_format(column: Column, values: Sequence[Any]) -> str:
    match kind(column):
        case "moment":
            return "yyyy-mm-dd hh:mm:ss"
        case "whole" if all(isinstance(value, int) for value in values if value is not None):
            return "0"
        case "whole" | "number":
            digits = count_digits(column, values)
            return "General" if digits is None else "#,##0" + ("." + "0" * digits if digits else "")
        case _:
            return "General"


def count_digits(column: Column, values: Sequence[Any]) -> int | None:
    """Digits after the point: the column's; of measured ones one more for each leading zero, none that all rows lack.

    What has no unit, a ratio, is worked out and lacks no digits.
    """
    numbers = [abs(value) for value in values if isinstance(value, (int, float)) and value]
    if column.digits is None or not numbers or not column.unit:
        return column.digits
    digits = column.digits
    if column.unit == "s":
        smallest = min(numbers)
        digits += (smallest < 1) + (smallest < 0.1)
    return max(len(f"{figure:.{digits}f}".rstrip("0").partition(".")[2]) for figure in numbers)


def _shown(value: Any, form: str) -> str:
    """About what Excel shows of a value, for its width."""
    if isinstance(value, bool):
        return "FALSE"
    if isinstance(value, (int, float)):
        return f"{value:,.{len(form.partition('.')[2])}f}" if form.startswith("#") else f"{value:g}"
    return form if form.startswith("yyyy") else as_text(value)


def _cell(column: Column, letter: str, style: int) -> Cell:
    """Writes values of a column: numbers, yes and no, and times as what they are, all else as plain text.

    What is not finite is left empty.
    """
    text = _text(letter, style)
    is_moment = kind(column) == "moment"

    def made(row: int, value: Any) -> str:  # by the type itself: millions of cells are written
        of = type(value)
        if of is float:
            return f'<c r="{letter}{row}" s="{style}"><v>{value!r}</v></c>' if isfinite(value) else ""
        if of is int:
            return f'<c r="{letter}{row}" s="{style}"><v>{value}</v></c>'
        if of is bool:
            return f'<c r="{letter}{row}" s="{style}" t="b"><v>{value:d}</v></c>'
        if is_moment and (found := moment(value)):
            return f'<c r="{letter}{row}" s="{style}"><v>{(found - EPOCH) / DAY!r}</v></c>'
        return text(row, value)

    return made


def _text(letter: str, style: int) -> Cell:
    """Writes text that no program takes for a formula: the file says that it is text."""
    known: dict[str, str] = {}

    def made(row: int, value: Any) -> str:
        words = as_text(value)
        inner = known.get(words)
        if inner is None:
            inner = _escaped(words)
            if len(known) < LOOKED_AT:
                known[words] = inner
        return (
            f'<c r="{letter}{row}" s="{style}" t="inlineStr"><is><t xml:space="preserve">{inner}</t></is></c>'
        )

    return made


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]")
_PLAIN = re.compile(r"[A-Za-z0-9 .,:+/-]{0,100}")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def _escaped(words: str) -> str:
    """Text for XML, as Excel writes it: control characters as _x000D_, and what looks like that as it stands."""
    if _PLAIN.fullmatch(words):  # an id, say: of large folders each trial has others
        return words
    whole = words.encode("utf-16-le", "replace")[: 2 * LONGEST_TEXT].decode("utf-16-le", "ignore")
    whole = _ESCAPE.sub("_x005F_", whole)
    return escape(_CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", whole))
