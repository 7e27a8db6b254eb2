"""What a picture may be made of: a table, and where it was read from, if that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.report.reading import Reading
from gpubench.report.table import Table
from gpubench.results.store import Results, counting
from gpubench.schema.record import Record


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One experiment's table with its records."""

    table: Table
    results: Results | None = None
    """Where its samples lie; None: nobody knows, and what needs records is not drawn."""
    records: Sequence[Record] = ()
    """The attempts that count of the table's trials."""


def subjects(reading: Reading) -> list[Subject]:
    """One for each table of a results folder."""
    found = list(counting(reading.records).values())
    made = []
    for table in reading.tables:
        mine = {row.trial_id for row in table.trials}
        records = tuple(record for record in found if record.trial_id in mine)
        made.append(Subject(table=table, results=reading.results, records=records))
    return made
