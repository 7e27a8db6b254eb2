"""What a sweep asks of its results: rows, tables, open questions, and what a group's trials alone foretell.

Of the sweep it alone imports what works on frames, which takes most of a second: whoever needs it imports it when it is
called, and a sweep that runs does so before its first trial, never while one is measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpubench.analyze.folder import Folder, Table, analyze_plan, analyze_records, complete_rows
from gpubench.analyze.looks import list_open_questions
from gpubench.analyze.questions import answer_table, report_table
from gpubench.analyze.report import build_report
from gpubench.analyze.table_rows import collect_rows
from gpubench.analyze.view import WHOLE, View
from gpubench.basics.collector import collector_paused
from gpubench.core.report import Report
from gpubench.plan.plan import Plan
from gpubench.render.files import write_tables
from gpubench.render.live import Standing
from gpubench.results.store import Results
from gpubench.schema.record import Record

__all__ = ["complete_rows", "find_open_questions", "report_plan", "stand", "write_folder"]
AT_FIRST = View(added=("images_per_s", "epoch_time_s"))
"""Columns of a table before anything of it is measured."""


def find_open_questions(path: Path, plan: Plan, records: Sequence[Record]) -> list[list[set[str]]] | None:
    """`list_open_questions` of one plan, by these records alone."""
    with collector_paused():
        return list_open_questions(analyze_plan(path, plan, records, {}), plan.experiment.repeats)


def report_plan(path: Path, plan: Plan, records: Sequence[Record], skips: Mapping[str, str]) -> list[Report]:
    """The tables of one plan's own trials. The folder may hold more: `gpubench table` shows them all."""
    with collector_paused():
        folder = analyze_plan(path, plan, records, skips)
        return [report_table(folder, table) for table in folder.tables]


def stand(path: Path, plan: Plan, records: Sequence[Record], skips: Mapping[str, str]) -> Standing | None:
    """The first of these tables for whoever looks on, from before its first trial; None without any."""
    with collector_paused():
        folder = analyze_plan(path, plan, records, skips)
        if not folder.tables:
            return None
        table = folder.tables[0]
        members = folder.members
        rows = dict(zip(folder.runs["trial_id"].loc[members["run"]], members["row"].tolist(), strict=True))
        return Standing(_report_early(folder, table), rows)


def _report_early(folder: Folder, table: Table) -> Report:
    rows = collect_rows(folder, table)
    findings = answer_table(rows)
    is_measured = bool((rows.summary["repeats"] > 0).any())
    return build_report(table, rows, findings, WHOLE if findings or is_measured else AT_FIRST)


def write_folder(results: Results, records: Sequence[Record], skips: Mapping[str, str]) -> list[str]:
    """Write all tables of a folder; what is wrong with plans that can't be read, a line each.

    Raises UnusableError for a table that can't be written.
    """
    problems: list[str] = []
    if not records and not any(results.folder.glob("plans/*")):
        return problems  # a sweep that broke off before it had anything
    with collector_paused():
        folder = analyze_records(results, records, [], problems.append, skips)
        reports = [report_table(folder, table) for table in folder.tables]
    write_tables(results, folder, reports)
    return problems
