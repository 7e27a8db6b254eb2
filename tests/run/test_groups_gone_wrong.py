"""What a sweep of groups must not get wrong: each test is of a fault that there was, or nearly."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Heard, count_again, counts, run_with, sweep_of
from folders import analyze, rows_of_table, superseded
from group_desk import BASE, TWO, Desk
from scripted import Scripted, trains_for

from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.sources import Disk
from gpubench.record import recording
from gpubench.results.csv_text import csv_cell
from gpubench.results.store import Results
from gpubench.run.closing import finish
from gpubench.run.stored_plan import store_plan
from gpubench.schema.doubts import doubt_of
from gpubench.schema.events import RankExit, Result
from gpubench.schema.order import TrialOrder


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


@pytest.mark.slow
def test_an_axis_that_one_job_settles_leaves_every_group_whole(desk: Desk) -> None:
    desk.sweep("optimizer=adam", "batch_size=128", batch_size="32,64")
    folder = analyze(Results(desk.folder))
    assert not superseded(folder)
    groups = [row["group_id"] for row in rows_of_table(folder) if row["group"]]
    assert sorted(groups.count(one) for one in set(groups)) == [2, 2]
    assert any("batch_size=32/128" in line for line in desk.said), "and they are told apart"


@pytest.mark.slow
def test_an_edited_group_takes_no_half_of_the_old_one_away(desk: Desk) -> None:
    text = BASE + '\n[[group]]\nname = "x"\njobs = [{{batch_size = 32}}, {{batch_size = {}}}]\n'
    machine = scripted.computer(1, cpus=2)
    for batch in (64, 128):
        plan = make_plan(parse(text.format(batch), "test"), machine, Disk(), "given")
        work = sweep_of(plan, desk.folder, machine)
        work.load()
        work.runner.results.create()
        store_plan(work)
        run_with(Scripted(), work, Heard())
    old = superseded(analyze(Results(desk.folder)))
    kept: dict[str, set[bool]] = {}
    for record in Results(desk.folder).records():
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
    assert all("slowdown" in vars(record.result) for record in desk.jobs())
    assert counts(desk.sweep(*TWO)) == {"reused": 3}


@pytest.mark.slow
def test_another_allowance_of_cpus_is_another_answer(tmp_path: Path) -> None:
    for cpus in (4, 8):
        desk = Desk(folder=tmp_path / "r", cpus=cpus)
        by = Scripted()
        desk.sweep(*TWO, cpu_sharing="pinned", by=by)
        assert [(order.jobs, len(order.cpu_ids)) for order in by.launched] == [
            (1, cpus // 2), (1, cpus // 2), (2, cpus // 2), (2, cpus // 2)
        ]  # fmt: skip


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


def neighbours_seen(monkeypatch: pytest.MonkeyPatch) -> list[recording.OtherJobs]:
    """What is found out of the jobs beside each job, as a sweep finds it."""
    seen: list[recording.OtherJobs] = []
    told = recording._find_other_jobs

    def noting(jobs: Any, index: int) -> recording.OtherJobs:
        seen.append(told(jobs, index))
        return seen[-1]

    monkeypatch.setattr(recording, "_find_other_jobs", noting)
    return seen


def test_a_neighbour_whose_cpus_reach_further_is_not_charged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.cpus = 4
    monkeypatch.setattr(recording, "cpu_s", lambda *_: 3.0)
    seen = neighbours_seen(monkeypatch)
    desk.sweep("batch_size=16,cpus=1", "batch_size=32,cpus=4")
    narrow, wide = seen[-2:]
    assert narrow.cpu_pct is None
    assert wide.cpu_pct is not None


@pytest.mark.slow
def test_a_neighbour_whose_cpus_reach_further_hides_what_another_one_spent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two neighbours lies within the job's CPUs: what both spent there is still not known."""
    desk.cpus = 4
    monkeypatch.setattr(recording, "cpu_s", lambda *_: 3.0)
    seen = neighbours_seen(monkeypatch)
    desk.sweep("batch_size=16,cpus=1", "batch_size=32,cpus=1", "batch_size=64,cpus=4")
    one, other, wide = seen[-3:]
    assert one.cpu_pct is None
    assert other.cpu_pct is None
    assert wide.cpu_pct is not None


def test_slowed_jobs_are_no_measure_of_how_long_a_trial_takes(desk: Desk) -> None:
    slow = Scripted(lambda order: scripted.trains if order.jobs == 1 else trains_for(order.trial.batch_size))
    desk.sweep(*TWO, by=slow)
    work = desk.work(*TWO)
    work.load()
    alone, *_, group = work.estimates(work.plan.units)
    assert group.seconds == pytest.approx(2 * alone.seconds, rel=0.01)


