"""The questions that a table can answer, an entry each, and which of them its plan asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gpubench.analyze import batch_size, devices, network_size, power_limit, sharing, target, top1, versus
from gpubench.analyze.folder import Folder, Table, make_table_rows
from gpubench.analyze.report import build_report
from gpubench.analyze.table_rows import TableRows
from gpubench.analyze.view import WHOLE, TableView
from gpubench.core.claims import Claim
from gpubench.core.findings import (
    DevicesFinding,
    Finding,
    LimitAim,
    NetworkSizeFinding,
    TargetFinding,
    VersusFinding,
)
from gpubench.core.report import Report
from gpubench.stats.decisions import decide_claims


class Question(Protocol):
    """The file of a question."""

    def make_claims(self, rows: TableRows, /) -> list[Claim]: ...

    def make_findings(self, rows: TableRows, claims: Sequence[Claim], /) -> Sequence[Finding]:
        """Of decided claims; none where the question is not asked."""


QUESTIONS: Sequence[Question] = (
    target, sharing, network_size, versus, power_limit, batch_size, devices, top1,
)  # fmt: skip
ANY_LIMIT = LimitAim()
WAYS_ANSWERED_FIRST = ("variant", "precision", "execution", "optimizer")
"""Where one of these varies, that is what the plan asks; other ways of working are told after what they serve."""


def answer_table_questions(rows: TableRows) -> list[Finding]:
    """The findings of all questions of one table, that of the question that its plan asks first.

    Who trains to a target asks for it; who runs groups of jobs, whether they may share; several networks ask from what
    size more devices are faster. Then ways of working, power limits, batch sizes, devices, other ways, top-1: as
    QUESTIONS stand.
    """
    ends_at_target = rows.is_to_target & (rows.summary["kind"] == "whole run").to_numpy()
    findings = [
        finding
        # Whole runs that end at a target are of unlike amounts of work: who is faster can't be told from them.
        for question in ([target] if ends_at_target.any() else QUESTIONS)
        for finding in question.make_findings(rows, decide_claims(question.make_claims(rows)))
    ]
    if any(isinstance(finding, NetworkSizeFinding) for finding in findings):
        # Its speed-ups are those of more devices.
        findings = [finding for finding in findings if not isinstance(finding, DevicesFinding)]
    return sorted(
        findings,
        key=lambda finding: isinstance(finding, VersusFinding) and finding.field not in WAYS_ANSWERED_FIRST,
    )


def make_table_report(
    folder: Folder, table: Table, view: TableView = WHOLE, limit_aim: LimitAim = ANY_LIMIT
) -> Report:
    """The report of one table. `view`: which columns and rows of it are shown."""
    rows = replace(make_table_rows(folder, table), limit_aim=limit_aim)
    report = build_report(table, rows, answer_table_questions(rows), view)
    if not any(isinstance(finding, TargetFinding) for finding in report.findings):
        return report
    return replace(report, training=target.collect_training_curves(folder.records, rows.runs))


def make_folder_reports(
    folders: Sequence[Folder], view: TableView = WHOLE, limit_aim: LimitAim = ANY_LIMIT
) -> list[Report]:
    """A report a table of these folders; of several, each under its folder's name as well."""
    reports = []
    for folder in folders:
        for table in folder.tables:
            report = make_table_report(folder, table, view, limit_aim)
            name = report.name if len(folders) == 1 else f"{folder.name}: {report.name}"
            reports.append(replace(report, name=name, problems=folder.problems))
    return reports


def find_best_configuration(folder: Folder, report: Report) -> Mapping[str, Any] | None:
    """The configuration that the first finding with a recommendation names: the fields of its trial as they were asked
    for, None for those that were left to the machine. None where nothing is recommended.

    `report`: of a table of this folder.
    """
    row = report.recommended_row
    if row is None:
        return None
    run = folder.select_ok_runs_of_row(row).iloc[0]
    # The images of a published log are nobody's to name.
    return {**run["asked"], "data": run["asked"].get("data") if run["source"] == "measured" else None}
