"""Figures of processes by row, the noise that a row of one process borrows, and what settles what is open."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze.table_rows import (
    estimate_noise_by_row,
    find_claims_remedy,
    join_certainty_of_claims,
    list_machine_columns,
    make_rounds_remedy,
)
from gpubench.core.claims import Certainty, Claim
from gpubench.core.findings import Remedy
from gpubench.schema.columns import GPU_SETTINGS
from gpubench.stats.decisions import decide_claims


def test_rates_are_of_images_where_all_rows_know_them() -> None:
    table = make_table([{"epoch_time_s": [2.0]}, {"epoch_time_s": [4.0], "images_per_epoch": 500}])
    assert [list(rates.values()) for rates in table.rates.values()] == [[500.0], [125.0]]


def test_rates_are_of_epochs_where_a_row_does_not_know_its_images() -> None:
    table = make_table([{"epoch_time_s": [2.0]}, {"epoch_time_s": [4.0], "images_per_epoch": None}])
    assert [list(rates.values()) for rates in table.rates.values()] == [[0.5], [0.25]]


def test_common_rounds_are_pairs_and_all_processes_the_estimate() -> None:
    table = make_table([{"epoch_time_s": [2.0, 2.2, 9.0]}, {"epoch_time_s": [4.0, 4.4]}])
    evidence = table.compare(table.rates, 10, 11)
    assert evidence.processes == (3, 2)
    assert evidence.pairs is not None
    assert math.exp(evidence.pairs.center) == pytest.approx(2.0)
    assert math.exp(evidence.center) == pytest.approx((4.0 * 4.4) ** (1 / 2) / (2.0 * 2.2 * 9.0) ** (1 / 3))


def test_rows_of_unlike_nodes_are_compared_by_common_rounds_alone() -> None:
    times = [2.0, 2.1, 2.2]
    hosts = (["a", "a", "b"], ["a", "a", "a"], ["b", "a", "a"])
    table = make_table([{"epoch_time_s": times, "host": host} for host in hosts])
    unlike = table.compare(table.rates, 10, 11)
    assert (unlike.welch, unlike.noise) == (None, None)
    assert unlike.pairs is not None
    assert unlike.pairs.degrees == 1  # the third round was on another node
    alike = table.compare(table.rates, 10, 12)
    assert alike.welch is not None
    assert alike.noise is not None


def test_a_node_on_which_a_row_ran_more_often_is_no_other_node() -> None:
    table = make_table([{"epoch_time_s": [2.0, 2.1, 2.2]}, {"epoch_time_s": [2.0, 2.1]}])
    assert table.compare(table.rates, 10, 11).welch is not None


def test_rows_alone_have_a_rate_and_no_group() -> None:
    rows = [{"epoch_time_s": [2.0]}, {"status": "oom"}, {"epoch_time_s": [2.0], "group": "two"}]
    assert make_table(rows).solo_rows.index.tolist() == [10]


def test_a_further_round_takes_what_a_process_of_each_row_takes() -> None:
    rows = [
        {"epoch_time_s": [1.0] * 3, "took_s": [60.0, 90.0, 600.0]},
        {"epoch_time_s": [1.0], "took_s": [30.0]},
    ]
    assert make_table(rows).round_minutes == pytest.approx(2.0)
    assert make_table([rows[0], {"epoch_time_s": [1.0], "took_s": [None]}]).round_minutes is None


def test_jobs_of_a_group_take_their_time_together_and_repeats_one_after_the_other() -> None:
    jobs = [
        {"epoch_time_s": [1.0], "took_s": [seconds], "group": "two", "unit": unit}
        for seconds, unit in ((60.0, 0), (90.0, 0), (30.0, 1))
    ]
    assert make_table(jobs).round_minutes == pytest.approx(2.0)
    again = {"epoch_time_s": [1.0] * 4, "took_s": [30.0, 40.0, 50.0, 60.0], "repeat": [0, 0, 1, 1]}
    table = make_table([*jobs, again])
    assert (table.seeds, table.round_minutes) == (2, pytest.approx(3.5))


@pytest.mark.parametrize(
    ("machines", "gpus", "columns"),
    [
        (["H200", "A100"], ["H200", "A100"], ["gpu_name", "cpu_name"]),
        (["H200", "H200"], ["H200", "H200"], []),
        (["H200", "EPYC"], ["H200", "H200"], ["cpu_name"]),
        (["H200", None], ["H200", None], []),
    ],
)
def test_several_machines_are_told_apart_by_a_name(
    machines: list[str | None], gpus: list[str | None], columns: list[str]
) -> None:
    settings = dict.fromkeys([column.name for column in GPU_SETTINGS], None) | {"power_limit_w": None}
    summary = pd.DataFrame({"machine": machines, "gpu_name": gpus, "cpu_name": ["EPYC", "Xeon"], **settings})
    assert list_machine_columns(summary) == columns


def test_a_process_without_a_figure_is_left_out_as_is_one_that_failed() -> None:
    figures = {"epoch_time_s": [2.0, 2.0, 2.0], "cpu_s_per_epoch": [None, 5.0, 6.0]}
    table = make_table([{**figures, "status": ["ok", "ok", "failed"]}])
    assert list(table.collect(table.ended_processes["cpu_s_per_epoch"])[10].values()) == [5.0]


@pytest.mark.parametrize(
    ("facts", "noise"),
    [
        ({"gpu_util_pct": 97.0}, 0.05),
        ({"gpu_util_pct": 96.9}, 0.4),
        ({"gpu_util_pct": 99.0, "gpus": 2}, 0.1),
        ({"gpu_util_pct": 99.0, "epoch_time_s": [1.9]}, 0.4),  # a step of 1.27 times the one before
        ({"gpu_util_pct": 99.0, "before": None}, 0.4),
        ({"gpu_util_pct": 99.0, "batch_size": 48}, 0.4),  # not twice the batch of the row before
        ({"gpu_util_pct": 99.0, "strategy": "dp"}, 0.4),
        ({"gpu_util_pct": 99.0, "group": "two"}, 0.4),
        ({"data_wait_pct": 20.0}, 0.15),
        ({"data_wait_pct": 19.9}, 0.4),
    ],
)
def test_the_noise_that_a_row_borrows(facts: dict[str, object], noise: float) -> None:
    half = {"batch_size": 16, "epoch_time_s": [3.0], "gpus": 1}
    row = {"batch_size": 32, "epoch_time_s": [2.0], "gpus": 1, "before": 10, **facts}
    assert estimate_noise_by_row(make_table([half, row]).summary)[11] == pytest.approx(math.log1p(noise))


def compare(effect: float, *deviations: float) -> Claim:
    """A decided claim on two rows whose pairs of rounds differ by an effect and these deviations."""
    table = make_table(
        [
            {"epoch_time_s": scatter(1.0, *deviations)},
            {"epoch_time_s": scatter(math.exp(effect), *(0 for _ in deviations))},
        ]
    )
    evidence = table.compare(table.rates, 10, 11)
    (claim,) = decide_claims(
        [Claim(metric="", candidate=10, baseline=11, evidence=evidence, design="paired")]
    )
    return claim


def test_rounds_that_settle_and_the_minutes_of_those_that_lack() -> None:
    claim = compare(0.1, -0.05, 0.0, 0.05)
    assert claim.decided.word == "unknown"
    remedy = find_claims_remedy([claim], [claim], 10.0, 1)
    assert remedy is not None
    assert remedy.rounds > 3
    assert remedy.minutes == 10.0 * (remedy.rounds - 3)
    assert find_claims_remedy([claim], [claim], 60.1 / (remedy.rounds - 3), 1) is None  # over an hour
    unknown = find_claims_remedy([claim], [claim], None, 1)
    assert unknown is not None
    assert (unknown.rounds, unknown.minutes) == (remedy.rounds, None)


def test_a_round_brings_each_row_a_process_for_each_repeat() -> None:
    assert make_rounds_remedy(9, 4, 4, 10.0, 2) == Remedy(rounds=5, minutes=30.0)
    assert make_rounds_remedy(9, 4, 4, 10.0, 2, is_of_seeds=True) == Remedy(
        rounds=9, minutes=25.0, is_of_seeds=True
    )
    assert make_rounds_remedy(4, 2, 5, 1.0, 1) is None  # the sweep has gone five rounds


def test_nothing_settles_where_one_claim_takes_too_many_rounds_or_none_is_open() -> None:
    near, far = compare(0.1, -0.05, 0.0, 0.05), compare(0.0001, -0.05, 0.0, 0.05)
    assert find_claims_remedy([near, far], [near, far], None, 1) is None
    assert find_claims_remedy([], [near], None, 1) is None


@pytest.mark.parametrize(
    ("words", "together"),
    [
        (["sure", "unknown"], "sure"),
        (["sure", "likely"], "likely"),
        (["unknown"], "unknown"),
        ([], "unknown"),
    ],
)
def test_claims_together_are_as_sure_as_the_least_sure_that_is_decided(
    words: list[Certainty], together: Certainty
) -> None:
    claim = compare(0.1, -0.05, 0.0, 0.05)
    claims = [replace(claim, verdict=replace(claim.decided, word=word)) for word in words]
    assert join_certainty_of_claims(claims) == together
