"""What the rules make of jobs that ran together, and of the trials alone that those are compared with."""

import pytest
from test_audit_rules import facts, found, row
from whole_rows import changed

from gpubench.analysis.audit import accuracy, fairness, runs
from gpubench.analysis.audit.facts import Shown

RULES = (accuracy.holds_while_scaling, accuracy.same_run, fairness.strong_or_weak, runs.ended_by_epochs)


def group(*alone, name="three jobs", **of_jobs):
    """Rows of trials alone, and of the same trials as jobs of one group."""
    jobs = [
        changed(one, trial_id=f"j-{one.trial_id}", config_id=f"j-{one.config_id}", group=name,
                job=f"{place} of {len(alone)}", group_id="g1", solo_id=one.trial_id, top1_pct=None,
                epoch_time_s=20.0, **of_jobs)
        for place, one in enumerate(alone, start=1)
    ]  # fmt: skip
    return [*alone, *jobs]


def of_their_own():
    """As in the published log: larger batches on more GPUs, and less top-1 with the larger batch."""
    return group(row(32), row(100, 2, top1_pct=40.0))


def test_jobs_that_differ_in_size_scale_nothing():
    assert found(accuracy.holds_while_scaling, *of_their_own()) == (
        "kept",
        "nothing is scaled: only jobs of groups differ in batch size or devices",
    )
    assert found(fairness.strong_or_weak, *of_their_own()) == (
        "kept",
        "no table varies the number of devices, but for jobs of groups",
    )
    alike = group(row(), row(config_id="again"))
    assert "all rows of a table have one batch size" in found(accuracy.holds_while_scaling, *alike)[1]
    assert "but for jobs" not in found(fairness.strong_or_weak, *alike)[1]


@pytest.mark.parametrize("axis", ["batch_size", "gpus"])
def test_sizes_on_an_axis_are_compared_though_jobs_need_them_too(axis):
    verdict, text = found(accuracy.holds_while_scaling, *of_their_own(), axes=[[axis]])
    assert (verdict, "in 1 of 1 rows" in text) == ("not decidable", True)
    assert found(fairness.strong_or_weak, *of_their_own(), axes=[[axis]])[0] == "broken"


def test_a_trial_of_its_own_beside_a_group_is_compared():
    rows = [*of_their_own(), row(64), row(256, top1_pct=30.0)]
    verdict, text = found(accuracy.holds_while_scaling, *rows)
    assert (verdict, "in 1 of 1 rows" in text) == ("not decidable", True)


def test_jobs_on_several_gpus_claim_nothing_about_several_gpus():
    rows = group(row(32, 4), row(64, 4))
    assert found(fairness.nothing_flattered, *rows)[0] == "kept"
    assert "add 1 to --gpus" in found(fairness.nothing_flattered, *rows, axes=[["batch_size"]])[1]


def test_a_job_may_train_longer_than_its_neighbour():
    assert found(runs.ended_by_epochs, *group(row(epochs=3), row(epochs=5)))[0] == "kept"
    assert found(runs.ended_by_epochs, row(epochs=3), row(128, epochs=5))[0] == "broken"


def test_a_doubt_about_a_job_counts_and_its_group_is_named():
    verdict, text = found(fairness.nothing_flattered, *group(row(), doubts="stranger"))
    assert verdict == "not decidable"
    assert "1 of 2 compared rows carries doubts, the worst stranger (sizes: three jobs: job 1 of 1" in text


def test_a_group_that_is_called_as_its_table_is_named_once():
    text = found(fairness.nothing_flattered, *group(row(), name="sizes", doubts="stranger"))[1]
    assert "the worst stranger (sizes: job 1 of 1" in text


def test_a_shared_gpu_says_what_a_row_is_and_a_stale_baseline_what_is_wrong():
    assert found(fairness.nothing_flattered, *group(row(), doubts="shared-gpu"))[0] == "kept"
    assert "the worst solo-stale" in found(fairness.nothing_flattered, *group(row(), doubts="solo-stale"))[1]


@pytest.mark.parametrize("check", RULES[:2])
def test_jobs_without_any_row_alone_leave_top1_open(check):
    jobs = group(row(), row(128))[2:]
    verdict, text = found(check, *jobs)
    assert (verdict, "beside others" in text) == ("not decidable", True)


@pytest.mark.parametrize("check", RULES)
def test_jobs_do_not_change_what_is_found_about_rows_alone(check):
    alone = [row(64), row(64, 4), row(256, top1_pct=30.0)]
    jobs = group(*alone)[len(alone) :]
    axes = [["batch_size"], ["gpus"]]
    assert found(check, *alone, *jobs, axes=axes)[0] == found(check, *alone, axes=axes)[0]


def test_repeats_of_a_baseline_are_one_baseline():
    alone = [row(config_id="c", repeat=n, gpus=n_gpus) for n, n_gpus in ((0, 2), (1, 2))]
    (table,) = facts(*group(*alone)).tables
    assert isinstance(table, Shown)
    assert len(table.merged) == 1
    assert table.own == []
