"""Runs become a line a configuration: what its processes tell together, and what rows say beside each other."""

from __future__ import annotations

import math
from typing import Any

import committed
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpubench.analyze.derive import build_table_summary, classify_overlap_gains
from gpubench.analyze.frames import (
    build_runs,
    compute_interquartile_ranges,
    is_epoch_time_scattered,
    list_printed_columns,
    list_setting_columns,
    summarize_configurations,
)
from gpubench.analyze.series import EncodedFields
from gpubench.analyze.table_rows import list_machine_columns
from gpubench.export.sheets import make_table_sheet
from gpubench.schema.columns import TAKEN_NAMES
from gpubench.schema.row import Row, replace
from gpubench.stats.outliers import find_outliers

FIELDS = {
    "model": "mobilenet_v2", "batch_size": 64, "gpus": 1, "strategy": "single", "device": "cuda", "gpu_ids": [0],
    "workers": 4, "cpus": 8,
}  # fmt: skip


def make_row(time_s: float | None = None, **values: Any) -> Row:
    """A run that ended ok, with these columns."""
    attributes = {
        name: values.pop(name) for name in ("allowance", "steady_step_s", "asked") if name in values
    }
    columns = {
        "trial_id": "t", "config_id": "c", "status": "ok", "gpu_name": "H200", "host": "n1", "round": 1,
        "epoch_time_s": time_s, "epoch_time_source": "measured", "images_per_epoch": 1000, **FIELDS, **values,
    }  # fmt: skip
    return replace(Row.make_from_columns(columns), **attributes)


def make_rounds(times: list[float], **values: Any) -> list[Row]:
    """A run a round."""
    return [make_row(time, round=number, **values) for number, time in enumerate(times, 1)]


def build(*rows: Row, axes: Any = ()) -> pd.DataFrame:
    return build_table_summary(build_runs(rows), axes)[0]


# ---- processes of one configuration ----


def test_times_are_geometric_means_and_other_figures_medians() -> None:
    rows = [
        make_row(1.0, gpu_mem_mib=10.0, epochs_to_top1=3, round=1),
        make_row(4.0, gpu_mem_mib=20.0, round=2),
        make_row(2.0, gpu_mem_mib=60.0, epochs_to_top1=5, round=3),
    ]
    summary, members = summarize_configurations(build_runs(rows))
    (row,) = summary.to_dict("records")
    assert row["epoch_time_s"] == pytest.approx(2.0)
    assert row["gpu_mem_mib"] == 20.0
    assert row["images_per_s"] == pytest.approx(500.0)
    assert row["epoch_time_iqr_s"] == pytest.approx(1.5)
    assert pd.isna(row["epochs_to_top1"])  # one of them never got there
    assert (row["repeats"], row["reached"], row["endings"]) == (3, 0, "ok")
    assert row["doubts"] == "spread"
    assert members["run"].tolist() == [0, 1, 2]
    assert members["is_ok"].all()
    row = build_table_summary(build_runs(rows), (), is_of_tries=True)[0].iloc[0]
    assert (row["gpu_mem_mib"], row["images_per_epoch"]) == (20.0, 1000)
    assert row[["epoch_time_s", "epoch_time_source"]].isna().all()


def test_what_did_not_end_ok_is_counted_and_adds_no_figure() -> None:
    rows = [
        make_row(None, status="failed", reason="it died", gpu_mem_mib=99.0, doubts="a"),
        make_row(3.0, round=2, gpu_mem_mib=1.0, doubts="b"),
    ]
    summary, members = summarize_configurations(build_runs(rows))
    (row,) = summary.to_dict("records")
    assert (row["endings"], row["repeats"], row["reason"], row["doubts"]) == (
        "1 ok, 1 failed",
        1,
        "it died",
        "a+b",
    )
    assert (row["epoch_time_s"], row["gpu_mem_mib"], row["status"]) == (3.0, 1.0, "ok")
    assert members.to_numpy().tolist() == [[0, 1, True], [0, 0, False]]


def test_text_that_differs_is_mixed_and_ranks_have_no_median() -> None:
    rows = make_rounds([1.0, 1.0], gpu_mem_source="nvml-process")
    rows += [make_row(1.0, gpu_mem_source="torch-reserved", slowest_rank=1, round=3)]
    row = summarize_configurations(build_runs(rows))[0].iloc[0]
    assert row["gpu_mem_source"] == "mixed"
    assert pd.isna(row["slowest_rank"])
    alike = [
        make_row(1.0, slowest_rank=1, round=number, full_together=words)
        for number, words in ((1, "cpu"), (2, "cpu+input"), (3, None))
    ]
    row = summarize_configurations(build_runs(alike))[0].iloc[0]
    assert (row["slowest_rank"], row["full_together"]) == (1, "cpu")
    row = summarize_configurations(build_runs(alike[:2]))[0].iloc[0]
    assert row["full_together"] == "cpu+input"  # half of them are enough


