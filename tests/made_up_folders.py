"""Results folders made of rows by hand, as they are when they were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.analyze.folder import Folder, PlannedRows, build_folder_from_rows
from gpubench.analyze.series import Axes
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace


def folder_of(
    rows: Sequence[Row],
    records: Sequence[Record] = (),
    folder: str = "by-hand",
    *,
    name: str | None = None,
    axes: Axes = (),
    question: str = "",
) -> Folder:
    """A folder with these rows, in their order, and records. `name`: of the only experiment, with its plan."""
    planned = PlannedRows()
    if name is not None:
        rows = [replace(row, experiment=name) for row in rows]
        planned.members = {name: list(dict.fromkeys(row.trial_id for row in rows))}
        planned.axes, planned.questions = {name: [tuple(axis) for axis in axes]}, {name: question}
    return build_folder_from_rows(Path("/nowhere") / folder, rows, planned, records=tuple(records))
