"""The questions that a table can answer, an entry each, in the order in which a plan's own question is looked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpubench.analyze import batch_size
from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.report import build_report
from gpubench.analyze.view import View
from gpubench.core.findings import Finding
from gpubench.core.report import Report

Answer = Callable[[View], Sequence[Finding]]
"""A question's findings in a table; none where it is not asked there."""

QUESTIONS: Mapping[str, Answer] = {
    "batch_size": batch_size.answer,
}


def report_folder(folder: Folder) -> list[Report]:
    """A report a table."""
    return [report_table(View(folder=folder, table=table)) for table in folder.tables]


def report_table(view: View) -> Report:
    """The report of one table, with the findings of all questions that it answers."""
    findings = [finding for answer in QUESTIONS.values() for finding in answer(view)]
    return build_report(view, findings)


def load_reports(path: Path, tell: Callable[[str], None]) -> list[Report]:
    """The reports of a results folder. `tell`: is given a line for each record or plan that can't be read."""
    return report_folder(read_folder(path, tell))
