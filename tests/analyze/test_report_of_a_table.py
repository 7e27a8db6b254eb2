"""The report of a table: what weakens its answers, and lines of groups that have no figures."""

from __future__ import annotations

import math
from typing import Any

import committed
import pandas as pd
import pytest
from made_up_tables import make_table

from gpubench.analyze.folder import Table
from gpubench.analyze.grid import (
    ALL_COLUMNS,
    COLUMNS,
    SOURCES,
    UNMEASURED,
    build_job_groups,
    choose_figure_columns,
    find_unmeasured_status,
)
from gpubench.analyze.report import attach_warning_codes, collect_warnings, find_evidence_warnings
from gpubench.analyze.sharing import make_claims, make_findings
from gpubench.core.findings import DevicesFinding, MeasuredJobGroup, SharingFinding
from gpubench.core.report import ReportWarning
from gpubench.render import words
from gpubench.render.json import report_to_data
from gpubench.schema.codes import REASONS
from gpubench.stats.decisions import decide_claims

SEED = {"until_top1": 60.0, "epoch_time_s": [1.0, 1.1, 1.2]}


def describe_table(kind: str = "steady rate", **facts: Any) -> Table:
    return Table(
        name="t", experiment="t", kind=kind, question="", axes=(), axis=None, tied=(), varied=(), fixed={}, rows=(),
        runs=(), **facts,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "code", "warned"),
    [
        ([{"epoch_time_s": [1.0]}, {"status": "oom"}], "one-process", (10,)),
        ([{"epoch_time_s": [1.0]}, {"epoch_time_s": [1.0, 1.1]}], "single-process", (10,)),
        ([{"epoch_time_s": [1.0, 1.1]}], None, ()),
        ([{**SEED, "repeat": [0, 0, 0]}], "one-seed", (10,)),
        ([{**SEED, "repeat": [0, 1, 2]}], None, ()),
    ],
)
def test_rows_of_one_process_or_seed(
    rows: list[dict[str, Any]], code: str | None, warned: tuple[int, ...]
) -> None:
    warnings = find_evidence_warnings(describe_table(), make_table(rows, noise=math.log(1.15)))
    assert [(each.code, each.rows) for each in warnings] == ([(code, warned)] if code else [])
    for each in warnings:
        assert each.figures.get("noise", 0.15) == pytest.approx(0.15)
        assert each.code in {**words.TABLE_WARNINGS, **words.ROW_WARNINGS}


def test_a_first_batch_that_is_much_of_an_epoch_is_told_by_its_share() -> None:
    rows = [
        {"epoch_time_s": [4.0, 4.0], "first_batch_s": first, "batch_size": size}
        for size, first in ((16, 2.0), (32, 1.0), (64, 0.1))
    ]
    (warning,) = find_evidence_warnings(describe_table("whole epochs"), make_table(rows))
    assert (warning.code, warning.rows, warning.figures) == (
        "first-batch",
        (10, 11),
        {"low": 0.25, "high": 0.5},
    )


def test_tries_of_memory_need_no_further_processes_and_tell_nothing_of_sharing() -> None:
    table = make_table([{"epoch_time_s": [1.0], "group": "two", "unit": 0}], is_of_tries=True)
    assert find_evidence_warnings(describe_table(is_of_tries=True), table) == []
    assert (make_claims(table), make_findings(table, [])) == ([], [])


def test_a_group_without_a_time_is_told_by_how_it_ended() -> None:
    jobs = pd.DataFrame(
        {
            "status": ["skipped", "oom"], "reason": ["job 2 ran out of memory", "CUDA"], "repeats": [0, 0],
            "epoch_time_s": math.nan, "slowdown": math.nan,
        },
        index=[4, 5],
    )  # fmt: skip
    group = MeasuredJobGroup(
        name="two", rows=(4, 5), jobs=2, work=None, bound=None, is_lower_bound=False, overlaps=(), word="unknown",
        gains=None,
    )  # fmt: skip
    finding = SharingFinding(word="unknown", groups=(group,))
    (lines,) = build_job_groups(jobs, finding)
    (line,) = lines.rows
    assert (line.status, line.reason) == ("oom", "CUDA")
    assert [cell.value for cell in line.cells] == ["two", None, None, None, None]
    (lines,) = build_job_groups(
        jobs.assign(status="ok", repeats=[0, 1], epoch_time_s=[math.nan, 2.0]), finding
    )
    assert (lines.rows[0].status, lines.rows[0].cells[1].value) == ("ok", (None, 2.0))


