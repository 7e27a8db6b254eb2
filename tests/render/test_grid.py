"""Cells of tables as text."""

from __future__ import annotations

import pytest
import reports
from reports import make_column

from gpubench.core.report import Cell
from gpubench.render.grid import GridCell, make_cell, make_grid


@pytest.mark.parametrize(
    ("name", "cell", "text"),
    [
        ("epoch_time_s", Cell(value=4.9, low=4.9 / 1.38, high=4.9 * 1.38), "4.90 ±38%"),
        ("epoch_time_s", Cell(value=4.0, low=2.0, high=8.0), "4.00 ±100%"),
        ("epoch_time_s", Cell(value=4.0, low=1.99, high=8.0), "4.00 ±100+%"),
        ("speedup", Cell(value=20_000.0, low=0.01, high=9_999.6), "20,000.0 (0.01–9,999.6)"),
        ("speedup", Cell(value=1.0, low=0.001, high=float("inf"), word="unknown"), "1.00 (0.001–∞) ?"),
        ("epoch_time_s", Cell(value=2.85, low=2.84, high=2.86), "2.85 ±0.4%"),
        ("epoch_time_s", Cell(value=2.85, low=2.85 / 1.0004, high=2.85 * 1.0004), "2.85 ±0.04%"),
        ("epoch_time_s", Cell(value=1.0, low=-0.5, high=2.5), "1.00 (−0.500–2.50)"),
        ("speedup", Cell(value=1.171, low=0.74, high=1.87, word="unknown"), "1.17 (0.74–1.87) ?"),
        ("work", Cell(value=1.9, low=1.59, word="sure"), "1.90 (≥ 1.59)"),
        ("work", Cell(value=1.0, high=1.09, word="sure"), "1.00 (≤ 1.09)"),
        ("overlap", Cell(value=("some", "full")), "some or full"),
        ("overlap", Cell(value=("none", "some", "full"), word="unknown"), "unknown"),
        ("overlap", Cell(value="full"), "full"),
        ("slowdown", Cell(value=(0.78, 1.41)), "0.78 / 1.41"),
        ("slowdown", Cell(value=(1.0, 1.1)), "1.00–1.10"),
        ("slowdown", Cell(value=(1.0, 1.11)), "1.00 / 1.11"),
        ("slowdown", Cell(value=(2.0, None)), "2.00 / –"),
        ("slowdown", Cell(value=(2.0, 2.001)), "2.00"),
        ("slowdown", Cell(value=(0.0, 0.5)), "0.00 / 0.50"),
        ("epoch_time_s", Cell(value=1.0, low=0.0, high=2.5), "1.00 (0–2.50)"),
        ("gpu_mem_growth_pct", Cell(value=-5.2), "−5 %"),
        ("strong_efficiency_pct", Cell(value=93.0), "93 %"),
        ("memory_gib", Cell(value=42.31), "42.3"),
        ("data_wait_pct", Cell(value=8.52), "8.5"),
        ("images_per_s", Cell(value=6097.3), "6,097"),
        ("images_per_s", Cell(value=float("nan")), "–"),
        ("batch_size", Cell(value=1024), "1,024"),
        ("gmacs_per_image", Cell(value=0.30), "0.30"),
        ("cudnn_benchmark", Cell(value=True), "1"),
        ("model", Cell(value="a\x1b[1mb"), "ab"),
        ("epoch_time_s", Cell(value=None), ""),
        ("epoch_time_s", Cell(value=None, status="oom"), "out of memory"),
    ],
)
def test_a_value_as_text(name, cell, text):
    assert make_cell(make_column(name), cell).text == text


@pytest.mark.parametrize(
    ("name", "value", "word", "tone"),
    [
        ("speedup", 1.2, "likely", "better"),
        ("speedup", 0.8, "sure", "worse"),
        ("speedup", 1.2, "unknown", "plain"),
        ("speedup", 1.2, None, "plain"),
        ("work", 1.9, "sure", "better"),
        ("epoch_time_s", 1.2, "sure", "plain"),
    ],
)
def test_colour_means_better_or_worse_alone(name, value, word, tone):
    assert make_cell(make_column(name), Cell(value=value, word=word)).tone == tone


def test_jobs_are_named_where_the_finding_knows_them():
    rows = make_grid(reports.pairs()).rows
    assert [row.cells[0] for row in rows] == [
        GridCell("mobilenet_v2 16 & resnet50 64"),
        GridCell("resnet50 64 & mobilenet_v2 256"),
        GridCell("2 × batch 1,408"),
    ]
    assert rows[2].ending == "out of memory"


def test_a_warning_that_all_rows_of_a_group_have_stands_at_its_head():
    first, second = make_grid(reports.one_process()).groups
    assert (first.head, first.is_warned, second.head, second.is_warned) == ("ddp", False, "dp", True)
    assert not any(row.is_warned for row in second.rows)
    (group,) = make_grid(reports.batch_sizes()).groups
    assert [row.is_warned for row in group.rows] == [True, *[False] * 5]
    assert [row.is_answer for row in group.rows] == [False, False, False, True, False, False]
