"""A workbook of results folders."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime

from xlsxwriter import Workbook

from gpubench import __version__
from gpubench.analyze.folder import Folder
from gpubench.basics.words import clean
from gpubench.export import sheets
from gpubench.export.formats import Asked
from gpubench.export.sheets import Sheet
from gpubench.export.xlsx.charts import Charts
from gpubench.export.xlsx.grid import Grids
from gpubench.export.xlsx.names import SheetNames
from gpubench.export.xlsx.words import Words
from gpubench.plot.table import PlotTable, lay_out
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


def write(folders: Sequence[Folder], asked: Asked) -> bytes:  # noqa: ARG001 - a workbook holds every sheet
    """The answers with their charts, a sheet a table, and the sheets of OTHERS."""
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True, "use_zip64": True}) as book:
        # The same folders make the same file, whenever it is made.
        began = max((record.started_at for folder in folders for record in folder.records), default="")
        book.set_properties(
            {
                "title": clean(", ".join(folder.name for folder in folders)),
                "comments": f"gpubench {__version__}",
                "created": moment(began) or datetime(2000, 1, 1),
            }
        )
        names = SheetNames(("answers", "table", *OTHERS, "chart data", "columns"))
        words = Words(book, book.add_worksheet("answers"))
        grids = Grids(book, names)
        known: dict[str, Column] = {}
        notes = []

        def put(sheet: Sheet, *, frozen: int = 1) -> None:
            taken = grids.write(sheet, frozen=frozen)
            known.update({column.name: column for column in sheet.columns if column.name not in known})
            if len(taken) > 1:
                on = ", ".join(taken[1:])
                notes.append(
                    f"The sheet {taken[0]} has more lines than Excel takes in one: it goes on in {on}."
                )

        tables = _name_tables(folders, names)
        for name, table in tables:
            put(
                _drop_empty(sheets.list_rows_of(name, table.folder, table.table)),
                frozen=min(MOST_FROZEN, len(table.varied)),
            )
        for name in OTHERS:
            put(sheets.SHEETS[name](folders))
        charts = Charts(book, book.add_worksheet("chart data"))
        for name, table in tables:
            words.of(table, name, charts)
        grids.write(_columns(list(known.values())))
        words.about([*ABOUT, *notes])
    return out.getvalue()


def _name_tables(folders: Sequence[Folder], names: SheetNames) -> list[tuple[str, PlotTable]]:
    """Each table under the name of its sheet: its experiment's where there are several, and its folder's as well where
    several folders have it."""
    tables = [table for folder in folders for table in lay_out(folder, is_named=len(folders) > 1)]
    if len(tables) == 1:
        return [("table", tables[0])]
    experiments = [table.name for table in tables]
    return [
        (
            names.of(
                table.name if experiments.count(table.name) == 1 else f"{table.name} {table.folder.name}"
            ),
            table,
        )
        for table in tables
    ]


def _drop_empty(sheet: Sheet) -> Sheet:
    """The lines of one table, without the columns that are empty in all of them."""
    kept = [
        (column, values)
        for column, values in zip(sheet.columns, sheet.values, strict=True)
        if column.name != "experiment" and any(value is not None for value in values)
    ]
    columns, values = zip(*kept, strict=True)
    return Sheet(name=sheet.name, columns=columns, values=values)


def _columns(known: Sequence[Column]) -> Sheet:
    """What each column means."""
    return Sheet(
        name="columns",
        columns=tuple(Column(name, "", "") for name in ("column", "unit", "meaning")),
        values=tuple([getattr(one, name) or None for one in known] for name in ("name", "unit", "meaning")),
    )
