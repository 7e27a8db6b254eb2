"""CSV: the tables, the trials or the epochs of results folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from gpubench.export.formats import Asked
from gpubench.report import spreadsheet
from gpubench.report.contents import trial_rows
from gpubench.report.reading import Reading
from gpubench.results.counting import counting
from gpubench.results.csv_tables import epoch_rows
from gpubench.results.csv_text import DIALECTS, csv_text
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS


def made(readings: Sequence[Reading], asked: Asked) -> bytes:
    """UTF-8, in the dialect that was asked for."""
    dialect = DIALECTS[asked.dialect]
    if asked.sheet == "table":
        text = spreadsheet.text([table for one in readings for table in one.tables], dialect)
    else:
        columns = COLUMNS if asked.sheet == "trials" else EPOCH_COLUMNS
        names = [column.name for column in columns]
        rows = _trials if asked.sheet == "trials" else _epochs
        if len(readings) == 1:
            text = csv_text(names, rows(readings[0]), dialect=dialect)
        else:
            named = chain.from_iterable(([one.name, *row] for row in rows(one)) for one in readings)
            text = csv_text([spreadsheet.RESULTS, *names], named, dialect=dialect)
    return text.encode(errors="replace")


def _trials(reading: Reading) -> Iterable[Sequence[Any]]:
    names = [column.name for column in COLUMNS]
    return (row.values(names) for row in trial_rows(reading.contents))


def _epochs(reading: Reading) -> Iterable[Sequence[Any]]:
    return epoch_rows(counting(reading.records).values())