def test_further_rounds_of_older_versions_tell_the_time_alone() -> None:
    first = make_row(1.0, energy_j=100.0)
    further = make_row(4.0, energy_j=900.0, round=2, epoch_time_source="extrapolated")
    row = summarize_configurations(build_runs([first, further]))[0].iloc[0]
    assert row["epoch_time_s"] == pytest.approx(2.0)
    assert row["energy_j"] == 100.0
    assert row["epoch_time_source"] == "measured"


def test_another_allowance_is_another_row_and_what_is_planned_joins_the_first() -> None:
    planned = replace(make_row(status="missing"), gpu_name=None)
    rows = [planned, make_row(1.0, allowance="8 CPUs"), make_row(2.0, allowance="16 CPUs")]
    summary, members = summarize_configurations(build_runs(rows))
    assert summary["epoch_time_s"].tolist() == [1.0, 2.0]
    assert summary["endings"].tolist() == ["1 ok, 1 missing", "ok"]
    assert members["run"].tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("setting", "values"),
    [
        ("gpu_power_limit_w", (700.0, 300.0)),
        ("gpu_ecc", (True, False)),
        ("gpu_pcie", ("gen 5 x16", "gen 4 x8")),
    ],
)
def test_gpus_of_one_model_that_are_set_unlike_are_unlike_machines(
    setting: str, values: tuple[Any, Any]
) -> None:
    """They are repeats of nothing and grow from nothing; the table shows the setting. One that is not told is alike."""
    usual, other = ({setting: value} for value in values)
    two = build_runs(
        [make_row(1.0, **usual), make_row(2.0, **other), make_row(1.0, gpu_name="A100", **other)]
    )
    assert len(summarize_configurations(two)[0]) == 3
    assert list_machine_columns(two) == ["gpu_name", setting]
    assert list_machine_columns(build_runs([make_row(gpu_name="A100", **usual), make_row(**other)])) == [
        "gpu_name"
    ]
    assert len(summarize_configurations(build_runs([make_row(1.0, **usual), make_row(2.0)]))[0]) == 1
    larger = {"batch_size": 128, "config_id": "larger"}
    for beside, grows in ((other, False), ({}, True), (usual, True)):
        growth = build(make_row(1.0, **usual), make_row(2.0, **larger, **beside))["epoch_time_growth_pct"]
        assert growth.notna().any() == grows, beside


def test_rows_under_power_limits_that_were_asked_for_are_compared_along_them() -> None:
    rows = [
        make_row(5.0 - w / 100, power_limit_w=w, gpu_power_limit_w=w, config_id=str(w)) for w in (200, 300)
    ]
    summary, _, arrangement = build_table_summary(build_runs(rows), (("power_limit_w",),))
    assert (arrangement.axis, arrangement.varied) == ("power_limit_w", ("power_limit_w",))
    assert summary["epoch_time_growth_pct"].tolist()[1] == pytest.approx(-100 / 3)
    beside = [*rows, make_row(1.0, gpu_power_limit_w=700)]
    assert build_table_summary(build_runs(beside), ())[2].varied == ("power_limit_w",)


def test_how_far_processes_lie_apart() -> None:
    times = pd.Series([1.0, 2.0, 4.0, 8.0, 5.0, 5.0, 7.0], index=[0, 0, 0, 0, 1, 2, 2])
    assert compute_interquartile_ranges(times).to_dict() == {0: 5.0 - 1.75, 2: 1.0}
    near = pd.Series(
        [1.0, 1.04, 1.0, 1.3, 1.0, 1.01, 1.5, 1.0, 1.01, 1.02, 2.0],
        index=[0] * 2 + [1] * 2 + [2] * 3 + [3] * 3 + [4],
    )
    assert is_epoch_time_scattered(near).to_dict() == {0: False, 1: True, 2: True, 3: False, 4: False}
    assert find_outliers(np.array([1.0, 1.01, 0.99, 1.02, 3.0])) == [4]
    assert find_outliers(np.array([1.0, 1.1, 0.9, 1.2, 1.3])) == []
    assert find_outliers(np.array([2.0] * 6)) == []


