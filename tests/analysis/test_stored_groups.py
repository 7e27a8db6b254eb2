"""What this version makes of groups that another one stored."""

from dataclasses import replace

import pytest
from gpubench.analysis.sharing import evidence
from gpubench.analysis.slowdown import group_verdict
from gpubench.analysis.stored_groups import with_verdicts
from whole_rows import changed, everything, row_with

BUSY = {"gpu_util_pct": 99.0, "gpus": 1, "gpu_ids": [0]}


def row(trial_id, time, iqr, epochs, **more):
    base = {"trial_id": trial_id, "status": "ok", "gpu_name": "H200"}
    return row_with(
        **base | {"epoch_time_s": time, "epoch_time_iqr_s": iqr, "epochs_measured": epochs} | more
    )


def alone(epochs=3, iqr=0.0):
    return [row(f"t{n}", 10.0, iqr, epochs) for n in (1, 2)]


def jobs(time, iqr=0.0, epochs=3, stored_range=None, **more):
    """Two jobs as an earlier version stored them: the word of the gain alone, and a busy GPU for a full one."""
    found = [row(f"j{n}", time, iqr, epochs, **BUSY) for n in (1, 2)]
    resources = [one.as_dict() for one in evidence(found, found, [None] * 2)]
    resources = [one | {"full_together": one["full_together"] or one["name"] == "gpu"} for one in resources]
    facts = {"jobs": 2, "gain_range": stored_range, "resources": resources, "undecidable": None}
    return [
        changed(one, **{"group": "g", "group_id": "g1", "job": f"{n} of 2", "solo_id": f"t{n}",
                        "solo_epoch_time_s": 10.0, "slowdown": time / 10, "overlap_gain": 20 / time - 1,
                        "sharing": "as stored", "full_together": "gpu", "together": facts, "missing": {}} | more)
        for n, one in enumerate(found, 1)
    ]  # fmt: skip


def words(rows):
    (word,) = {row.sharing for row in rows}
    return word


def test_the_word_is_that_of_the_range_of_the_rows_themselves():
    wide = jobs(18.0, iqr=1.5)
    assert words(with_verdicts(wide, alone())) == "between merely concurrent and partly parallel"
    assert words(with_verdicts(jobs(18.0), alone())) == "partly parallel"
    low, high = with_verdicts(wide, alone())[0].verdict.gain_range
    assert low < 20 / 18 - 1 < high


def test_without_the_rows_alone_the_stored_range_counts_unless_two_epochs_made_it():
    stored = [0.05, 0.2]
    assert (
        words(with_verdicts(jobs(18.0, stored_range=stored), []))
        == "between merely concurrent and partly parallel"
    )
    again = [changed(one, epoch_time_s=11.0) for one in alone()]  # measured anew since
    assert words(with_verdicts(jobs(18.0, stored_range=stored), again)).startswith("between")
    two = with_verdicts(jobs(18.0, epochs=2, stored_range=stored), [])
    assert (words(two), two[0].verdict.gain_range) == ("perhaps partly parallel", None)


def test_one_row_alone_of_two_is_not_enough_for_a_range_of_their_own():
    stored = [0.05, 0.2]
    found = with_verdicts(jobs(18.0, iqr=1.5, stored_range=stored), alone()[:1])
    assert found[0].verdict.gain_range == tuple(stored)


def test_one_job_of_two_epochs_leaves_none_of_its_group_a_range():
    mixed = jobs(18.0, stored_range=[0.05, 0.2])
    mixed[1] = changed(mixed[1], epochs_measured=2)
    assert (
        words(with_verdicts(mixed, [])) == words(with_verdicts(mixed, alone())) == "perhaps partly parallel"
    )


def test_a_verdict_that_was_refused_is_judged_anew_where_the_rows_alone_are_there():
    refused = jobs(18.0, together=replace(jobs(18.0)[0].together, undecidable="job 1 was too fast"))
    assert words(with_verdicts(refused, alone())) == "partly parallel"
    for found in with_verdicts(refused, alone()[:1]):
        assert (found.sharing, found.missing["sharing"]) == (None, "job 1 was too fast")


def test_what_an_earlier_version_called_a_verdict_is_refused_by_the_rule_of_today():
    """10 s that chance may have moved by 11.2 s; two epochs of 5 and 15 s, of which records tell both times."""
    wide = jobs(18.0, stored_range=[0.05, 0.2])
    for noisy in (alone(iqr=8.0), [changed(one, epoch_times_s=[5.0, 15.0]) for one in alone(2, iqr=None)]):
        for found in with_verdicts(wide, noisy):
            assert found.sharing is None
            assert found.verdict.why_not.startswith("epoch times spread by as much as they last")
            assert found.missing["sharing"] == found.verdict.why_not


def test_a_busy_gpu_is_no_full_one_and_the_empty_cell_has_its_reason():
    for found in with_verdicts(jobs(20.0), alone()):
        assert found.full_together is None
        assert found.missing["full_together"].startswith("no watched resource is known to have been full")


@pytest.mark.parametrize(
    "more", [{"group_id": None, "group": None, "overlap_gain": None}, {"overlap_gain": None}]
)
def test_other_rows_stay_as_they_are(more):
    """Trials alone, and groups without a gain."""
    rows = [changed(one, **more) for one in jobs(18.0)]
    assert with_verdicts(rows, alone()) == rows


@pytest.mark.parametrize("more", [{"together": {}}, {"together": {}, "group_id": None}, {"group_id": None}])
def test_single_figures_as_of_a_published_log_leave_no_sure_word(more):
    """Whatever spread stands beside them: no facts say what the jobs were compared with, or no id who ran together."""
    rows = [changed(one, **more) for one in jobs(18.0)]
    found = with_verdicts(rows, alone())
    perhaps = group_verdict(20 / 18 - 1, (), ())
    expected = [changed(one, sharing="perhaps partly parallel", verdict=perhaps) for one in rows]
    assert list(map(everything, found)) == list(map(everything, expected))
    refused = [changed(one, together={"undecidable": "why"}, group_id=None) for one in rows]
    assert words(with_verdicts(refused, alone())) is None


def test_two_runs_of_one_group_have_a_word_each():
    one, other = jobs(18.0, group_id="g of 10:00"), jobs(18.0, epochs=2, group_id="g of 11:00")
    found = with_verdicts([*one, *other], alone(iqr=1.5))
    assert [words(found[:2]), words(found[2:])] == [
        "between merely concurrent and partly parallel", "perhaps partly parallel",
    ]  # fmt: skip


def test_jobs_on_unlike_devices_of_one_host_are_judged_as_one_group():
    """One trains on the CPU, the other on a GPU: their machines have unlike names."""
    devices = [{"device": "cuda", "gpu_name": "H200", "cpu_name": "Xeon", "host": "n1"},
               {"device": "cpu", "gpu_name": "H200", "cpu_name": "Xeon", "host": "n1"}]  # fmt: skip
    both = [changed(job, **device) for job, device in zip(jobs(18.0), devices, strict=True)]
    solos = [changed(one, **device) for one, device in zip(alone(), devices, strict=True)]
    assert words(with_verdicts(both, solos)) == "partly parallel"
    far = [changed(both[0], epoch_time_s=7.0, slowdown=0.7), both[1]]
    assert [one.sharing for one in with_verdicts(far, solos)] == [None, None], (
        "one is refused, and so is the group"
    )
