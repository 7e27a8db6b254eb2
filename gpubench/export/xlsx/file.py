"""A workbook of results folders."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime

from xlsxwriter import Workbook

from gpubench import __version__
from gpubench.basics.words import clean
from gpubench.export.formats import Asked, with_left_out
from gpubench.export.xlsx.charts import Charts
from gpubench.export.xlsx.grid import Grids
from gpubench.export.xlsx.names import SheetNames
from gpubench.export.xlsx.words import Words
from gpubench.report import sheets
from gpubench.report.reading import Reading
from gpubench.report.sheets import Sheet
from gpubench.report.table import Table
from gpubench.schema.columns import Column
from gpubench.schema.kinds import moment

OTHERS = ("trials", "epochs", "environment", "doubts")
"""The sheets behind those of the tables."""
MOST_FROZEN = 3
"""Columns of what varies that stay in view."""


ABOUT = (
    "The sheets trials and epochs hold every column of trials.csv and epochs.csv; the sheet columns says what each "
    "column means. An empty cell is a figure that is not known, never 0.",
    "Each number is stored as it was measured, and shown with fewer digits.",
    "Bars in the charts are 95 % intervals over processes. A line breaks where a row has no figure. What the charts "
    "draw stands in the sheet chart data.",
)


def made(readings: Sequence[Reading], asked: Asked) -> bytes:  # noqa: ARG001 - a workbook holds every sheet
    """The answers with their charts, a sheet a table, and the sheets of OTHERS."""
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True, "use_zip64": True}) as book:
        # The same folders make the same file, whenever it is made.
        began = max((record.started_at for one in readings for record in one.records), default="")
        book.set_properties(
            {
                "title": clean(", ".join(title for title, _ in sheets.named(readings))),
                "comments": f"gpubench {__version__}",
                "created": moment(began) or datetime(2000, 1, 1),
            }
        )
        names = SheetNames(("answers", "table", *OTHERS, "chart data", "columns"))
        words = Words(book, book.add_worksheet("answers"))
        grids = Grids(book, names)
        placed = []
        known: dict[str, Column] = {}
        notes = []

        def write(sheet: Sheet, *, frozen: int = 1) -> None:
            taken = grids.write(sheet, frozen=frozen)
            known.update({column.name: column for column in sheet.columns if column.name not in known})
            if len(taken) > 1:
                on = ", ".join(taken[1:])
                notes.append(
                    f"The sheet {taken[0]} has more lines than Excel takes in one: it goes on in {on}."
                )

        for name, one, table in _named_tables(readings, names):
            write(_lines(name, one, table), frozen=min(MOST_FROZEN, len(table.varied)))
            placed.append((name, with_left_out(one, table)))
        for name in OTHERS:
            write(sheets.SHEETS[name](readings))
        charts = Charts(book, book.add_worksheet("chart data"))
        for name, table in placed:
            words.of(table, name, charts)
        grids.write(_columns(list(known.values())))
        words.about([*ABOUT, *notes])
    return out.getvalue()


def _named_tables(readings: Sequence[Reading], names: SheetNames) -> list[tuple[str, Reading, Table]]:
    """Each table under the name of its sheet: its experiment's where there are several, and its folder's as well where
    several folders have it."""
    found = [(title, one, table) for title, one in sheets.named(readings) for table in one.tables]
    if len(found) == 1:
        return [("table", *found[0][1:])]
    experiments = [table.name for *_, table in found]
    return [
        (names.of(table.name if experiments.count(table.name) == 1 else f"{table.name} {title}"), one, table)
        for title, one, table in found
    ]


def _lines(name: str, one: Reading, table: Table) -> Sheet:
    """The lines of one table, without the columns that are empty in all of them."""
    whole = sheets.of_tables(name, [(one, [table])], several=False)
    filled = {index for line in whole.lines() for index, value in enumerate(line) if value is not None}
    kept = [index for index in sorted(filled) if whole.columns[index].name != "experiment"]
    return Sheet(
        name=name,
        columns=tuple(whole.columns[index] for index in kept),
        lines=lambda: ([line[index] for index in kept] for line in whole.lines()),
    )


def _columns(known: Sequence[Column]) -> Sheet:
    """What each column means."""
    return Sheet(
        name="columns",
        columns=tuple(Column(name, "", "") for name in ("column", "unit", "meaning")),
        lines=lambda: iter([[one.name, one.unit or None, one.meaning or None] for one in known]),
    )
