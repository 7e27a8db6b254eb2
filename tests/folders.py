"""Results folders of stored records, analysed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.analyze.folder import Folder, build_folder_from_plan, build_folder_from_records
from gpubench.analyze.grid import list_labelled_rows
from gpubench.results.store import Results
from gpubench.run.sweep_state import SweepState
from gpubench.schema.record import Record


def analyze(results: Results, records: Sequence[Record] | None = None) -> Folder:
    """The folder of these records; without them, of all that it holds."""
    problems: list[str] = []
    folder = build_folder_from_records(
        results, results.read_records() if records is None else records, [], problems.append
    )
    assert not problems
    return folder


def analyze_own(work: SweepState) -> Folder:
    """What a sweep shows in the end."""
    return build_folder_from_plan(work.runner.results.folder, work.plan, work.stored().alike, {})


def rows_of_table(folder: Folder, place: int = 0) -> list[dict[str, Any]]:
    """The rows of a table, each as a dict of Python's own values."""
    return [row for _, row in list_labelled_rows(folder.select_table_rows(folder.tables[place]))]


def superseded(folder: Folder) -> set[str]:
    """Trials whose variant, model or images were edited since."""
    return set(folder.runs.loc[folder.runs["superseded"], "trial_id"])