# ---- rows beside each other ----


def test_growth_is_against_the_row_before_and_bridges_no_gap() -> None:
    steps = [(16, 4.0, 100.0), (32, 3.0, 150.0), (64, None, None), (128, 2.0, 600.0)]
    rows = [
        make_row(
            time, batch_size=size, gpu_mem_mib=memory, config_id=str(size), status="ok" if time else "oom",
            gpu_mem_source="nvml-process",
        )
        for size, time, memory in reversed(steps)
    ]  # fmt: skip
    summary, _, arrangement = build_table_summary(build_runs(rows), ())
    assert (arrangement.axis, arrangement.varied) == ("batch_size", ("batch_size",))
    assert summary["batch_size"].tolist() == [16, 32, 64, 128]
    assert summary["before"].tolist()[1:] == [0, 1, 2]
    assert summary["epoch_time_growth_pct"].tolist()[1] == pytest.approx(-25.0)
    assert summary["gpu_mem_growth_pct"].tolist()[1] == pytest.approx(50.0)
    assert summary["epoch_time_growth_pct"].isna().tolist() == [True, False, True, True]
    assert arrangement.fixed["model"] == "mobilenet_v2"


def test_growth_is_of_the_time_of_an_image_and_of_one_source_of_memory() -> None:
    rows = [
        make_row(4.0, batch_size=16, config_id="a", gpu_mem_mib=10.0, gpu_mem_source="nvml-process"),
        make_row(
            4.0,
            batch_size=32,
            config_id="b",
            images_per_epoch=500,
            gpu_mem_mib=20.0,
            gpu_mem_source="torch-reserved",
        ),
    ]
    summary = build(*rows)
    assert summary["epoch_time_growth_pct"][1] == pytest.approx(100.0)
    assert pd.isna(summary["gpu_mem_growth_pct"][1])


@pytest.mark.parametrize("memory", [(5e-324, 1e5), (1e5, 5e-324)])
def test_memory_whose_ratio_no_float_can_hold_has_no_growth_and_no_cost(memory: tuple[float, float]) -> None:
    rows = [
        make_row(
            4.0, batch_size=16 * number, config_id=str(number), gpu_mem_mib=mib, gpu_mem_source="nvml-process"
        )
        for number, mib in enumerate(memory, 1)
    ]
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        summary = build(*rows)
    assert summary[["gpu_mem_growth_pct", "cost_growth_pct"]].isna().all(axis=None)
    assert summary["epoch_time_growth_pct"][1] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "is_fair"),
    [
        ({"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp"}, True),  # the same batch
        ({"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp", "batch_size": 128}, True),  # the same batch a GPU
        ({"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp", "batch_size": 256}, False),
        ({"batch_size": 128}, True),
        ({"batch_size": 128, "strategy": "ddp"}, False),
        ({"batch_size": 128, "cpus": 4}, False),
        ({"strategy": "ddp", "cpus": 4}, True),  # the axis is another one
    ],
)
def test_what_may_move_between_neighbours(change: dict[str, Any], is_fair: bool) -> None:
    fields = EncodedFields.from_frame(build_runs([make_row(1.0), make_row(1.0, **change)]))
    assert fields.is_fair_step(np.array([0]), np.array([1])).tolist() == [is_fair]
    assert fields.is_fair_step(np.array([1]), np.array([0])).tolist() == [is_fair]


def test_speedups_are_against_one_device_and_strong_where_a_row_has_both() -> None:
    two = {"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp"}
    rows = [
        make_row(8.0, batch_size=64, config_id="a"),
        make_row(6.0, batch_size=128, config_id="b"),
        make_row(4.0, batch_size=128, config_id="c", **two),
    ]
    summary = build(*rows, axes=[["batch_size"], ["gpus"]]).set_index("config_id")
    row = summary.loc["c"]
    assert row["speedup"] == pytest.approx(1.5)
    assert row["strong_efficiency_pct"] == pytest.approx(75.0)
    assert row["weak_efficiency_pct"] == pytest.approx(100.0)
    labels = build(*rows, axes=[["batch_size"], ["gpus"]])
    assert labels["config_id"][row["strong_baseline"]] == "b"
    assert labels["config_id"][row["weak_baseline"]] == "a"
    assert summary.loc["a", "speedup"] == 1.0


