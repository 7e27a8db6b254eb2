"""How good predictions have been."""

import pytest
from whole_rows import changed, row_with

from gpubench.analysis.slowdown import group_verdict
from gpubench.analysis.track_record import track_record
from gpubench.schema.verdict import Verdict


def row(**more):
    return row_with(**{"status": "ok"} | more)


def told(group_id, name, predicted, measured, ends=(), **more):
    """A job of two, both of which took so many times as long as alone; `ends`: the range of their gain, else no wider
    than it is."""
    gain = 2 / measured - 1
    found = group_verdict(gain, (), (), [Verdict(gain_range=ends or (gain, gain))])
    return changed(row(
        group="g", group_id=group_id, job=name, predicted_slowdown=predicted, slowdown=measured,
        solo_epoch_time_s=10.0, overlap_gain=gain, sharing=found.cell, verdict=found,
    ), **more)  # fmt: skip


def test_the_track_record():
    rows = [
        told("1", "a", 2.0, 2.0), told("1", "b", 2.2, 2.0),  # both merely concurrent
        told("2", "a", 1.0, 2.0), told("2", "b", 1.0, 2.0),  # parallel was predicted
        row(group=None, slowdown=None),
    ]  # fmt: skip
    found = track_record(rows)
    assert [(one.job, one.predicted, one.measured) for one in found.predicted_jobs[:2]] == [
        ("a", 2.0, 2.0), ("b", 2.2, 2.0),
    ]  # fmt: skip
    assert [one.error_pct for one in found.predicted_jobs] == [
        0, pytest.approx(10), pytest.approx(-50), pytest.approx(-50),
    ]  # fmt: skip
    assert found.predicted_jobs[0].solo_epoch_time_s == 10.0
    assert (found.jobs, found.groups, found.verdicts_right) == (4, 2, 1)
    assert found.median_error_pct == pytest.approx(30)


def test_a_group_with_a_job_that_failed_or_was_not_predicted_has_no_verdict_to_judge():
    rows = [told("1", "a", 2.0, 2.0), told("1", "b", 2.0, 2.0), told("1", "c", None, 2.0)]
    found = track_record(rows)
    assert (found.jobs, found.groups, found.verdicts_right) == (2, 0, 0)
    failed = track_record([told("1", "a", 2.0, 2.0), told("1", "b", 2.0, 2.0, status="failed")])
    assert (failed.jobs, failed.groups) == (1, 0)


def pair(predicted, measured, ends=(), **more):
    return [told("1", name, predicted, measured, ends, **more) for name in "ab"]


def counts(rows):
    found = track_record(rows)
    return found.verdicts_right, found.groups, found.undecided, found.too_few, found.without_verdict


def test_a_group_without_a_measured_verdict_is_neither_right_nor_wrong():
    assert counts(pair(2.0, 2.0)) == (1, 1, 0, 0, 0)
    refused = Verdict(why_not="noise")
    assert counts(pair(2.0, 2.0, verdict=refused)) == (0, 0, 0, 0, 1)
    assert counts(pair(2.0, 2.0, verdict=None)) == (0, 0, 0, 0, 1)
    assert track_record(pair(2.0, 2.0, verdict=refused)).jobs == 2, "how far the slowdowns were off is known"


def test_between_two_verdicts_only_one_that_is_ruled_out_is_decided():
    assert counts(pair(2.0, 1.8, (0.05, 0.2))) == (0, 0, 1, 0, 0)
    assert counts(pair(1.5, 1.8, (0.05, 0.2))) == (0, 0, 1, 0, 0)
    assert counts(pair(1.0, 1.8, (0.05, 0.2))) == (0, 1, 0, 0, 0), "parallel it was not"
    assert counts(pair(1.5, 1.8, (0.0, 1.0))) == (0, 0, 1, 0, 0), "partly parallel lies between the ends"
    assert counts(pair(2.0, 2.0, (-0.1, 0.09))) == (1, 1, 0, 0, 0)


@pytest.mark.parametrize("predicted", [2.0, 1.5, 1.0])
def test_where_nobody_knows_how_sure_the_measured_verdict_is_none_is_right_or_wrong(predicted):
    rows = pair(predicted, 2.0, verdict=group_verdict(0.0, (), ()))
    assert counts(rows) == (0, 0, 0, 1, 0)


def test_groups_without_an_id_go_by_their_name():
    rows = [told(None, "a", 2.0, 2.0), told(None, "b", 2.0, 2.0), told(None, "a", 1.0, 1.0, group="other")]
    assert track_record(rows).groups == 1


def test_no_track_record_yet():
    found = track_record([row(group="g", job="a")])
    assert (found.jobs, found.groups, found.verdicts_right) == (0, 0, 0)
    assert found.median_error_pct is None


def test_a_verdict_on_a_group_beside_other_work_decides_nothing():
    before = [Verdict(gain_range=(0.0, 0.0), beside_others=True)]
    found = group_verdict(0.0, (), (), before)
    record = track_record([told("1", name, 2.0, 2.0, verdict=found) for name in "ab"])
    assert (record.groups, record.undecided) == (0, 1)
