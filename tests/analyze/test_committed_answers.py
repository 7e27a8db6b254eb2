"""What the committed folders answer: the figures of each first finding, worked out by hand or by another program."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.core.findings import BatchSizeFinding
from gpubench.core.report import Report

RESULTS = Path(__file__).parents[2] / "results"


@cache
def reports(folder: str) -> dict[str, Report]:
    problems: list[str] = []
    loaded = make_folder_reports([read_folder(RESULTS / folder, problems.append)])
    assert problems == []
    return {report.name: report for report in loaded}


def batch_size(folder: str, table: str) -> tuple[Report, BatchSizeFinding]:
    report = reports(folder)[table]
    (finding,) = (each for each in report.findings if isinstance(each, BatchSizeFinding))
    return report, finding


def name(report: Report, row: int | None) -> Any:
    return None if row is None else report.labels[row]["batch_size"]


@pytest.mark.parametrize(
    ("folder", "table", "batch", "label", "word", "as_fast"),
    [
        ("h200x2-2026", "mobilenet_v2-2gpu", 128, {"gpus": 2, "strategy": "ddp"}, "sure", [64, 256]),
        ("h200x4-2026", "resnet34-4gpu", 256, {"strategy": "ddp"}, "likely", [64, 128, 512, 1024]),
        ("h200x4-2026", "mobilenet_v2-4gpu", 128, {"strategy": "ddp"}, "likely", [256]),
        ("titan-xp-2021", "resnet34-4gpu", 128, {}, "likely", [64, 256, 512]),
        ("titan-xp-2021", "mobilenet_v2-4gpu", 128, {}, "likely", [64, 256]),
        ("titan-xp-2021", "mobilenet_v2-gpus", 64, {"gpus": 1, "strategy": "single"}, "unknown", [16, 32]),
    ],
)
def test_the_batch_size_that_is_chosen(
    folder: str, table: str, batch: int, label: dict[str, object], word: str, as_fast: list[int]
) -> None:
    report, finding = batch_size(folder, table)
    assert finding.choice is not None
    assert name(report, finding.choice.row) == batch
    assert finding.label == label
    assert finding.word == word
    assert [name(report, row) for row in finding.as_fast] == as_fast


def test_the_bound_of_a_choice_and_what_the_fastest_costs() -> None:
    report, finding = batch_size("h200x2-2026", "mobilenet_v2-2gpu")
    choice = finding.choice
    assert choice is not None
    assert {name(report, row): gain for row, gain in choice.gains.items()} == pytest.approx(
        {256: 0.1459, 64: 0.1112}, abs=1e-4
    )
    assert choice.bound == max(choice.gains.values())
    assert name(report, finding.fastest) == 256
    assert finding.speed_gain == pytest.approx(0.0188, abs=1e-4)
    assert finding.memory_ratio == pytest.approx(12416 / 7142)


def test_where_memory_x_time_is_least() -> None:
    report, finding = batch_size("h200x2-2026", "mobilenet_v2-2gpu")
    ranges = {
        (least.label["gpus"], least.label["strategy"]): (name(report, least.low), name(report, least.high))
        for least in finding.least_cost
    }
    assert ranges == {(1, "single"): (16, 32), (2, "dp"): (32, 256), (2, "ddp"): (16, 64)}
    assert {least.word for least in finding.least_cost} == {"sure"}


def test_sizes_that_ran_out_of_memory_are_one_line() -> None:
    report, finding = batch_size("h200x4-2026", "mobilenet_v2-4gpu")
    assert name(report, finding.out_of_memory) == 512
    last = report.groups[0].rows[-1]
    assert (last.status, last.cells[0].value, last.skipped) == ("oom", 512, (1024, 2048))
    (answer,) = (row for row in report.rows if row.is_answer)
    assert answer.cells[0].value == 128


def test_a_target_leaves_batch_sizes_by_rate_untold() -> None:
    (report,) = reports("h200-until-top1-2026").values()
    assert not any(isinstance(finding, BatchSizeFinding) for finding in report.findings)


def test_rows_of_one_process_borrow_the_noise_of_such_rows() -> None:
    report, _ = batch_size("h200x4-2026", "resnet34-4gpu")
    (warned,) = (each for each in report.warnings if each.code == "one-process")
    assert warned.figures == pytest.approx({"noise": 0.4})
    (first,) = (each for each in report.warnings if each.code == "first-batch")
    assert first.figures["low"] == pytest.approx(0.118, abs=0.0005)
    assert first.figures["high"] == pytest.approx(0.850, abs=0.0005)