def test_two_rows_at_one_place_are_neighbours_and_baselines_of_none() -> None:
    two = {"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp"}
    twins = [make_row(8.0, batch_size=64, config_id=name) for name in "ab"]
    summary = build(*twins, make_row(4.0, batch_size=128, config_id="c"))
    assert summary["before"].isna().all()
    summary = build(*twins, make_row(4.0, batch_size=64, config_id="c", **two))
    assert summary["speedup"].isna().all()


def test_without_one_device_a_strategy_is_compared_with_itself() -> None:
    rows = [
        make_row(time, config_id=f"{strategy}{gpus}", gpus=gpus, gpu_ids=list(range(gpus)), strategy=strategy)
        for strategy, gpus, time in (("ddp", 2, 4.0), ("dp", 2, 8.0), ("ddp", 4, 2.5), ("dp", 4, 8.0))
    ]
    summary = build(*rows, axes=[["gpus"], ["strategy"]]).set_index("config_id")
    assert summary["speedup"].to_dict() == {"ddp2": 1.0, "dp2": 1.0, "ddp4": 1.6, "dp4": 1.0}
    assert summary["strong_efficiency_pct"].to_dict() == {"ddp2": 100, "dp2": 100, "ddp4": 80, "dp4": 50}


def test_gpus_that_are_the_first_ones_or_left_to_the_machine_are_alike() -> None:
    asked = {"batch_size": 16, "gpu_ids": None}
    rows = [
        make_row(4.0, batch_size=16, config_id="a"),
        make_row(2.0, batch_size=32, config_id="b", gpu_ids=[3], asked=asked),
    ]
    fields = EncodedFields.from_frame(build_runs(rows))
    assert len(set(fields.encode_series("batch_size")[0])) == 1
    told = EncodedFields.from_frame(build_runs([rows[0], replace(rows[1], asked={**asked, "gpu_ids": [3]})]))
    assert len(set(told.encode_series("batch_size")[0])) == 2


def test_what_follows_an_axis_moves_with_it_where_axes_are_known() -> None:
    rows = [make_row(1.0, lr=0.1), make_row(1.0, batch_size=128, lr=0.2)]
    fields = EncodedFields.from_frame(build_runs(rows))
    assert fields.find_fields_tied_to_axis("batch_size", [["batch_size"]]) == ("lr",)
    assert fields.find_fields_tied_to_axis("batch_size", ()) == ()


def compare(first: list[Row], second: list[Row]) -> pd.Series:  # type: ignore[type-arg]
    """The second row of a table of two batch sizes, against the first."""
    return build(*first, *second).iloc[1]


def test_rows_with_three_rounds_in_common_are_compared_round_by_round() -> None:
    first = make_rounds([1.0, 2.0, 4.0], batch_size=16, config_id="a")
    second = make_rounds([1.1, 2.3, 4.2, 9.0], batch_size=32, config_id="b")
    row = compare(first, second)
    apart = np.log([1.1, 1.15, 1.05])
    half = stats.t.ppf(0.975, 2) * apart.std(ddof=1) / math.sqrt(3)
    assert row["epoch_time_growth_pct"] == pytest.approx(
        100 * math.expm1(apart.mean())
    )  # of these rounds alone
    assert row["epoch_time_growth_low_pct"] == pytest.approx(100 * math.expm1(apart.mean() - half))
    assert row["epoch_time_growth_high_pct"] == pytest.approx(100 * math.expm1(apart.mean() + half))


def test_in_other_rounds_they_are_compared_by_welch_s_degrees_of_freedom() -> None:
    mine, others = [1.0, 1.1, 1.25, 1.3], [2.0, 2.5, 2.1, 2.55]
    second = [
        make_row(time, batch_size=32, config_id="b", round=9 + number) for number, time in enumerate(others)
    ]
    row = compare(make_rounds(mine, batch_size=16, config_id="a"), second)
    interval = stats.ttest_ind(np.log(others), np.log(mine), equal_var=False).confidence_interval(0.95)
    assert row["epoch_time_growth_low_pct"] == pytest.approx(100 * math.expm1(interval.low))
    assert row["epoch_time_growth_high_pct"] == pytest.approx(100 * math.expm1(interval.high))