def test_a_table_without_any_figure_has_a_column_for_how_its_rows_ended() -> None:
    names = dict.fromkeys(name for columns in COLUMNS.values() for name in columns)
    empty = pd.DataFrame({SOURCES.get(name, name): [math.nan] for name in (*names, *ALL_COLUMNS)})
    for question in COLUMNS:
        for has_all in (False, True):
            assert choose_figure_columns(empty, question, has_all=has_all) == UNMEASURED


def test_a_finding_has_the_warnings_that_touch_its_rows() -> None:
    warnings = [
        ReportWarning(code="throttled", rows=(10, 12)),
        ReportWarning(code="dp", rows=(11,)),
        ReportWarning(code="gaps", rows=(12,)),
    ]
    findings = [DevicesFinding(word="sure", rows=rows) for rows in ((10, 13), (12,), (13,))]
    assert [attach_warning_codes(finding, warnings).warnings for finding in findings] == [
        ("throttled",), ("throttled", "gaps"), (),
    ]  # fmt: skip


def test_what_single_rounds_claim_of_jobs_is_not_told_beside_a_finding_that_knows_less() -> None:
    rows = [
        {"trial_id": "a", "epoch_time_s": [0.4, 1.0, 1.1]},
        *(
            {
                "group": "g", "unit": 0, "jobs_of_group": 2, "solo_id": "a", "trial_id": name,
                "epoch_time_s": [2.6, 0.9, 0.5], "doubts": "beyond-turns+throttled",
            }
            for name in ("first", "second")
        ),
    ]  # fmt: skip
    table = make_table(rows)
    (finding,) = make_findings(table, decide_claims(make_claims(table)))
    assert (finding.word, finding.groups[0].overlaps) == ("unknown", ("none", "some", "full"))
    codes = [
        warned.code for warned in collect_warnings(describe_table(), table, ("epoch_time_s", "slowdown"))
    ]
    assert codes == ["throttled"]


def test_every_warning_of_a_committed_report_is_in_the_findings_about_its_rows() -> None:
    for report in committed.load_tables("h200x4-2026").values():
        for finding in report.findings:
            touching = {w.code for w in report.warnings if set(w.rows) & set(finding.rows)}
            assert set(finding.warnings) == touching != set()


@pytest.mark.slow
def test_an_empty_figure_has_the_reason_that_its_records_hold() -> None:
    empty, reasons = [], {}
    for report in committed.load_tables("titan-xp-2021").values():
        assert report.facts.is_published
        ended = {row for line in report.rows if line.status == "ok" for row in line.labels}
        empty += [
            row for row in report.figures if report.figures[row]["gpu_mem_mib"] is None and row in ended
        ]
        reasons |= {row: why["gpu_mem_mib"] for row, why in report.missing.items() if "gpu_mem_mib" in why}
    assert sorted(reasons) == sorted(empty) != []
    records = committed.load("titan-xp-2021").records
    stored = [record.missing for record in records if record.status == "ok"]
    assert set(reasons.values()) == {missing["gpu_mem_mib"] for missing in stored if "gpu_mem_mib" in missing}
    (report,) = committed.load_tables("h200x2-2026").values()
    data = report_to_data(report)["rows"]
    assert {row["missing"]["time_to_top1_s"] for row in data} == {REASONS["no-target"]}
    assert not any("images_per_s" in row["missing"] for row in data)


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"status": "missing"}, "missing"),
        ({"status": "missing", "elsewhere": True, "further_rounds": 2}, "elsewhere"),
        ({"status": "missing", "elsewhere": False, "further_rounds": 2}, "unread"),
        ({"status": "skipped", "elsewhere": True, "further_rounds": 2}, "skipped"),
    ],
)
def test_a_row_that_is_missing_may_have_been_measured(row: dict[str, Any], status: str) -> None:
    assert find_unmeasured_status(row) == status
    assert status == "skipped" or status in words.STATUSES
