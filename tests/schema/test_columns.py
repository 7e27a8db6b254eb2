"""Columns and cells: the words that users' scripts and spreadsheets lean on."""

from __future__ import annotations

import re

import pytest
from fakes import record
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.results.csv_text import format_csv, format_csv_cell
from gpubench.results.rows import make_row
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import BY_NAME, COLUMNS, DERIVED, EPOCH_COLUMNS, MEASURED
from gpubench.schema.row import replace
from gpubench.schema.trial_fields import FIELDS

FOR_EVER = """
trial_id config_id experiment group job repeat status reason
model width input_size num_classes variant data train_images batch_size gpus gpu_ids ranks strategy
precision memory_format execution cudnn_benchmark workers prefetch optimizer lr accumulate device
cpus cpu_sharing copies gpu_mem_cap_mib epochs warmup_epochs steps until_top1 breakdown seed
params_m gmacs_per_image
epoch_time_s epoch_time_iqr_s epochs_measured epoch_time_source images_per_s images_per_epoch
step_time_ms_p50 step_time_ms_p95 first_batch_s data_wait_pct copy_ms forward_ms backward_ms comm_ms
comm_hidden_ms optimizer_ms comm_pct comm_mib_per_step slowest_rank breakdown_cost_pct gpu_mem_mib
gpu_mem_source gpu_mem_allocated_mib gpu_mem_reserved_mib gpu_alloc_retries gpu_util_pct
gpu_util_max_pct gpu_mem_util_pct gpu_mem_util_max_pct cpu_util_pct cpu_util_max_pct
cpu_util_trial_pct cpu_s_per_epoch gpu_busy_s_per_epoch host_mem_mib energy_j power_w energy_source
energy_sampled_j idle_power_w sm_clock_mhz throttled_pct throttle_reasons temperature_c top1_pct
loss epochs_to_top1 time_to_top1_s energy_to_top1_j solo_epoch_time_s slowdown overlap_gain
predicted_slowdown sharing full_together group_id solo_id doubts
host gpu_name gpu_count driver cuda torch cpu_name cpu_count gpubench started_at mps
skipped_images
sync_every confirm_top1
round step_error_pct top1_crossing_s top1_crossing
slurm_job slurm_node slurm_partition memory_limit_mib
nodes window launch_cpu command settings epoch_pattern metrics until power_limit_w sm_clock_limit_mhz
cpu_probe_ms cpu_speed_pct
rapl_power_w rapl_energy_j meter_power_w meter_energy_j meter_source
tflops gb_per_s
gpu_power_limit_w gpu_default_limit_w gpu_application_clock_mhz gpu_compute_mode gpu_persistence gpu_ecc gpu_pcie
"""
"""All columns of trials.csv, in their order. Another one is added at the end; none is renamed, moved or taken away."""
EPOCHS_FOR_EVER = """
trial_id attempt epoch warmup epoch_time_s steps images data_wait_s first_batch_s train_loss cpu_s
energy_j top1_pct steady_step_s steady_steps tail_s round
"""


def test_the_columns_are_these_for_ever() -> None:
    names = [column.name for column in COLUMNS]
    assert names == FOR_EVER.split()
    assert [column.name for column in EPOCH_COLUMNS] == EPOCHS_FOR_EVER.split()
    assert len(names) == len(set(names)) == len(BY_NAME)
    assert set(FIELDS) <= set(names), "every field of a trial has one"
    assert not {c.name for c in DERIVED} & set(names), "derived columns belong to tables"


def test_units_stand_in_the_names() -> None:
    units = {"_s": "s", "_mib": "MiB", "_pct": "%", "_mhz": "MHz", "_c": "°C", "_j": "J", "_w": "W"}
    for column in (*MEASURED, *EPOCH_COLUMNS):
        ending = re.search(r"(_s|_mib|_pct|_mhz|_c|_j|_w)$", column.name)
        if ending and column.name != "images_per_s":
            assert column.unit == units[ending[1]], column.name
        assert column.meaning


def test_a_row_has_every_column_and_no_other_figure() -> None:
    found = make_row(record(environment={"host": "here", "kernel": "6.1"}, result={"top1_pct": 50.0}))
    values = {name: getattr(found, name) for name in BY_NAME}
    assert (values["host"], values["top1_pct"], values["epoch_time_s"]) == ("here", 50.0, None)
    assert not hasattr(found, "kernel")
    with pytest.raises(TypeError, match="no epoch_tim"):
        replace(found, epoch_tim=1.0)


def test_a_row_never_changes() -> None:
    found = make_row(record(result={"epoch_time_s": 2.0}))
    with pytest.raises(AttributeError):
        found.epoch_time_s = 1.0
    other = replace(found, epoch_time_s=1.0, batch_size=8)
    assert (other.epoch_time_s, other.batch_size) == (1.0, 8)
    assert (found.epoch_time_s, found.batch_size) == (2.0, 16)


def test_a_row_says_what_the_machine_filled_in() -> None:
    asked = {"workers": None, "gpus": 2, "batch_size": 16}
    found = make_row(record(trial=asked, resolved={"workers": 8, "gpus": None}))
    assert (found.workers, found.gpus, found.batch_size) == (8, 2, 16)


def test_doubts_are_codes_in_order() -> None:
    assert make_row(record(doubts={"stranger": "…", "dp": "…"})).doubts == "dp+stranger"
    assert make_row(record()).doubts is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (float("nan"), ""),
        (True, "1"),
        (False, "0"),
        (0.1, "0.1"),
        (1 / 3, "0.333333"),
        ([0, 1], "0+1"),
        ((2,), "2"),
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("a=1", "a=1"),
    ],
)
def test_cell(value: object, text: str) -> None:
    assert format_cell(value) == text


# ---- figures in CSVs ----

THREE_DECIMALS = re.compile(r"[.,]\d{3}(?!\d)")
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SHORT = st.builds(lambda whole, digits: whole / 10**digits, st.integers(-(10**7), 10**7), st.integers(0, 9))
"""Figures of few digits, many of them with three decimals."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (18.457, "18.4570"),
        (1.234e-05, "1.2340e-05"),
        (1.234e22, "1.2340e+22"),
        (123.4567, "123.4570"),
        (1234.567, "1234.57"),
        (1024.0, "1024"),
        (1.5, "1.5"),
        ((0.125, 2), "0.1250+2"),
        ("2.110", "2.110"),
        (None, ""),
        (True, "1"),
    ],
)
def test_a_figure_of_three_decimals_has_a_fourth(value: object, text: str) -> None:
    assert format_csv_cell(value) == text


@settings(max_examples=60)
@given(st.one_of(FLOATS, SHORT, st.integers()))
def test_no_figure_in_a_csv_can_pass_for_thousands(value: float) -> None:
    text = format_csv_cell(value)
    assert not THREE_DECIMALS.search(text)
    same = float(text) == float(f"{value:.6g}") if isinstance(value, float) else int(text) == value
    assert same, "the same value"


def test_a_carriage_return_in_a_cell_ends_no_row() -> None:
    text = format_csv(["name", "seconds"], [["a\rb", 18.457], ['c, "d"\n', None]])
    assert text == 'name,seconds\na b,18.4570\n"c, ""d""\n",\n'
