"""What a sweep asks of its results: rows, tables, open questions, and what a group's trials alone foretell.

Of the sweep it alone imports what works on frames, which takes most of a second: whoever needs it imports it when it is
called, and a sweep that runs does so before its first trial, never while one is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench.analyze.folder import (
    build_folder_from_plan,
    build_folder_from_records,
    make_rows_with_folder_facts,
)
from gpubench.analyze.looks import list_trials_of_open_questions
from gpubench.analyze.questions import make_table_report
from gpubench.basics.collector import pause_garbage_collector
from gpubench.core.report import Report
from gpubench.export.files import write_tables
from gpubench.plan.plan import Plan
from gpubench.render.live import LiveReport
from gpubench.results.plans import read_stored_plans
from gpubench.results.store import Results
from gpubench.schema.record import Record

__all__ = [
    "find_open_questions_of_plan",
    "make_live_report",
    "make_plan_reports",
    "make_rows_with_folder_facts",
    "write_folder_tables",
]


def find_open_questions_of_plan(
    path: Path, plan: Plan, records: Sequence[Record]
) -> list[list[set[str]]] | None:
    """`list_trials_of_open_questions` of one plan, by these records alone."""
    with pause_garbage_collector():
        return list_trials_of_open_questions(
            build_folder_from_plan(path, plan, records, {}), plan.experiment.repeats
        )


def make_plan_reports(
    path: Path, plan: Plan, records: Sequence[Record], skips: Mapping[str, str]
) -> list[Report]:
    """The tables of one plan's own trials. The folder may hold more: `gpubench table` shows them all."""
    with pause_garbage_collector():
        folder = build_folder_from_plan(path, plan, records, skips)
        return [make_table_report(folder, table) for table in folder.tables]


def make_live_report(
    path: Path, plan: Plan, records: Sequence[Record], skips: Mapping[str, str]
) -> LiveReport:
    """The first of these tables for whoever looks on, from before its first trial."""
    with pause_garbage_collector():
        folder = build_folder_from_plan(path, plan, records, skips)
        table = folder.tables[0]
        members = folder.members
        rows = dict(zip(folder.runs["trial_id"].loc[members["run"]], members["row"].tolist(), strict=True))
        return LiveReport(make_table_report(folder, table), rows)


def write_folder_tables(
    results: Results, records: Sequence[Record], skips: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Write all tables of a folder. `tell`: is given a line for each plan that can't be read.

    Raises UnusableError for a table that can't be written.
    """
    if not records and not read_stored_plans(results, records)[0]:
        return  # a sweep that broke off before it had anything
    with pause_garbage_collector():
        folder = build_folder_from_records(results, records, [], tell, skips)
        reports = [make_table_report(folder, table) for table in folder.tables]
    write_tables(results, folder, reports)
