"""What more devices bring: the rows that are compared, efficiencies, and which strategy comes first."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_tables import make_table

from gpubench.analyze import devices
from gpubench.stats.decisions import decide_claims


def row(time_s: float, strategy: str, gpus: int, **facts: Any) -> dict[str, Any]:
    return {"epoch_time_s": [time_s], "strategy": strategy, "gpus": gpus, **facts}


ROWS = [
    row(8.0, "single", 1, batch_size=64),
    row(8.0, "single", 1, batch_size=128),
    row(5.0, "dp", 2, batch_size=128, strong_baseline=11),
    row(2.5, "ddp", 4, batch_size=256, weak_baseline=10),
    row(4.0, "ddp", 2, batch_size=128, strong_baseline=11, weak_baseline=10),
]


def test_each_row_is_against_its_baselines_by_the_same_batch_and_the_same_batch_a_device() -> None:
    table = make_table(ROWS)
    ddp, dp = devices.make_findings(table, decide_claims(devices.make_claims(table)))
    assert (ddp.strategy, dp.strategy) == ("ddp", "dp")  # the one with the best rate first
    assert [
        (each.claim.candidate, each.claim.baseline, each.devices, each.baseline_devices)
        for each in ddp.speed_ups
    ] == [(14, 11, 2, 1), (13, 10, 4, 1), (14, 10, 2, 1)]
    assert [each.same_batch_a_device for each in ddp.speed_ups] == [False, True, True]
    assert [each.efficiency for each in ddp.speed_ups] == pytest.approx([1.0, 0.8, 1.0])
    assert [each.efficiency for each in dp.speed_ups] == pytest.approx([0.8])
    assert ddp.word == "likely"
    assert {claim.family for claim in ddp.claims}.isdisjoint(claim.family for claim in dp.claims)


def test_a_baseline_without_a_rate_and_the_row_itself_are_no_comparison() -> None:
    table = make_table(
        [{"strategy": "single", "gpus": 1, "status": "oom"}, row(4.0, "ddp", 2, strong_baseline=10)]
    )
    assert devices.make_claims(table) == []
    assert devices.make_claims(make_table([row(4.0, "ddp", 2, strong_baseline=10)])) == []


def test_rows_that_only_serve_groups_of_jobs_are_not_compared() -> None:
    assert devices.make_claims(make_table(ROWS[::-1])) != []
    assert devices.make_claims(make_table(ROWS[::-1], has_only_baselines=True)) == []


def test_on_a_cpu_ranks_are_the_devices() -> None:
    table = make_table(
        [
            row(8.0, "single", 0, device="cpu", ranks=1),
            row(5.0, "ddp", 0, device="cpu", ranks=2, strong_baseline=10),
        ]
    )
    (finding,) = devices.make_findings(table, decide_claims(devices.make_claims(table)))
    (speed_up,) = finding.speed_ups
    assert (speed_up.devices, speed_up.baseline_devices) == (2, 1)
    assert speed_up.efficiency == pytest.approx(0.8)


def test_efficiency_is_over_how_many_times_the_devices_of_the_baseline() -> None:
    table = make_table([row(8.0, "ddp", 2), row(5.0, "ddp", 4, strong_baseline=10)])
    (finding,) = devices.make_findings(table, decide_claims(devices.make_claims(table)))
    assert finding.speed_ups[0].efficiency == pytest.approx(0.8)
    assert finding.speed_ups[0].baseline_devices == 2


def test_a_row_that_knows_neither_gpus_nor_ranks_is_of_one_device() -> None:
    table = make_table([row(1.0, "single", 0, ranks=None), row(1.0, "dp", 2, ranks=3)])
    assert table.devices.tolist() == [1, 2]
