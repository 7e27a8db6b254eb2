"""Repeats merged: what is kept of each, and when they lie too far apart."""

import pytest

from gpubench import result
from gpubench.analysis.repeats import SPREAD, apart, merge_repeats, with_spread


def repeats(*times, **more):
    base = dict.fromkeys(result.BY_NAME) | {"config_id": "c", "status": "ok", "doubt_texts": {}}
    return [
        base | {"trial_id": f"t{n}", "repeat": n, "epoch_time_s": time} | more for n, time in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("times", "wide"),
    [
        ((1.0,), False),
        ((1.0, 1.04), False),
        ((1.0, 1.06), True),
        ((1.0, 1.0, 1.0, 1.0, 9.0), False),  # one outlier is no spread
        ((1.0, 1.1, 1.2, 1.3), True),
    ],
)
def test_repeats_that_lie_apart_are_a_doubt(times, wide):
    assert apart(times) is wide
    (merged,) = merge_repeats(repeats(*times))
    assert (merged["doubts"] == "spread") is wide
    assert merged["doubt_texts"] == ({"spread": SPREAD} if wide else {})


def test_a_rank_has_no_median_and_a_top1_that_one_repeat_missed_no_time():
    rows = repeats(1.0, 1.0, 1.0, slowest_rank=3, time_to_top1_s=9.0, until_top1=50.0)
    assert merge_repeats(rows)[0]["slowest_rank"] == 3
    assert merge_repeats(rows)[0]["time_to_top1_s"] == 9.0
    rows[0] |= {"slowest_rank": 0, "time_to_top1_s": None}
    (merged,) = merge_repeats(rows)
    assert (merged["slowest_rank"], merged["time_to_top1_s"], merged["reached"]) == (None, None, 2)


def test_other_doubts_stay_and_failed_repeats_show():
    rows = repeats(1.0, 2.0, doubts="dp", doubt_texts={"dp": "copies"})
    rows += [rows[0] | {"status": "failed", "epoch_time_s": None, "reason": "killed", "doubts": None}]
    (merged,) = merge_repeats(rows)
    assert merged["doubts"] == "dp+spread"
    assert set(merged["doubt_texts"]) == {"dp", "spread"}
    assert (merged["endings"], merged["repeats"], merged["reason"]) == ("2 ok, 1 failed", 2, "killed")


def test_each_repeat_of_a_row_that_spreads_carries_the_doubt():
    rows = [*repeats(1.0, 2.0, doubts="dp"), repeats(1.0)[0] | {"config_id": "other"}]
    failed = rows[0] | {"status": "failed", "doubts": None}
    assert [row["doubts"] for row in with_spread([*rows, failed])] == ["dp+spread", "dp+spread", None, None]
    assert rows[0]["doubts"] == "dp", "records stay as they are"


def in_group(*slowdowns, **more):
    """Repeats of one job of a group, which differ in how much they overlapped."""
    rows = repeats(*(2.0 for _ in slowdowns), group="g", job="1 of 2", **more)
    return [
        row | {"slowdown": s, "overlap_gain": 2 / s - 1, "group_id": f"g{9 - n}", "solo_id": f"t{n}",
               "sharing": "partly parallel", "full_together": "cpu+gpu" if n else "cpu",
               "together": {"jobs": 2, "gain_range": [2 / s - 1.1, 2 / s - 0.9]}}
        for n, (row, s) in enumerate(zip(rows, slowdowns, strict=True))
    ]  # fmt: skip


def test_repeats_of_a_group_keep_one_verdict_and_the_range_of_all():
    (merged,) = merge_repeats(in_group(1.6, 1.9, 2.0))
    assert merged["overlap_gain"] == pytest.approx(2 / 1.9 - 1)
    assert merged["sharing"] == "merely concurrent", "of the median, not of the first"
    assert merged["full_together"] == "cpu+gpu"
    assert merged["together"]["gain_range"] == pytest.approx([-0.1, 0.35])
    assert (merged["group_id"], merged["solo_id"]) == ("g7", "t0")


def test_jobs_of_a_group_keep_one_id_whatever_their_order():
    rows = in_group(1.6, 1.9)
    other = [row | {"job": "2 of 2"} for row in reversed(rows)]
    other[0] |= {"status": "failed"}
    assert {row["group_id"] for row in merge_repeats([*rows, *other])} == {"g8"}


def test_what_was_full_in_few_repeats_was_not_full():
    rows = in_group(1.6, 1.6, 1.6)
    for row, full in zip(rows, ("cpu", None, None), strict=True):
        row["full_together"] = full
    assert merge_repeats(rows)[0]["full_together"] is None


def test_a_group_without_ranges_has_that_of_its_gains():
    rows = [row | {"together": {"jobs": 2, "gain_range": None}} for row in in_group(1.6, 2.0)]
    assert merge_repeats(rows)[0]["together"]["gain_range"] == pytest.approx([0.0, 0.25])
