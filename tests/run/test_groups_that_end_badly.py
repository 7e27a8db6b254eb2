"""Sweeps of jobs side by side: baselines that are lacking, members that end badly, what is run again."""

from __future__ import annotations

from pathlib import Path

import pytest
import scripted
from benches import counts
from group_desk import TWO, Desk, in_a_group
from scripted import Scripted

from gpubench.schema.codes import REASONS
from gpubench.schema.order import TrialOrder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


# ---- baselines that are lacking ----


def test_a_baseline_that_failed_leaves_the_slowdown_empty_and_the_group_runs(desk: Desk) -> None:
    by = Scripted(
        lambda order: scripted.raises if order.jobs == 1 and order.trial.batch_size == 32 else scripted.trains
    )
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 3, "failed": 1}
    one, other = desk.jobs()
    assert [r.status for r in (one, other)] == ["ok", "ok"]
    assert one.result["slowdown"] == pytest.approx(1.0)
    assert "slowdown" not in other.result
    assert other.missing["slowdown"] == "the same trial alone has no figures here"
    assert other.missing["solo_epoch_time_s"] == other.missing["slowdown"]
    for record in (one, other):
        assert record.missing["overlap_gain"].startswith("not all jobs have a ")
        assert record.missing["overlap_gain"].endswith(other.missing["slowdown"])
        assert "job 2 of 2" in record.missing["predicted_slowdown"]
    (line,) = [line for line in desk.said if "predicted" in line]
    assert line.endswith(f"not predicted: {one.missing['predicted_slowdown']}")


def test_a_baseline_that_ran_out_of_memory_skips_its_groups(desk: Desk) -> None:
    by = Scripted(
        lambda order: scripted.runs_out_of_gpu_memory if order.trial.batch_size >= 32 else scripted.trains
    )
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 2, "skipped": 1}
    why = "job 2 of 2: batch 32 of the same configuration was out of memory alone"
    assert desk.said == [f"[3/3] 16 & 32  skipped: {why}"]
    found = desk.table()
    assert list(found["status"]) == ["skipped"] * 2
    assert list(found["reason"]) == [why] * 2
    assert found["solo_id"].notna().all()
    # Skipped before it ran: nothing is stored.
    assert len(desk.records()) == 2
    assert counts(desk.sweep(*TWO)) == {"reused": 2, "skipped": 1}


# ---- members that end badly ----


@pytest.mark.slow
def test_jobs_that_do_not_fit_together_are_a_result(desk: Desk) -> None:
    summary = desk.sweep(*TWO, by=in_a_group(scripted.runs_out_when_measured, 32), precision="fp32,bf16")
    # No failure: exit code 0; and the sweep goes on.
    assert counts(summary) == {"ran": 6}
    no_slowdown = REASONS["no-slowdown"].partition("{}")[0]
    for record in desk.jobs():
        if record.trial["batch_size"] == 32:
            assert (record.status, record.reason) == ("oom", "OutOfMemoryError: CUDA out of memory")
        else:
            assert record.status == "skipped"
            assert record.reason == "job 2 of 2 ran out of GPU memory: OutOfMemoryError: CUDA out of memory"
        assert record.missing["overlap_gain"].startswith(no_slowdown)
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, precision="fp32,bf16")) == {"reused": 6}
    assert again.launched == []


@pytest.mark.slow
def test_groups_that_need_more_are_skipped_and_smaller_ones_are_not(desk: Desk) -> None:
    def choose(order: TrialOrder) -> scripted.Script:
        return (
            scripted.runs_out_when_measured if order.jobs * order.trial.batch_size >= 64 else scripted.trains
        )

    by = Scripted(choose)
    summary = desk.sweep(by=by, batch_size="16,32", copies="1,2,3,4,5")
    endings = {(r.trial["batch_size"], r.trial["copies"]): r.status for r in desk.jobs()}
    assert endings == {(16, 2): "ok", (16, 3): "ok", (16, 4): "oom", (32, 2): "oom"}
    skipped = desk.table().query("status == 'skipped' and reason.str.contains('that need no more')")
    found = skipped.groupby(["batch_size", "copies"])["reason"].first().to_dict()
    assert {key: why.split(" ")[0] for key, why in found.items()} == {
        (16, 5): "4", (32, 3): "2", (32, 4): "4", (32, 5): "4",
    }  # fmt: skip
    assert counts(summary) == {"ran": 2 + 3 + 1, "skipped": 1 + 3}, "alone once each"
    assert counts(desk.sweep(batch_size="16,32", copies="1,2,3,4,5")) == {"reused": 6, "skipped": 4}
    again = Scripted()
    assert counts(desk.sweep(by=again, batch_size="16,32", copies="1,2,3,4,5", retry="oom")) == {
        "ran": 2 + 4, "reused": 4,
    }  # fmt: skip
    assert {r.status for r in desk.jobs()} == {"ok"}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "reason"), scripted.DEATHS[:1])
def test_one_that_dies_takes_the_others_along_and_the_whole_group_is_run_again(
    desk: Desk, script: scripted.Script, reason: str
) -> None:
    assert counts(desk.sweep(*TWO, by=in_a_group(script, 16), seed="0,1")) == {"ran": 6, "failed": 2}
    for record in desk.jobs():
        if record.trial["batch_size"] == 16:
            assert (record.status, record.reason) == ("failed", reason)
        else:
            assert (record.status, record.reason) == ("skipped", f"job 1 of 2 failed: {reason}")
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, seed="0,1")) == {"reused": 4, "failed": 2}
    assert again.launched == []
    assert counts(desk.sweep(*TWO, by=again, seed="0", retry="failed")) == {"ran": 1, "reused": 2}
    # The whole group runs again, not only the job that failed.
    assert again.batches == [16, 32]
    assert [(r.attempt, r.status) for r in desk.jobs() if r.trial["seed"] == 0] == [(2, "ok")] * 2
    kept = [r.status for r in desk.records() if r.group and r.trial["seed"] == 0]
    assert sorted(kept) == ["failed", "ok", "ok", "skipped"], "both attempts are kept"


def test_a_job_that_hangs_is_named_and_the_others_were_skipped(desk: Desk) -> None:
    summary = desk.sweep(*TWO, by=in_a_group(scripted.hangs, 32), timeout="3s")
    assert counts(summary) == {"ran": 3, "timed_out": 1}
    one, other = desk.jobs()
    assert (one.status, other.status) == ("skipped", "timeout")
    assert other.reason.endswith("within 3 s")
    assert one.reason.startswith("job 2 of 2 ")
    assert one.reason.endswith(f" timed out: {other.reason}")
    # What it got done is kept.
    assert one.epochs
    assert counts(desk.sweep(*TWO, retry="timeout")) == {"ran": 1, "reused": 2}


@pytest.mark.slow
def test_an_interrupted_group_runs_again_unasked(desk: Desk) -> None:
    by = in_a_group(scripted.hangs, 32)
    summary = desk.sweep(*TWO, by=by, seed="0,1", stop=lambda: len(by.launched) == 4)
    assert counts(summary) == {"ran": 3, "interrupted": True}
    assert [(r.status, r.reason) for r in desk.jobs()] == [("interrupted", "the sweep was stopped")] * 2
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, seed="0,1")) == {"ran": 4, "reused": 2}
    assert [order.jobs for order in again.launched] == [2, 2, 1, 1, 2, 2]
    assert {r.status for r in desk.jobs()} == {"ok"}
