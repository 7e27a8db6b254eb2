"""Which rows of a table are compared in top-1, what is said of them, and when their seeds crossed a target."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from gpubench.analysis.certainty.accuracy import SeedPair, decide_top1
from gpubench.analysis.certainty.power import settling_seeds
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.top1 import comparisons, with_crossing
from scipy import stats
from whole_rows import row_with, table_row_with

SIZES = (("batch_size",),)


def seeds(batch, *top1, variant="crop-resize", **values):
    """A row for each seed of one configuration."""
    config = f"c-{batch}-{variant}-{sorted(values.items(), key=str)}"
    return [
        row_with(
            **{
                "trial_id": f"{config}-{number}", "config_id": config, "status": "ok", "batch_size": batch,
                "variant": variant, "gpus": 1, "gpu_name": "H200", "repeat": number, "top1_pct": value,
                "images": {"val_images": 5000}, **values,
            }
        )
        for number, value in enumerate(top1)
    ]  # fmt: skip


def compared(rows, axes=SIZES, fields=("batch_size",)):
    """(compared value, with which, word) of each comparison."""
    return [
        (
            *(tuple(one.value(field) for field in fields) for one in (found.row, found.against)),
            found.decision.word,
        )
        for found in comparisons(merge_repeats(rows), axes, fields)
    ]


def test_each_size_is_compared_with_the_next_smaller_one() -> None:
    rows = [*seeds(128, 66, 66.2, 65.9), *seeds(32, 70, 70.1, 70.2), *seeds(64, 70, 70.1, 70.3)]
    assert compared(rows) == [((64,), (32,), "equal"), ((128,), (64,), "lower")]


def test_fewer_than_three_seeds_claim_nothing_and_cost_no_correction() -> None:
    assert compared([*seeds(32, 70, 70.1), *seeds(64, 50, 50.1)]) == []
    three = [*seeds(32, 70, 70.1, 70.2), *seeds(64, 70, 70.1, 70.3)]
    alone = comparisons(merge_repeats(three), SIZES, ("batch_size",))
    beside = comparisons(merge_repeats([*three, *seeds(128, 50, 50.1)]), SIZES, ("batch_size",))
    assert [one.decision for one in beside] == [one.decision for one in alone]


def test_the_same_seed_again_is_no_other_seed() -> None:
    rows = [*seeds(32, 70, 70.1, 70.2), *seeds(64, 70, 70.1), *seeds(64, 70, 70.1)]
    assert compared(rows) == []


def test_words_are_compared_with_the_first_and_each_among_its_own_sizes() -> None:
    rows = [
        row
        for batch in (32, 64)
        for variant in ("crop-resize", "pre-resized", "cached")
        for row in seeds(batch, 70, 70.1, 70.2, variant=variant)
    ]
    found = compared(rows, (("batch_size",), ("variant",)), ("batch_size", "variant"))
    assert ((32, "cached"), (32, "crop-resize"), "equal") in found
    assert ((64, "cached"), (32, "cached"), "equal") in found
    assert len(found) == 3 + 2 * 2


def test_what_moves_along_an_axis_may_and_another_task_may_not() -> None:
    moved = [*seeds(32, 70, 70.1, 70.2, lr=0.1), *seeds(64, 70, 70.1, 70.3, lr=0.2)]
    assert compared(moved, (("batch_size", "lr"),)) == [((64,), (32,), "equal")]
    assert compared(moved, (("batch_size",), ("lr",))) == []
    aimed = [*seeds(32, 60, 60.1, 60.2, until_top1=60.0), *seeds(64, 60, 60.1, 60.3, until_top1=60.0)]
    assert compared(aimed) == [], "their training ended at the top-1"
    fewer = [*seeds(32, 70, 70.1, 70.2), *seeds(64, 70, 70.1, 70.3, images={"val_images": 1000})]
    assert compared(fewer) == [], "other held-out images"


def test_all_comparisons_of_a_table_are_corrected_for() -> None:
    """By hand, with the guard: p of each is the larger of Welch's and that of either side alone; Holm doubles it."""
    one, other = [70.0, 70.4, 70.2], [69.35, 69.65, 69.5]
    sides = [stats.sem(side) for side in (one, other)]
    apart = sum(one) / 3 - sum(other) / 3
    guard = max(2 * stats.t.sf(apart / error, 2) for error in sides)
    expected = max(stats.ttest_ind(one, other, equal_var=False).pvalue, guard)
    (alone,) = decide_top1([SeedPair(one=one, other=other)])
    first, second = decide_top1([SeedPair(one=one, other=other)] * 2)
    assert alone.differs == pytest.approx(expected)
    assert first.differs == second.differs == pytest.approx(2 * expected)
    assert (alone.word, first.word) == ("higher", "open"), "0.026 is below 0.05, and twice that is not"


