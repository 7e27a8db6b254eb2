"""What the committed folders answer: figures that were worked out by hand or by another program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import committed
import pytest

from gpubench.analyze.folder import make_table_rows
from gpubench.analyze.questions import answer_table_questions
from gpubench.analyze.table_rows import TableRows
from gpubench.core.claims import Claim
from gpubench.core.findings import (
    BatchSizeFinding,
    DevicesFinding,
    Finding,
    NetworkSizeFinding,
    SharingFinding,
    TargetFinding,
    VersusFinding,
)
from gpubench.core.report import Report

FindingKind = TypeVar("Kind", bound=Finding)


@cache
def answer(folder: str, table: str) -> tuple[TableRows, tuple[Finding, ...]]:
    (found,) = (each for each in committed.load(folder).tables if each.name == table)
    rows = make_table_rows(committed.load(folder), found)
    return rows, tuple(answer_table_questions(rows))


def find(kind: type[FindingKind], folder: str, table: str) -> tuple[TableRows, list[FindingKind]]:
    rows, findings = answer(folder, table)
    return rows, [finding for finding in findings if isinstance(finding, kind)]


def ratios(claims: Sequence[Claim]) -> list[float]:
    return [math.exp(claim.evidence.center) for claim in claims]


def words(claims: Sequence[Claim]) -> list[str]:
    return [claim.decided.word for claim in claims]


def test_ddp_against_dp_is_sure_at_every_batch_size() -> None:
    _, (finding,) = find(VersusFinding, "h200x2-2026", "mobilenet_v2-2gpu")
    assert (finding.value, finding.baseline, finding.word) == ("ddp", "dp", "sure")
    assert ratios(finding.claims) == pytest.approx([4.450, 4.435, 3.780, 2.460, 1.461, 1.277], abs=1e-3)
    assert words(finding.claims) == ["sure"] * 6


def test_two_gpus_against_one() -> None:
    rows, (ddp, dp) = find(DevicesFinding, "h200x2-2026", "mobilenet_v2-2gpu")
    assert (ddp.strategy, dp.strategy) == ("ddp", "dp")
    same = [each for each in ddp.speed_ups if not each.same_batch_a_device]
    assert [rows.get(each.claim.candidate, "batch_size") for each in same] == [16, 32, 64, 128, 256, 512]
    assert ratios([each.claim for each in same]) == pytest.approx(
        [0.782, 0.944, 1.598, 1.641, 1.828, 1.860], abs=1e-3
    )
    assert words([each.claim for each in same]) == ["unknown", "unknown", "sure", "sure", "sure", "sure"]
    assert (same[3].claim.decided.low, same[3].claim.decided.high) == pytest.approx((1.516, 1.777), abs=1e-3)
    assert [each.efficiency for each in same[2:]] == pytest.approx([0.80, 0.82, 0.91, 0.93], abs=5e-3)
    weak = [each.claim for each in ddp.speed_ups if each.same_batch_a_device]
    assert ratios(weak) == pytest.approx([1.509, 1.592, 1.772, 1.672, 1.535], abs=1e-3)
    assert words(weak) == ["likely", "sure", "sure", "sure", "sure"]


def test_from_what_network_size_two_gpus_are_faster() -> None:
    rows, (finding,) = find(NetworkSizeFinding, "h200x2-network-size-2026", "network-size")
    assert finding.first_faster is not None
    assert (rows.get(finding.first_faster, "model"), finding.word) == ("mobilenet_v2", "sure")
    assert finding.gmacs == pytest.approx(0.2995, abs=1e-4)
    assert words(finding.claims) == ["sure"] * 7 + ["unknown"] + ["sure"] * 5
    assert [claim.decided.direction for claim in finding.claims] == ["less"] * 7 + ["more"] * 6
    half = [(claim.decided.p or 0.0) / 2 for claim in finding.claims[:8]]  # one-sided, as each end is tested
    assert half == pytest.approx([0.0149, 0.0099, 0.0022, 0.0055, 0.0197, 0.0005, 0.0056, 0.138], abs=5e-4)
    first = finding.claims[8].decided
    assert (first.low, first.high) == pytest.approx((1.402, 1.594), abs=1e-3)


def test_copies_in_rounds_gain_much_or_nothing() -> None:
    _, (finding,) = find(SharingFinding, "h200-copies-rounds-2026", "mobilenet_v2-copies")
    assert [group.overlaps for group in finding.groups] == [("some", "full"), ("none",)] * 2
    assert [group.gains for group in finding.groups] == [True, False] * 2
    assert [group.work for group in finding.groups] == pytest.approx([1.900, 1.001, 2.949, 1.001], abs=1e-3)
    assert [group.bound for group in finding.groups] == pytest.approx([1.602, 1.083, 2.482, 1.083], abs=1e-3)
    assert {group.word for group in finding.groups} == {"sure"}


@pytest.mark.parametrize(
    ("folder", "table", "words"),
    [
        ("h200-copies-rounds-2026", "mobilenet_v2-copies", ["unknown", "none", "unknown", "none"]),
        ("h200-pairs-2026", "batch-size", ["unknown", "unknown", "unknown"]),
        ("h200-pairs-rounds-2026", "batch-size", ["unknown", "unknown", "unknown"]),
    ],
)
def test_the_column_says_no_more_of_sharing_than_the_finding(
    folder: str, table: str, words: list[str]
) -> None:
    rows, (finding,) = find(SharingFinding, folder, table)
    for group, word in zip(finding.groups, words, strict=True):
        assert rows.summary.loc[list(group.rows), "sharing"].tolist() == [word] * group.jobs
    assert rows.summary["sharing"].count() == rows.is_job.sum()


def test_pairs_in_rounds_of_which_a_time_alone_is_spoilt() -> None:
    rows, (finding,) = find(SharingFinding, "h200-pairs-rounds-2026", "batch-size")
    first, second, third = finding.groups
    assert first.spoilt_by == second.spoilt_by == second.rows[0]
    assert rows.get(second.rows[0], "batch_size") == 16
    assert [group.word for group in finding.groups] == ["unknown", "unknown", "sure"]
    assert (third.overlaps, third.spoilt_by) == (("none", "some"), None)
    assert third.work == pytest.approx(0.983, abs=1e-3)
    assert third.bound == pytest.approx(1.150, abs=1e-3)


@pytest.mark.parametrize(
    ("folder", "table", "work", "overlaps"),
    [
        (
            "h200x4-groups-2026", "mobilenet_v2-together", [1.247, 1.551, 1.558, 2.394],
            ["none some", "none some", "none some", "some full"],
        ),
        ("h200-pairs-2026", "batch-size", [1.406, 1.448, 0.927], ["none some full"] * 2 + ["none some"]),
        ("titan-xp-2021", "mobilenet_v2-4gpu-together", [1.344], ["none some"]),
    ],
)  # fmt: skip
def test_groups_of_one_process(folder: str, table: str, work: list[float], overlaps: list[str]) -> None:
    _, (finding,) = find(SharingFinding, folder, table)
    assert [group.work for group in finding.groups] == pytest.approx(work, abs=1e-3)
    assert [" ".join(group.overlaps) for group in finding.groups] == overlaps
    assert all((group.word == "unknown") == (len(group.overlaps) == 3) for group in finding.groups)


@pytest.mark.parametrize(
    ("folder", "table"),
    [
        ("h200-copies-2026", "batch-size"),  # out of memory
        ("titan-xp-2021", "mobilenet_v2-separate-gpus-together-v11"),  # the log gives no times
    ],
)
def test_groups_without_times_have_no_work(folder: str, table: str) -> None:
    _, (finding,) = find(SharingFinding, folder, table)
    assert [(group.work, group.word) for group in finding.groups] == [(None, "unknown")]


@pytest.mark.parametrize(
    ("folder", "table", "rates", "rate_words", "cpu"),
    [
        ("h200-cpus-2026", "batch-size", [0.912, 2.098], ["unknown", "likely"], [0.558, 0.419]),
        (
            "h200x4-groups-2026", "mobilenet_v2-together", [0.933, 0.913, 1.513, 0.986, 1.002, 1.163],
            ["unknown", "unknown", "likely", "unknown", "unknown", "unknown"],
            [0.747, 0.665, 0.496, 0.496, 0.459, 0.481],
        ),
        ("titan-xp-2021", "mobilenet_v2-v7-v11", [1.097, 1.125, 1.132, 1.299], ["unknown"] * 4,
         [0.306, 0.309, 0.297, 0.251]),
    ],
)  # fmt: skip
def test_images_that_were_resized_before(
    folder: str, table: str, rates: list[float], rate_words: list[str], cpu: list[float]
) -> None:
    _, (finding,) = find(VersusFinding, folder, table)
    assert (finding.field, finding.value, finding.baseline) == ("variant", "pre-resized", "crop-resize")
    assert ratios(finding.claims) == pytest.approx(rates, abs=1e-3)
    assert words(finding.claims) == rate_words
    assert ratios(finding.cpu_claims) == pytest.approx(cpu, abs=1e-3)
    assert [word == "likely" for word in words(finding.cpu_claims)] == [ratio < 1 / 1.4 for ratio in cpu]


def test_who_reaches_60_pct_first_over_three_seeds() -> None:
    rows, (finding,) = find(TargetFinding, "h200-target-2026", "mobilenet_v2-until-top1")
    assert [rows.get(row, "batch_size") for row in finding.order] == [128, 256, 64, 32]
    assert [rows.get(row, "batch_size") for row in finding.as_fast] == [256]
    assert [rows.get(row, "batch_size") for row in finding.costlier] == [256]
    words = (finding.word, finding.energy_word, finding.costlier_word)
    assert words == ("likely", "unknown", "likely")
    assert finding.are_others_alike


# ---- which batch size ----


def batch_size(folder: str, table: str) -> tuple[Report, BatchSizeFinding]:
    report = committed.load_tables(folder)[table]
    (finding,) = (each for each in report.findings if isinstance(each, BatchSizeFinding))
    return report, finding


def get_batch(report: Report, row: int | None) -> Any:
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
    assert get_batch(report, finding.choice.row) == batch
    assert finding.label == label
    assert finding.word == word
    assert [get_batch(report, row) for row in finding.as_fast] == as_fast


def test_the_bound_of_a_choice_and_what_the_fastest_costs() -> None:
    report, finding = batch_size("h200x2-2026", "mobilenet_v2-2gpu")
    choice = finding.choice
    assert choice is not None
    assert {get_batch(report, row): gain for row, gain in choice.gains.items()} == pytest.approx(
        {256: 0.1459, 64: 0.1112}, abs=1e-4
    )
    assert choice.bound == max(choice.gains.values())
    assert get_batch(report, finding.fastest) == 256
    assert finding.speed_gain == pytest.approx(0.0188, abs=1e-4)
    assert finding.memory_ratio == pytest.approx(12416 / 7142)


def test_where_memory_x_time_is_least() -> None:
    report, finding = batch_size("h200x2-2026", "mobilenet_v2-2gpu")
    ranges = {
        (least.label["gpus"], least.label["strategy"]): (
            get_batch(report, least.low),
            get_batch(report, least.high),
        )
        for least in finding.least_cost
    }
    assert ranges == {(1, "single"): (16, 32), (2, "dp"): (32, 256), (2, "ddp"): (16, 64)}
    assert {least.word for least in finding.least_cost} == {"sure"}


def test_sizes_that_ran_out_of_memory_are_one_line() -> None:
    report, finding = batch_size("h200x4-2026", "mobilenet_v2-4gpu")
    assert get_batch(report, finding.out_of_memory) == 512
    last = report.groups[0].rows[-1]
    assert (last.status, last.cells[0].value, last.skipped) == ("oom", 512, (1024, 2048))
    (answer,) = (row for row in report.rows if row.is_answer)
    assert answer.cells[0].value == 128


def test_a_target_leaves_batch_sizes_by_rate_untold() -> None:
    (report,) = committed.load_tables("h200-until-top1-2026").values()
    assert not any(isinstance(finding, BatchSizeFinding) for finding in report.findings)


def test_rows_of_one_process_borrow_the_noise_of_such_rows() -> None:
    report, _ = batch_size("h200x4-2026", "resnet34-4gpu")
    (warned,) = (each for each in report.warnings if each.code == "one-process")
    assert warned.figures == pytest.approx({"noise": 0.4})
    (first,) = (each for each in report.warnings if each.code == "first-batch")
    assert first.figures["low"] == pytest.approx(0.118, abs=0.0005)
    assert first.figures["high"] == pytest.approx(0.850, abs=0.0005)
