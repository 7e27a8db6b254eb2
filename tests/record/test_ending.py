"""One value or one reason for every column."""

from __future__ import annotations

from typing import Any

import pytest
from whole_epochs import epoch_rows_of

from gpubench.record import meter_figures
from gpubench.record.figures import WatchedFigures
from gpubench.record.outcome import Outcome
from gpubench.record.recording import collect_provenance, decide_ending, merge_measured_columns
from gpubench.schema.columns import MEASURED
from gpubench.schema.gpu_look import IdlePower

GPUS = ("GPU-00", "GPU-11")
IDLE = IdlePower(watts={"GPU-00": 75.0, "GPU-11": 80.0})


def told(**result: Any) -> Outcome:
    return Outcome(status="ok", epochs=epoch_rows_of(4), result={"epoch_time_s": 10.0, **result})


def test_every_column_has_a_value_or_a_reason() -> None:
    for status in ("ok", "failed"):
        for gpus in (GPUS, ()):
            result, missing = merge_measured_columns(told(), WatchedFigures(), status, "why", gpus, IDLE)
            names = {c.name for c in MEASURED} | meter_figures.COLUMNS.keys()
            assert names - {"doubts"} == set(result) | set(missing)
            assert not set(result) & set(missing)
            assert all(missing.values())


def test_a_trial_without_a_gpu_lacks_its_figures_for_that_reason() -> None:
    _, missing = merge_measured_columns(told(), WatchedFigures(), "ok", "", (), IdlePower())
    for column in (
        "gpu_mem_mib",
        "gpu_busy_s_per_epoch",
        "energy_j",
        "idle_power_w",
        "throttled_pct",
        "power_w",
    ):
        assert missing[column] == "the trial uses no GPU"


def test_busy_seconds_and_idle_power_are_sums_over_the_gpus() -> None:
    result, _ = merge_measured_columns(
        told(), WatchedFigures(result={"gpu_util_pct": 50.0}), "ok", "", GPUS, IDLE
    )
    assert result["gpu_busy_s_per_epoch"] == pytest.approx(0.5 * 10 * 2)
    assert result["idle_power_w"] == pytest.approx(155)


def test_idle_power_of_one_gpu_alone_is_none() -> None:
    result, missing = merge_measured_columns(
        told(),
        WatchedFigures(),
        "ok",
        "",
        GPUS,
        IdlePower(watts={"GPU-00": 75.0}, missing={"GPU-11": "GPU 1 was hot"}),
    )
    assert "idle_power_w" not in result
    assert missing["idle_power_w"] == "GPU 1 was hot"


def test_energy_to_an_accuracy_is_that_of_its_epochs_the_first_included() -> None:
    seen = WatchedFigures(energy_j_by_epoch={0: 50.0, 1: 10.0, 2: 11.0, 3: 12.0})
    result, _ = merge_measured_columns(told(epochs_to_top1=3), seen, "ok", "", GPUS, IDLE)
    assert result["energy_to_top1_j"] == pytest.approx(71)
    holed = WatchedFigures(energy_j_by_epoch={0: 50.0, 1: None, 2: 11.0}, missing={"energy_j": "NVML: lost"})
    result, missing = merge_measured_columns(told(epochs_to_top1=3), holed, "ok", "", GPUS, IDLE)
    assert "energy_to_top1_j" not in result
    assert missing["energy_to_top1_j"] == "NVML: lost"


def test_without_the_driver_s_figure_the_allocator_s_stands_in() -> None:
    seen = WatchedFigures(missing={"gpu_mem_mib": "Not Supported"})
    result, _ = merge_measured_columns(told(gpu_mem_reserved_mib=500.0), seen, "ok", "", GPUS, IDLE)
    assert (result["gpu_mem_mib"], result["gpu_mem_source"]) == (500.0, "torch-reserved")
    came = collect_provenance({}, result, seen.missing["gpu_mem_mib"])["gpu_mem_mib"]
    assert came["source"] == "torch's allocator, reserved at its peak (Not Supported)"


def test_a_growth_that_can_t_be_gives_way_to_the_allocator_s() -> None:
    delta = {"gpu_mem_mib": 400.0, "gpu_mem_source": "nvml-device-delta"}
    seen = WatchedFigures(
        result=delta, provenance={"gpu_mem_mib": {"source": "growth"}, "power_w": {"source": "p"}}
    )
    result, missing = merge_measured_columns(told(gpu_mem_reserved_mib=500.0), seen, "ok", "", GPUS, IDLE)
    assert (result["gpu_mem_mib"], result["gpu_mem_source"]) == (500.0, "torch-reserved")
    came = collect_provenance(seen.provenance, result, missing.get("gpu_mem_mib"))
    assert "somebody else gave some back" in came["gpu_mem_mib"]["source"]
    assert came["power_w"] == {"source": "p"}
    likely, _ = merge_measured_columns(told(gpu_mem_reserved_mib=300.0), seen, "ok", "", GPUS, IDLE)
    assert likely["gpu_mem_source"] == "nvml-device-delta"


def test_the_driver_s_figure_decides_over_the_cap() -> None:
    status, reason = decide_ending(told(), WatchedFigures(result={"gpu_mem_mib": 12_300.0}), 12_288)
    assert status == "oom"
    assert "12,300 MiB" in reason


def test_idle_power_says_how_many_readings_it_is_of() -> None:
    told = collect_provenance({}, {"idle_power_w": 155.0}, None, [(10, 0), (8, 2)])["idle_power_w"]
    assert (told["samples"], told["gaps"]) == (18, 2)
    assert "idle_power_w" not in collect_provenance({}, {}, None, [])
