"""Which batch size: the choice with its bound, and where memory x time is least, from figures of processes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from gpubench.analyze.batch_size import BatchSeries, find_fastest_series, make_claims, make_findings
from gpubench.analyze.frames import build_runs
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import BatchSizeFinding
from gpubench.schema.row import Row
from gpubench.stats.decisions import decide_claims


def measure(
    rates: Sequence[float],
    memory: Sequence[float],
    scatter: Sequence[float] = (0.0,),
    noise: float | None = None,
    statuses: Mapping[int, str] | None = None,
    **fields: Sequence[object],
) -> TableRows:
    """Rows 0, 1, … with these rates (images/s) and memory (MiB), of batch sizes 8, 16, …

    A process for each relative deviation in `scatter`; deviations alternate between rows, so that pairs of rounds vary,
    too. `noise`: what two processes of such rows may differ by (0.4). `statuses`: of rows that did not end ok.
    """
    statuses = statuses or {}
    lines = []
    for row in range(len(rates)):
        values = {name: column[row] for name, column in fields.items()}
        ok = row not in statuses
        for number in range(len(scatter)):
            deviation = 1 + scatter[(number + row) % len(scatter)]
            lines.append(
                Row.make_from_columns(
                    {"batch_size": 8 * 2**row, "gpus": 1, "strategy": "single", **values},
                    trial_id=f"t{row}",
                    status=statuses.get(row, "ok"),
                    round=number + 1,
                    took_s=30 / len(rates),
                    images_per_epoch=1000 if ok else None,
                    epoch_time_s=1000 * deviation / rates[row] if ok else None,
                    gpu_mem_mib=memory[row] if ok else None,
                )
            )
    runs = build_runs(lines)
    runs["row"] = [row for row in range(len(rates)) for _ in scatter]
    summary = runs.drop_duplicates("row").set_index("row").assign(unit=None)
    return TableRows(
        summary=summary,
        runs=runs,
        noise={} if noise is None else dict.fromkeys(range(len(rates)), math.log1p(noise)),
        varied=("batch_size", *fields),
        axis="batch_size",
    )


def answer(rows: TableRows) -> BatchSizeFinding:
    (finding,) = make_findings(rows, decide_claims(make_claims(rows)))
    return finding


QUIET = (-0.002, 0.0, 0.002)
NOISY = (-0.3, 0.0, 0.3)


def test_the_least_memory_within_5_pct_of_the_best_rate_is_chosen() -> None:
    finding = answer(measure([500, 960, 1000, 990], [1000, 2000, 4000, 8000], QUIET))
    assert finding.choice is not None
    assert finding.choice.row == 1
    assert finding.fastest == 2
    assert finding.speed_gain == pytest.approx(1000 / 960 - 1)
    assert finding.memory_ratio == pytest.approx(2.0)
    assert finding.word == "sure"
    assert finding.remedy is None


def test_a_rate_just_below_95_pct_of_the_best_is_not_chosen() -> None:
    finding = answer(measure([500, 949, 1000], [1000, 2000, 4000], QUIET))
    assert finding.choice is not None
    assert finding.choice.row == 2
    assert finding.fastest is None
    assert finding.slower == (0, 1)


def test_the_bound_of_a_choice_is_what_another_row_may_gain_at_most() -> None:
    finding = answer(measure([500, 960, 1000], [1000, 2000, 4000], QUIET))
    choice = finding.choice
    assert choice is not None
    assert choice.bound is not None
    assert 1000 / 960 - 1 < choice.bound < 0.06
    assert choice.bound == pytest.approx(choice.gains[2])
    assert set(choice.gains) == {2}
    assert finding.as_fast == (2,)


def test_noise_leaves_the_choice_open_and_says_how_many_rounds_tell() -> None:
    finding = answer(measure([900, 1000, 1000], [1000, 2000, 4000], NOISY))
    assert finding.word == "unknown"
    assert finding.choice is not None
    assert finding.choice.bound is not None
    assert finding.choice.bound > 0.25


def test_one_process_a_row_is_likely_at_most_and_rows_within_the_noise_may_be_as_fast() -> None:
    finding = answer(measure([500, 900, 1000], [1000, 2000, 4000], noise=0.4))
    assert finding.word == "likely"
    assert finding.choice is not None
    assert finding.choice.bound is None
    assert finding.as_fast == (1,)
    assert finding.slower == (0,)


def test_memory_x_time_is_least_between_the_steps_that_fall_and_those_that_rise() -> None:
    # costs: 2, 1.25, 1.0, 1.02 (0.02 of noise beside it), 2
    rates = [500, 1000, 2000, 3922, 4000]
    finding = answer(measure(rates, [1000, 1250, 2000, 4000, 8000], (-0.02, 0.0, 0.02)))
    (least,) = finding.least_cost
    assert least.word == "sure"
    assert (least.low, least.high) == (2, 3)
    assert least.row == 2


def test_of_one_process_the_range_is_likely() -> None:
    finding = answer(measure([500, 1000, 1100], [1000, 1100, 2400], noise=0.1))
    (least,) = finding.least_cost
    assert (least.word, least.low, least.high) == ("likely", 1, 1)


def test_where_nothing_is_shown_the_least_is_unknown() -> None:
    finding = answer(measure([500, 1000, 1100], [1000, 1500, 1700], noise=2.0))
    (least,) = finding.least_cost
    assert (least.word, least.low, least.high) == ("unknown", 0, 2)


def test_the_series_with_the_best_rate_among_those_of_three_sizes_is_chosen_from() -> None:
    short = BatchSeries(label={"gpus": 2}, rows=(3, 4))
    long = BatchSeries(label={"gpus": 1}, rows=(0, 1, 2))
    rates = {0: 100.0, 1: 200.0, 2: 300.0, 3: 900.0, 4: 1000.0}
    assert find_fastest_series([short, long], rates) is long
    assert find_fastest_series([short], rates) is short


def test_series_of_several_strategies_are_apart_and_are_named() -> None:
    rows = measure([500, 900, 400, 950], [1000] * 4, QUIET, strategy=["dp", "dp", "ddp", "ddp"])
    finding = answer(rows)
    assert finding.label == {"strategy": "ddp"}
    assert finding.rows == (0, 1, 2, 3)
    assert [(claim.baseline, claim.candidate, claim.series) for claim in finding.claims] == [
        (0, 1, "0"),
        (2, 3, "1"),
    ]


def test_the_first_size_that_ran_out_of_memory_is_named() -> None:
    statuses = {2: "oom", 3: "oom", 4: "interrupted"}
    finding = answer(measure([500, 900, 1, 1, 1], [1000] * 5, QUIET, statuses=statuses))
    assert finding.out_of_memory == 2
    assert finding.interrupted == (4,)


def test_each_network_has_a_choice_of_its_own_with_its_own_claims() -> None:
    models = ["resnet18"] * 3 + ["resnet50"] * 3 + ["lenet"]  # of one size there is nothing to choose
    rows = measure([500, 900, 1000, 100, 130, 131, 9], [1, 2, 4, 2, 4, 8, 1], QUIET, model=models)
    rows.summary["batch_size"] = [8, 16, 32, 8, 16, 32, 8]
    decided = decide_claims(make_claims(rows))
    first, second = make_findings(rows, decided)
    assert (first.label, second.label) == ({"model": "resnet18"}, {"model": "resnet50"})
    assert [each.choice.row for each in (first, second) if each.choice] == [2, 4]
    assert [each.choice.series for each in (first, second) if each.choice] == [(0, 1, 2), (3, 4, 5)]
    assert (first.rows, second.rows) == ((0, 1, 2), (3, 4, 5))
    assert [[claim.candidate for claim in each.claims] for each in (first, second)] == [[1, 2], [4, 5]]
    assert len({claim.family for claim in decided}) == 2
    assert [(cost.row, cost.low, cost.high) for each in (first, second) for cost in each.least_cost] == [
        (0, 0, 0), (3, 3, 3),
    ]  # fmt: skip


def test_where_nobody_knows_the_noise_a_choice_of_one_process_is_unknown() -> None:
    assert answer(measure([500, 1000], [1000, 2000])).word == "unknown"
    assert answer(measure([500, 1000], [1000, 2000], noise=0.4)).word == "likely"


def test_of_one_process_where_every_other_size_may_be_as_fast_nothing_tells_them_apart() -> None:
    finding = answer(measure([800, 900, 1000], [1000, 2000, 4000], noise=0.4))
    assert (finding.word, finding.as_fast, finding.slower) == ("unknown", (0, 1), ())


def test_no_size_of_a_known_load_is_chosen() -> None:
    """Another size of it is other work; networks in the same table are chosen for as without it."""
    loads = measure([100.0, 50.0, 20.0], [1.0, 2.0, 4.0], (0.0, 0.01), model=["matmul"] * 3)
    assert make_claims(loads) == make_findings(loads, []) == []
    models = ["copy", "copy", "lenet", "lenet"]
    mixed = measure([900.0, 50.0, 20.0, 40.0], [1.0, 2.0, 4.0, 5.0], (0.0, 0.01), model=models)
    assert {(claim.candidate, claim.baseline) for claim in make_claims(mixed)} == {(3, 2)}
    (finding,) = make_findings(mixed, decide_claims(make_claims(mixed)))
    assert finding.choice is not None
    assert (finding.choice.row, finding.rows) == (3, (2, 3))