def test_others_are_compared_by_all_their_processes_never_narrower_than_one_side_alone() -> None:
    first = make_rounds([1.0, 1.0, 1.0], batch_size=16, config_id="a", host="n1")
    second = [
        make_row(time, batch_size=32, config_id="b", round=9 + number)
        for number, time in enumerate([1.1, 1.2])
    ]
    row = compare(first, second)
    logs = np.log([1.1, 1.2])
    half = stats.t.ppf(0.975, 1) * logs.std(ddof=1) / math.sqrt(2)
    assert row["epoch_time_growth_low_pct"] == pytest.approx(100 * math.expm1(logs.mean() - half))
    noisy, quiet = np.log([1.1, 1.2]), np.log([1.0, 1.01, 1.0, 1.01])
    first = make_rounds([1.0, 1.01, 1.0, 1.01], batch_size=16, config_id="a")
    half = stats.t.ppf(0.975, 1) * noisy.std(ddof=1) / math.sqrt(2)  # wider than Welch's own
    row = compare(first, second)
    low = 100 * math.expm1(noisy.mean() - quiet.mean() - half)
    assert row["epoch_time_growth_low_pct"] == pytest.approx(low)
    first = make_rounds([1.0, 1.0, 1.0], batch_size=16, config_id="a")
    elsewhere = [replace(run, host="n2") for run in second]
    row = compare(first, elsewhere)  # nobody knows what nodes of one kind differ by
    assert row["epoch_time_growth_low_pct"] == -100.0
    assert pd.isna(row["epoch_time_growth_high_pct"])


def test_cost_is_memory_times_the_steady_step_of_an_image() -> None:
    def rounds(size: int, memory: float, steps: list[float]) -> list[Row]:
        return [
            make_row(
                1.0, batch_size=size, config_id=str(size), gpu_mem_mib=memory, gpu_mem_source="nvml-process",
                steady_step_s=step, round=number,
            )
            for number, step in enumerate(steps)
        ]  # fmt: skip

    row = compare(rounds(16, 100.0, [0.1, 0.1, 0.1]), rounds(32, 150.0, [0.1, 0.1, 0.1]))
    assert row["cost_growth_pct"] == pytest.approx(-25.0)
    assert row["cost_growth_low_pct"] == pytest.approx(-25.0)
    row = compare(rounds(16, 100.0, [0.1, 0.1, 0.1]), rounds(32, 150.0, [0.1, 0.1, math.nan]))
    assert row["cost_growth_pct"] == pytest.approx(
        50.0
    )  # of whole epochs, where one process has no steady step


def test_groups_are_compared_with_the_same_trials_alone() -> None:
    alone = make_rounds([2.0, 2.0, 2.0], trial_id="s", config_id="s")
    jobs = [
        job
        for name in ("1 of 2", "2 of 2")
        for job in make_rounds(
            [2.5, 2.5, 2.5], trial_id=name, config_id="s", group="pair", job=name, group_id="g", solo_id="s",
            slowdown=9.0, overlap_gain=0.0,
        )
    ]  # fmt: skip
    summary = build(*jobs, *alone)
    assert summary["job"].tolist()[1:] == ["1 of 2", "2 of 2"]
    assert summary["alone"].tolist()[1:] == [0, 0]
    assert summary["slowdown"].tolist()[1:] == [1.25, 1.25]
    assert summary["overlap_gain"].tolist()[1:] == pytest.approx([0.6, 0.6])
    assert summary["overlap_gain_low"].tolist()[1:] == pytest.approx([0.6, 0.6])
    assert summary["unit"].tolist()[1:] == [0, 0]


def test_a_group_that_lacks_a_job_keeps_the_gain_of_its_runs() -> None:
    facts = {"jobs": 3}
    jobs = [
        replace(job, together=facts)
        for name in ("1 of 3", "2 of 3")
        for job in make_rounds(
            [2.5, 2.5], config_id="s", group="three", job=name, group_id="g", slowdown=2.0, overlap_gain=0.3,
            solo_epoch_time_s=2.0,
        )
    ]  # fmt: skip
    summary = build(*jobs)
    assert summary["overlap_gain"].tolist() == [0.3, 0.3]
    assert summary["slowdown"].tolist() == pytest.approx([1.25, 1.25])


def test_what_lies_between_processes_is_told_where_each_tells_its_own_error() -> None:
    times = [1.0, 1.1, 1.2]
    rows = [make_row(time, round=number, step_error_pct=1.0) for number, time in enumerate(times)]
    row = build(*rows).iloc[0]
    assert row["within_pct"] == pytest.approx(1.0)
    variance = np.log(times).var(ddof=1)
    assert row["between_pct"] == pytest.approx(100 * math.sqrt(variance - 0.0001))
    row = build(*rows[:2], replace(rows[2], step_error_pct=None)).iloc[0]
    assert row["within_pct"] == pytest.approx(1.0)
    assert pd.isna(row["between_pct"])


