"""What a sweep of groups must not get wrong: each test is of a fault that there was, or nearly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import scripted
from benches import Heard, counts, run_with, sweep_of
from folders import analyze, superseded
from group_desk import BASE, TWO, Desk
from scripted import Scripted, trains_for

from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.sources import DiskSources
from gpubench.record import recording
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.schema.events import RankExit, Result
from gpubench.schema.order import TrialOrder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


@pytest.mark.slow
def test_an_edited_group_takes_no_half_of_the_old_one_away(desk: Desk) -> None:
    text = BASE + '\n[[group]]\nname = "x"\njobs = [{{batch_size = 32}}, {{batch_size = {}}}]\n'
    machine = scripted.computer(1, cpus=2)
    for batch in (64, 128):
        plan = make_plan(parse_experiment(text.format(batch), "test"), machine, DiskSources(), "given")
        work = sweep_of(plan, desk.folder, machine)
        work.load()
        work.runner.results.create_folder()
        store_plan(work)
        run_with(Scripted(), work, Heard(), has_tables=False)
    old = superseded(analyze(Results(desk.folder)))
    kept: dict[str, set[bool]] = {}
    for record in Results(desk.folder).read_records():
        if record.group_id:
            kept.setdefault(record.group_id, set()).add(record.trial_id in old)
    assert list(kept.values()) == [{False}, {False}]


@pytest.mark.slow
def test_a_baseline_that_succeeds_at_last_runs_its_group_again_in_the_same_sweep(desk: Desk) -> None:
    failing = Scripted(
        lambda order: scripted.raises if order.jobs == 1 and order.trial.batch_size == 32 else scripted.trains
    )
    desk.sweep(*TWO, by=failing)
    again = Scripted()
    desk.sweep(*TWO, by=again, retry="failed")
    assert [order.jobs for order in again.launched] == [1, 2, 2]
    assert all("slowdown" in record.result for record in desk.jobs())
    assert counts(desk.sweep(*TWO)) == {"reused": 3}


@pytest.mark.slow
def test_a_job_that_aborts_after_its_result_is_not_to_blame(desk: Desk) -> None:
    def aborts(order: TrialOrder) -> Iterator[scripted.Event]:
        yield from scripted.trains(order)
        yield RankExit(rank=0, code=-6, killed=False, at=1.0)

    def hangs(order: TrialOrder) -> Iterator[scripted.Event]:
        yield from (line for line in scripted.trains(order) if not isinstance(line, Result))
        yield scripted.HANG

    def choose(order: TrialOrder) -> scripted.Script:
        return scripted.trains if order.jobs == 1 else aborts if order.trial.batch_size == 16 else hangs

    assert counts(desk.sweep(*TWO, by=Scripted(choose), timeout="2")) == {"ran": 3, "timed_out": 1}
    one, other = desk.jobs()
    assert (one.status, other.status) == ("skipped", "timeout")


def test_a_neighbour_whose_cpus_reach_further_is_not_charged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.cpus = 4
    monkeypatch.setattr(recording, "compute_tree_cpu_s", lambda *_: 3.0)
    seen: list[float | None] = []
    compute = recording._compute_others_cpu_pct
    monkeypatch.setattr(
        recording, "_compute_others_cpu_pct", lambda *job: [seen.append(compute(*job)), seen[-1]][1]
    )
    desk.sweep("batch_size=16,cpus=1", "batch_size=32,cpus=4")
    narrow, wide = seen[-2:]
    assert narrow is None
    assert wide is not None


def test_a_job_that_was_faster_beside_others_leaves_no_verdict(desk: Desk) -> None:
    def choose(order: TrialOrder) -> scripted.Script:
        return trains_for(8.1) if order.jobs == 1 and order.trial.batch_size == 16 else trains_for(1.0)

    desk.sweep(*TWO, by=Scripted(choose))
    for record in desk.jobs():
        # By the gain alone; the doubt says that it can't be.
        assert record.result["sharing"] == "full"
    assert ["faster-together" in record.doubts for record in desk.jobs()] == [True, False]


def test_only_the_job_whose_trial_alone_is_of_other_versions_says_so(desk: Desk) -> None:
    desk.sweep(batch_size="16,32")
    for path in (desk.folder / "records").glob("*/t*.json"):
        stored = json.loads(path.read_text())
        if stored["trial"]["batch_size"] == 32:
            stored["environment"]["torch"] = "0.9"
            path.write_text(json.dumps(stored))
    assert counts(desk.sweep("batch_size=16", "batch_size=32")) == {"ran": 1, "reused": 2, "stale": 1}
    assert ["solo-stale" in job.doubts for job in desk.jobs()] == [False, True]
