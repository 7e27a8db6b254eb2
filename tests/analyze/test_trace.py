"""The readings of one attempt as a picture shows them: means and bands, gaps, phases."""

from __future__ import annotations

import committed
import pytest

from gpubench.analyze.trace import (
    MOST_POINTS,
    build_time_trace,
    compute_cpu_use,
    make_recommended_trace,
    thin_readings,
)
from gpubench.results.samples_file import read_samples_file
from gpubench.results.store import Results


def test_several_gpus_are_a_mean_and_a_band() -> None:
    lines = [[(second + 0.5, 40.0) for second in range(10)], [(second + 0.5, 80.0) for second in range(10)]]
    points = thin_readings(lines)
    assert [(point.mean, point.low, point.high) for point in points] == [(60.0, 40.0, 80.0)] * 10
    assert {point.piece for point in points} == {0}


def test_many_readings_become_means_and_a_gap_begins_another_piece() -> None:
    line = [(0.01 * number, float(number % 2)) for number in range(10_000)]
    points = thin_readings([line])
    assert len(points) <= MOST_POINTS + 1
    assert points[5].mean == pytest.approx(0.5, abs=0.05)
    pieces = [
        point.piece
        for point in thin_readings([[(float(second), 1.0) for second in (0, 1, 2, 3, 20, 21, 22)]])
    ]
    assert pieces == [0, 0, 0, 0, 1, 1, 1]


def test_cpu_use_is_of_the_seconds_between_readings_that_lie_apart() -> None:
    busy = [(0.0, 0.0), (1.0, 2.0), (1.1, 9.0), (2.0, 4.0)]
    assert compute_cpu_use(busy, 4) == [(1.0, 50.0), (2.0, 50.0)]
    assert compute_cpu_use(busy, None) == []


def test_a_stored_trial_has_its_phases_in_the_time_of_its_readings() -> None:
    folder = committed.load("h200x4-2026")
    record = next(record for record in folder.records if record.status == "ok")
    results = Results(folder.path)
    samples = read_samples_file(
        results.make_attempt_file_path("samples", record.trial_id, record.attempt, "csv"), lambda _: None
    )
    trace = build_time_trace(record, samples, row=0)
    assert trace is not None
    assert set(trace.panels) == {"gpu_util_pct", "cpu_util_pct", "gpu_mem_mib", "power_w"}
    warm_up, *measured = trace.phases
    assert (warm_up.name, warm_up.is_measured) == ("warm-up", False)
    assert measured
    assert measured[0].name == "epoch 1"
    assert 0 < warm_up.begin < warm_up.end <= measured[0].begin
    inside = [
        point.mean
        for point in trace.panels["gpu_util_pct"]
        if measured[0].begin < point.seconds < measured[-1].end
    ]
    assert sum(inside) / len(inside) == pytest.approx(record.result["gpu_util_pct"], abs=6)


def test_nothing_that_was_sampled_is_no_trace() -> None:
    folder = committed.load("h200x4-2026")
    record = folder.records[0]
    assert build_time_trace(record, {}, row=0) is None


def test_the_recommended_trial_is_the_one_to_look_at() -> None:
    folder = committed.load("h200x4-2026")
    report = committed.load_tables("h200x4-2026")["mobilenet_v2-4gpu"]
    trace = make_recommended_trace(folder, report, lambda _: None)
    assert trace is not None
    assert trace.row == report.recommended_row
    row = report.labels[trace.row]
    assert (row["batch_size"], row["strategy"]) == (128, "ddp")
