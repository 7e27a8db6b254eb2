"""Values as the text of a CSV that every spreadsheet reads in the same way."""

from __future__ import annotations

import csv
import functools
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.basics.quoted import HIDDEN
from gpubench.schema.cell import format_cell

_THREE_DECIMALS = re.compile(r"\.\d{3}(?!\d)")
_FORMULA = re.compile(r"(?:^\s+|[;,\t]\s*)(?=[=+@＝＋－＠-])")
"""Where a spreadsheet may see a formula begin besides at a text's own begin, of which `cell` takes care: behind blanks,
and behind what one of another country takes for the end of a cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How a CSV is written for a program."""

    help: str
    delimiter: str = ","
    decimal: str = "."
    line_end: str = "\n"
    marked: bool = False
    """Whether it begins with the mark by which Excel knows UTF-8 (U+FEFF). No line `sep=;` stands there instead: Excel
    then takes the file for one in the country's old encoding, and every other program reads it as data."""


PLAIN = Dialect(help="commas and dots")
DIALECTS = {
    "plain": PLAIN,
    "excel": Dialect(
        help="as Excel opens it by a double click where it has commas and dots", line_end="\r\n", marked=True
    ),
    "excel-eu": Dialect(
        help="semicolons and decimal commas, as Excel opens it in most of Europe",
        delimiter=";", decimal=",", line_end="\r\n", marked=True,
    ),
}  # fmt: skip
"""Name -> dialect."""


def format_csv_cell(value: Any, digits: int = 6, decimal: str = ".") -> str:
    """A value as a cell of a CSV: no figure has exactly three decimals, 18.457 is written 18.4570.

    A spreadsheet that takes commas reads 18.457 as eighteen thousand. Whoever reads dots gets the same value.
    A number stays one, negative or not; text that a spreadsheet would run stays text.
    """
    if value is None:  # half of a large table
        return ""
    if isinstance(value, str):
        return _format_text_cell(value)
    text = format_cell(value, digits).replace("\r", " ")
    return text if isinstance(value, int) else _THREE_DECIMALS.sub(r"\g<0>0", text).replace(".", decimal)


@functools.lru_cache(1 << 12)  # most of a large table are a few words, over and over
def _format_text_cell(value: str) -> str:
    # The csv module leaves a lone carriage return unquoted, and readers end the row there.
    text = HIDDEN.sub(" ", format_cell(value)).replace("\r", " ")
    return text if text[:1] == "'" != value[:1] else _FORMULA.sub(r"\g<0>'", text)


def format_csv(
    header: Sequence[str], rows: Iterable[Iterable[Any]], digits: int = 6, dialect: Dialect = PLAIN
) -> str:
    """A CSV with this header and these values, as `format_csv_cell` writes them."""
    out = io.StringIO()
    if dialect.marked:
        out.write("\ufeff")
    writer = csv.writer(out, delimiter=dialect.delimiter, lineterminator=dialect.line_end)
    writer.writerow(header)
    writer.writerows([format_csv_cell(value, digits, dialect.decimal) for value in values] for values in rows)
    return out.getvalue()
