"""What a picture may be made of: a table, and where it was read from, if that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpubench.analyze.folder import Folder
from gpubench.plot.table import PlotTable, lay_out
from gpubench.results.store import Results
from gpubench.schema.record import Record


def _nobody(line: str) -> None:
    """Whom nothing is told."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One experiment's table with its records."""

    table: PlotTable
    results: Results | None = None
    """Where its samples lie; None: nobody knows, and what needs records is not drawn."""
    records: Sequence[Record] = ()
    """The attempts that count of the table's trials."""
    tell: Callable[[str], None] = _nobody
    """Is given a line for each file of samples that is damaged."""


def subjects(
    folder: Folder, tell: Callable[[str], None] = _nobody, *, is_named: bool = False
) -> list[Subject]:
    """One for each table of a results folder. `tell`: as of a Subject; `is_named`: as of `lay_out`."""
    made = []
    for table in lay_out(folder, is_named=is_named):
        mine = set(table.runs["trial_id"])
        records = tuple(record for record in folder.records if record.trial_id in mine)
        made.append(Subject(table=table, results=Results(folder.path), records=records, tell=tell))
    return made