def test_words_of_sharing_change_at_their_borders() -> None:
    gains = pd.Series([-0.2, 0.1, 0.11, 0.89, 0.9, math.nan])
    assert classify_overlap_gains(gains).tolist() == ["none", "none", "some", "some", "full", None]


def test_energy_and_its_interval_belong_to_the_images() -> None:
    row = build(
        *(make_row(2.0, energy_j=joules, round=number) for number, joules in enumerate([100.0, 200.0, 400.0]))
    ).iloc[0]
    logs = np.log([100.0, 200.0, 400.0])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / math.sqrt(3)
    assert row["images_per_joule"] == pytest.approx(5.0)
    assert row["edp_js"] == pytest.approx(400.0)
    assert row["images_per_joule_low"] == pytest.approx(5.0 * math.exp(-half))
    assert row["images_per_joule_high"] == pytest.approx(5.0 * math.exp(half))
    assert build(make_row(2.0, energy_j=0.0)).iloc[0][["images_per_joule", "edp_js"]].isna().all()


def test_a_top1_was_crossed_where_every_seed_did() -> None:
    seeds = [
        make_row(1.0, top1_crossing_s=time, top1_crossing=word, trial_id=str(time))
        for time, word in ((1.0, "confirmed"), (4.0, "unconfirmed"))
    ]
    row = build(*seeds).iloc[0]
    assert (row["top1_crossing_s"], row["top1_crossing"]) == (pytest.approx(2.0), "unconfirmed")
    row = build(seeds[0], replace(seeds[1], top1_crossing_s=None)).iloc[0]
    assert pd.isna(row["top1_crossing_s"])
    assert row["top1_crossing"] is None


# ---- a folder ----


def test_a_folder_has_its_processes_rows_and_tables() -> None:
    folder = committed.load("h200x2-2026")
    (table,) = folder.tables
    assert (len(folder.runs), len(folder.summary), table.rows) == (54, 18, tuple(range(18)))
    assert (table.axis, table.varied, table.kind) == (
        "batch_size",
        ("batch_size", "gpus", "strategy"),
        "whole epochs",
    )
    row = folder.summary.query("batch_size == 128 and strategy == 'ddp'").iloc[0]
    assert [round(row[name], 2) for name in ("speedup", "speedup_low", "speedup_high")] == [1.64, 1.52, 1.78]
    assert folder.select_ok_runs_of_row(row.name)["round"].tolist() == [1, 2, 3]
    assert [round(row[f"strong_efficiency_{end}_pct"]) for end in ("low", "high")] == [76, 89]
    assert make_table_sheet([folder]).format_csv().count("\n") == 19


def test_rows_of_several_tables_have_labels_of_their_own() -> None:
    folder = committed.load("titan-xp-2021")
    assert folder.summary.index.tolist() == list(range(len(folder.summary)))
    for number, table in enumerate(folder.tables):
        rows = folder.select_table_rows(table)
        assert set(rows["table"]) == {number}
        assert set(rows["before"].dropna()) <= set(rows.index)


def test_text_that_is_no_unicode_is_escaped_and_can_be_grouped() -> None:
    runs = build_runs([make_row(host="n\ud800", model="größe"), make_row(host="n\ud800", model="größe")])
    assert runs["host"].tolist() == ["n\\ud800"] * 2
    assert runs["model"].tolist() == ["größe"] * 2
    assert runs.groupby("host").size().tolist() == [2]


def test_no_figure_of_a_command_takes_the_name_of_another_column() -> None:
    """A stored figure, or value of a placeholder, of such a name is left out."""
    folder = committed.load("h200x2-2026")
    assert set(folder.runs.columns) | set(folder.summary.columns) <= TAKEN_NAMES
    printed = {"printed": {"machine": 1.0, "acc": 2.0}, "settings": None, "metrics": "typo=(.)"}
    assert [column.name for column in list_printed_columns(pd.DataFrame([printed]))] == ["typo", "acc"]
    settings = pd.DataFrame([{"settings": "machine=a depth=2"}])
    assert [column.name for column in list_setting_columns(settings)] == ["depth"]


def test_a_figure_that_is_called_as_another_commands_placeholder_leaves_its_values_alone() -> None:
    runs = build_runs([
        make_row(command="a {depth}", settings="depth=aa"),
        replace(make_row(command="b", settings=None), printed={"depth": 3.0, "acc": 5.0}),
    ])  # fmt: skip
    assert runs["depth"].tolist() == ["aa", None]
    assert [column.name for column in list_printed_columns(runs)] == ["acc"]