def test_seeds_that_would_settle_it() -> None:
    """With a standard deviation of 1 on both sides, 3 points apart: the power of so many seeds by the noncentral t."""
    pair = SeedPair(one=[69.0, 70.0, 71.0], other=[66.0, 67.0, 68.0])
    found = settling_seeds(pair)
    assert found.equality is None, "they do not lie inside the margin"
    assert found.difference == settling_seeds(SeedPair(one=pair.other, other=pair.one)).difference
    # Without the guard: at 2 (n − 1) degrees of freedom four seeds a side are the first with a power of 0.8.
    powers = [
        stats.nct.sf(stats.t.ppf(0.975, 2 * (n - 1)), 2 * (n - 1), 3 / math.sqrt(2 / n)) for n in (3, 4, 5)
    ]
    assert powers[0] < 0.8 < powers[1]
    assert 4 <= found.difference <= 5, "the guard costs a seed at most"


def test_an_open_answer_asks_for_more_seeds_than_there_are() -> None:
    (found,) = comparisons(
        merge_repeats([*seeds(32, 70, 71, 72), *seeds(64, 69.1, 70.9, 71.3)]), SIZES, ("batch_size",)
    )
    assert found.decision.word == "open"
    assert found.settles > 3


def crossed(*times, words=None):
    runs = [
        row_with(status="ok", repeat=number, top1_crossing_s=time, top1_crossing=word)
        for number, (time, word) in enumerate(zip(times, words or ["confirmed"] * len(times), strict=True))
    ]
    return with_crossing(table_row_with(status="ok", repeats=len(runs), runs=runs, top1_crossing_s=times[0]))


def test_a_crossing_over_seeds_has_an_interval() -> None:
    """The geometric mean of 10, 20 and 40 is 20; t of 95 % with 2 degrees of freedom times ln 2 / √3 is 1.7219."""
    row = crossed(10.0, 20.0, 40.0)
    half = stats.t.ppf(0.975, 2) * math.log(2) / math.sqrt(3)
    assert row.top1_crossing_s == pytest.approx(20)
    assert row.top1_crossing_low_s == pytest.approx(20 * math.exp(-half))
    assert row.top1_crossing_high_s == pytest.approx(20 * math.exp(half))
    assert row.top1_crossing == "confirmed"


def test_the_quick_seeds_alone_would_flatter() -> None:
    row = crossed(10.0, None, 40.0)
    assert (row.top1_crossing_s, row.top1_crossing, row.top1_crossing_low_s) == (None, None, None)


def test_it_is_confirmed_where_every_seed_is() -> None:
    assert crossed(1.0, 2.0, words=["confirmed", "unconfirmed"]).top1_crossing == "unconfirmed"


def test_of_one_seed_it_stays_as_stored() -> None:
    row = crossed(12.5)
    assert (row.top1_crossing_s, row.top1_crossing_low_s) == (12.5, None)


def test_further_rounds_are_no_further_seeds() -> None:
    one = row_with(
        status="ok", trial_id="t", config_id="c", repeat=0, host="n1", top1_crossing_s=12.5,
        top1_crossing="confirmed", top1_pct=90.0, time_to_top1_s=3.0, energy_j=8.0,
    )  # fmt: skip
    again = replace(one, round=2, host="n2", epoch_time_source="extrapolated", top1_pct=80.0, top1_crossing_s=None,
                    energy_j=9.0)  # fmt: skip
    (merged,) = merge_repeats([one, again])
    row = with_crossing(merged)
    assert row.repeats == 2
    assert (row.top1_crossing_s, row.top1_crossing, row.top1_crossing_low_s) == (12.5, "confirmed", None)
    assert (row.top1_pct, row.energy_j) == (90.0, 8.0)