@pytest.mark.slow
def test_a_baseline_of_a_group_that_can_not_run_is_not_trained(desk: Desk) -> None:
    by = Scripted()
    assert counts(desk.sweep(copies="3", cpu_sharing="pinned", cpus="2", by=by)) == {"skipped": 2}
    assert by.launched == []
    assert "3 copies" in desk.said[0]
    assert "needs 6 CPUs" in desk.said[0]
    # Asked for by itself it runs.
    assert counts(desk.sweep(copies="1,3", cpus="2", by=Scripted())) == {"ran": 2}


def test_a_job_that_was_faster_beside_others_leaves_no_verdict(desk: Desk) -> None:
    def choose(order: TrialOrder) -> scripted.Script:
        return trains_for(8.1) if order.jobs == 1 and order.trial.batch_size == 16 else trains_for(1.0)

    desk.sweep(*TWO, by=Scripted(choose))
    for record in desk.jobs():
        # By the gain alone; the doubt says that it can't be.
        assert record.result.sharing == "full"
    assert ["faster-together" in record.doubts for record in desk.jobs()] == [True, False]


def test_what_the_machine_has_no_room_for_is_skipped_whoever_reads_the_folder(desk: Desk) -> None:
    desk.sweep(copies="1,3", cpu_sharing="shared,pinned", cpus="2")
    rows = rows_of_table(analyze(Results(desk.folder)))
    states = [(row["group"], row["status"], row["reason"]) for row in rows if row["status"] != "ok"]
    why = "needs 6 CPUs for jobs pinned to their own, 2 may be used"
    assert states == [("3 copies", "skipped", why)] * 3


@pytest.mark.slow
def test_a_group_beside_a_trial_alone_of_other_versions_says_so(desk: Desk) -> None:
    """The trial alone was measured under an older torch; only the group runs anew."""
    desk.sweep(batch_size="16")
    for path in (desk.folder / "records").glob("*/t*.json"):
        stored = json.loads(path.read_text())
        stored["environment"]["torch"] = "0.9"
        path.write_text(json.dumps(stored))
    assert counts(desk.sweep(copies="2", batch_size="16")) == {"ran": 1, "reused": 1, "stale": 1}
    assert all("solo-stale" in job.doubts for job in desk.jobs())
    assert counts(desk.sweep(copies="2", batch_size="16")) == {"reused": 2, "stale": 2}
    assert counts(desk.sweep(copies="2", batch_size="16", retry="stale")) == {"ran": 2}
    assert not any("solo-stale" in job.doubts for job in desk.jobs())


@pytest.mark.slow
@pytest.mark.parametrize("old", [0, 1])
def test_only_the_job_whose_trial_alone_is_of_other_versions_says_so(desk: Desk, old: int) -> None:
    desk.sweep(batch_size="16,32")
    for path in (desk.folder / "records").glob("*/t*.json"):
        stored = json.loads(path.read_text())
        if stored["trial"]["batch_size"] == (16, 32)[old]:
            stored["environment"]["torch"] = "0.9"
            path.write_text(json.dumps(stored))
    assert counts(desk.sweep("batch_size=16", "batch_size=32")) == {"ran": 1, "reused": 2, "stale": 1}
    assert ["solo-stale" in job.doubts for job in desk.jobs()] == [number == old for number in (0, 1)]


@pytest.mark.slow
def test_json_lines_of_what_was_done_already_say_what_the_tables_say(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """Doubts about repeats and verdicts follow from other rows, and so stand in no record."""
    by_seed = Scripted(lambda order: scripted.trains_for(0.5 * (1 + order.seed)))
    desk.sweep(*TWO, by=by_seed, repeats=2, epochs="2")
    for path in (desk.folder / "records").glob(
        "*/g*.json"
    ):  # the verdict of a version that this one contradicts
        path.write_text(re.sub(r'"sharing": "[^"]*"', '"sharing": "parallel"', path.read_text()))
    work = desk.work(*TWO, repeats=2, epochs="2")
    planned = work.list_round(1)
    ended = count_again(work)
    finish(work, planned, ended, ended.limits, Heard(), "json")
    lines = {line["trial_id"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    with (desk.folder / "trials.csv").open(newline="") as file:
        rows = {row["trial_id"]: row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert {
        name: {column: csv_cell(line.get(column)) for column in rows[name]} for name, line in lines.items()
    } == rows
    assert {row["sharing"] for row in rows.values() if row["group"]} != {"parallel"}
    spread = [line for line in lines.values() if "spread" in (line.get("doubts") or "")]
    assert len(spread) == 8
    assert {line["doubt_texts"]["spread"] for line in spread} == {doubt_of("spread").says}


def test_the_line_of_the_last_repeat_knows_the_others(desk: Desk) -> None:
    desk.sweep(by=Scripted(lambda order: scripted.trains_for(0.5 * (1 + order.seed))), repeats=2, epochs="2")
    assert ["spread" in (row.doubts or "") for row in desk.emitted] == [False, True]
