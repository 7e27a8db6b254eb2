"""What results folders hold, as sheets: columns as they are defined, and lines of typed values under them.

Frames of pandas, sheets of a workbook and Parquet files are made of these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.doubted import codes
from gpubench.analysis.varied import label
from gpubench.report import spreadsheet
from gpubench.report.contents import trial_rows
from gpubench.report.reading import Reading
from gpubench.report.table import COLUMN, Table
from gpubench.results.counting import counting
from gpubench.results.csv_tables import epoch_rows
from gpubench.schema.columns import COLUMNS, ENVIRONMENT, EPOCH_COLUMNS, Column, Count, Moment
from gpubench.schema.record import Record
from gpubench.schema.row import Row

RESULTS = Column("results", "", "name of the results folder")
"""The first column of each sheet of several folders."""

MEASURED_ON = tuple(column for column in ENVIRONMENT if column.name != "started_at")
OF_AN_ENVIRONMENT = (
    Column("attempts", "", "attempts that count and were measured under it", holds=Count),
    Column("first_started_at", "", "when the first of them began, in local time", holds=Moment),
    Column("last_started_at", "", "when the last of them began", holds=Moment),
)
OF_A_DOUBT = (
    *(COLUMN[name] for name in ("trial_id", "round", "experiment")),
    Column("row", "", "what tells the trial from the others"),
    Column("code", "", "the doubt's short code"),
    Column("sentence", "", "what is in doubt, and what to do"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sheet:
    """Lines of typed values under columns."""

    name: str
    columns: tuple[Column, ...]
    lines: Callable[[], Iterator[Sequence[Any]]]
    """Each line anew, one value a column, None where there is none: a sheet may be too large to be held."""


def table(readings: Sequence[Reading]) -> Sheet:
    """The lines of all tables, in the columns of table.csv."""
    return of_tables("table", [(reading, reading.tables) for reading in readings], several=len(readings) > 1)


def of_tables(name: str, found: Sequence[tuple[Reading, Sequence[Table]]], *, several: bool) -> Sheet:
    """The lines of these tables. `several`: folders, so that each line says which it is of."""
    wanted = spreadsheet.names([table for _, tables in found for table in tables])

    def lines(reading: Reading) -> Iterator[Sequence[Any]]:
        (tables,) = (tables for one, tables in found if one is reading)
        return (row.values(wanted) for row in spreadsheet.lines(tables))

    columns = tuple(COLUMN[name] for name in wanted)
    return _sheet(name, columns, [reading for reading, _ in found], lines, several=several)


def trials(readings: Sequence[Reading]) -> Sheet:
    """The lines of trials.csv."""
    names = [column.name for column in COLUMNS]
    rows = {id(one): trial_rows(one.contents) for one in readings}
    return _sheet(
        "trials", COLUMNS, readings, lambda reading: (row.values(names) for row in rows[id(reading)])
    )


def epochs(readings: Sequence[Reading]) -> Sheet:
    """The lines of epochs.csv."""
    records = {id(one): list(counting(one.records).values()) for one in readings}
    return _sheet("epochs", EPOCH_COLUMNS, readings, lambda reading: epoch_rows(records[id(reading)]))


def environment(readings: Sequence[Reading]) -> Sheet:
    """A line for each machine with its software on which something was measured that counts."""
    known = [column.name for column in MEASURED_ON]
    more = dict.fromkeys(
        name
        for reading in readings
        for one in reading.records
        for name in one.environment
        if name not in known
    )
    names = [*known, *more]
    columns = (
        *MEASURED_ON,
        *(Column(name, "", "as the record tells it") for name in more),
        *OF_AN_ENVIRONMENT,
    )

    alike: dict[int, dict[str, list[Record]]] = {}
    for reading in readings:
        found = alike[id(reading)] = {}
        for record in counting(reading.records).values():
            found.setdefault(json.dumps(record.environment, sort_keys=True), []).append(record)

    def lines(reading: Reading) -> Iterator[Sequence[Any]]:
        for records in alike[id(reading)].values():
            facts = records[0].environment
            began = sorted(record.started_at for record in records)
            yield [*(facts.get(name) for name in names), len(records), began[0] or None, began[-1] or None]

    return _sheet("environment", columns, readings, lines)


def doubts(readings: Sequence[Reading]) -> Sheet:
    """A line for each doubt of each trial; then one for each record or plan that can't be read, of no row."""
    rows = {id(one): [row for row in trial_rows(one.contents) if row.doubts] for one in readings}

    def lines(reading: Reading) -> Iterator[Sequence[Any]]:
        fields = dict.fromkeys(field for table in reading.tables for field in table.varied)
        for row in rows[id(reading)]:
            for code in codes(row):
                for text in row.doubt_texts.get(code) or (None,):
                    yield [row.trial_id, row.round, row.experiment, _named(row, fields), code, text]
        for line in reading.left_out:
            yield [*[None] * (len(OF_A_DOUBT) - 1), line]

    return _sheet("doubts", OF_A_DOUBT, readings, lines)


def _named(row: Row, fields: Mapping[str, object]) -> str:
    return label(row, ("group", "job", *fields))


SHEETS: Mapping[str, Callable[[Sequence[Reading]], Sheet]] = {
    "table": table,
    "trials": trials,
    "epochs": epochs,
    "environment": environment,
    "doubts": doubts,
}


def _sheet(
    name: str,
    columns: tuple[Column, ...],
    readings: Sequence[Reading],
    of_one: Callable[[Reading], Iterator[Sequence[Any]]],
    *,
    several: bool | None = None,
) -> Sheet:
    """The lines of all folders, with a first column that names the folder where there are several."""
    if not (several if several is not None else len(readings) > 1):
        return Sheet(
            name=name, columns=columns, lines=lambda: (line for one in readings for line in of_one(one))
        )
    return Sheet(
        name=name,
        columns=(RESULTS, *columns),
        lines=lambda: ([title, *line] for title, one in named(readings) for line in of_one(one)),
    )


def named(readings: Sequence[Reading]) -> list[tuple[str, Reading]]:
    """Each folder under its name, or under its path where two have one name."""
    names = [one.name for one in readings]
    return [
        (one.name if names.count(one.name) == 1 else str(one.results.folder.resolve()), one)
        for one in readings
    ]
