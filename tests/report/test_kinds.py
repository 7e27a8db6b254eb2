"""Rates and whole epochs in one folder: each kind in a table of its own, and nothing compared between them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fixed_folder import trial
from gpubench.report.reading import reading
from gpubench.report.table import Table, tables
from test_tables import row

from gpubench.results.store import Results
from gpubench.schema.row import Row


def measured(source: str | None, slower: float) -> list[Row]:
    """Three batch sizes in two precisions, two of them on two GPUs, too; each in three processes."""
    return [
        row(
            batch, epoch_time_s=slower * (100 / batch + number / 10) / gpus, precision=precision, gpus=gpus,
            strategy="ddp" if gpus > 1 else "single", config_id=f"{source}{batch}{precision}{gpus}",
            trial_id=f"{source}{batch}{precision}{gpus}", round=number, images_per_epoch=1024, gpu_mem_mib=1000 + batch,
            epoch_time_source=source, epochs=None if source == "steady" else 3, device="cuda",
        )
        for batch, gpus in ((16, 1), (32, 1), (64, 1), (32, 2), (64, 2))
        for precision in ("fp32", "bf16")
        for number in (1, 2, 3)
    ]  # fmt: skip


def shown(rows: list[Row]) -> list[Table]:
    axes = {"sizes": [("precision",), ("gpus",), ("batch_size",)]}
    return tables(rows, axes=axes)


def test_a_folder_of_two_kinds_has_the_tables_that_two_folders_would_have() -> None:
    """Growth, speed-ups, answers and remarks, whichever kind came first."""
    rates, epochs = measured("steady", 1.0), measured("measured", 7.0)
    (of_rates,), (of_epochs,) = shown(rates), shown(epochs)
    assert of_rates.answers
    assert any(one.speedup for one in of_rates.rows)
    both = shown([*rates[:5], *epochs, *rates[5:]])
    assert [one.name for one in both] == ["sizes, steady rate", "sizes, whole epochs"]
    for found, alone in zip(both, (of_rates, of_epochs), strict=True):
        assert found.title == found.name
        for name in ("cells", "answers", "remarks", "doubts", "heading"):
            assert getattr(found, name) == getattr(alone, name), name


def test_what_has_no_time_stands_with_what_it_would_have_measured() -> None:
    lost = [row(256, "oom"), row(128, "oom", epochs=None)]
    both = shown([*measured("steady", 1.0), *measured("measured", 7.0), *lost])
    assert [[one.batch_size for one in table.rows if one.status == "oom"] for table in both] == [[128], [256]]
    extrapolated = [replace(one, epoch_time_source="extrapolated") for one in measured("measured", 1.0)]
    log = [replace(one, source="published log") for one in measured("measured", 1.0)]
    mixed = shown([*measured("measured", 7.0), *extrapolated, *log])
    assert [one.name for one in mixed] == ["sizes, whole epochs", "sizes, published log"]


def test_records_of_both_kinds_in_one_folder(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for number, size in enumerate((16, 32, 16, 32)):
        record = trial("crop-resize", size)
        rate = {"epoch_time_source": "steady", "epoch_time_s": 9.0, "epochs_measured": None, "epoch_time_iqr_s": None,
                "cpu_probe_ms": size / 8}  # fmt: skip
        if number > 1:
            asked = {**vars(record.trial), "epochs": None}
            record = trial("crop-resize", size, trial_id=f"t{size:012}", config_id=f"c{size:012}", trial=asked,
                           result={**vars(record.result), **rate})  # fmt: skip
        results.save([record], [[]], [])
    rates, epochs = reading(tmp_path, pytest.fail).tables
    assert [one.name for one in (epochs, rates)] == ["fixed, whole epochs", "fixed, steady rate"]
    assert [one.epoch_time_growth_pct for one in epochs.rows] == [None, pytest.approx(-37.5)]
    assert [one.epoch_time_growth_pct for one in rates.rows] == [None, pytest.approx(0)]
    assert (epochs.doubts, [one.doubts for one in rates.rows]) == ((), [None, "slow-cpu"])
    assert "no validation split" in "".join(epochs.heading)
    assert "top-1" not in "".join(rates.heading), "nobody asks a rate for one"
