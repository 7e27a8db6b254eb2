"""What a picture may be made of: a table, and where it was read from, if that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpubench.report.groups import names_of_groups
from gpubench.report.reading import Reading
from gpubench.report.table import Table
from gpubench.results.counting import counting
from gpubench.results.store import Results
from gpubench.schema.record import Record


def _nobody(line: str) -> None:
    """Whom nothing is told."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One experiment's table with its records."""

    table: Table
    results: Results | None = None
    """Where its samples lie; None: nobody knows, and what needs records is not drawn."""
    records: Sequence[Record] = ()
    """The attempts that count of the table's trials."""
    tell: Callable[[str], None] = _nobody
    """Is given a line for each file of samples that is damaged."""

    @cached_property
    def written(self) -> Mapping[int, Mapping[str, str]]:
        """The id of each row -> column -> its cell, as the table writes it."""
        names = [column.name for column in self.table.columns]
        return {
            id(row): dict(zip(names, cells, strict=True))
            for row, cells in zip(self.table.rows, self.table.cells, strict=True)
        }

    @cached_property
    def groups(self) -> Mapping[int, str]:
        """The id of each row of a group -> what its group is called."""
        return names_of_groups(self.table.rows, self.table.axes)


def subjects(reading: Reading, tell: Callable[[str], None] = _nobody) -> list[Subject]:
    """One for each table of a results folder. `tell`: as of a Subject."""
    found = list(counting(reading.records).values())
    made = []
    for table in reading.tables:
        mine = {row.trial_id for row in table.trials}
        records = tuple(record for record in found if record.trial_id in mine)
        made.append(Subject(table=table, results=reading.results, records=records, tell=tell))
    return made
