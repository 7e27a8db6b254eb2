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
