"""Sweeps that work through one plan together: what each takes next, and what the others have found."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Ended, Heard, counts, run_with, sweep_of
from scripted import Driver, Scripted

from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.basics.errors import UnusableError
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import Plan, Unit, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.state import PlannedUnit
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.counting import list_superseded_records, select_counting_records
from gpubench.results.store import Results
from gpubench.run.sweep_state import SweepState
from gpubench.run.work_queue import WorkQueue
from gpubench.store.holder import HolderProcess
from gpubench.store.work_claims import SILENT_S, WorkClaims

ASKED = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nrounds = {rounds}\nepochs = 2\n'


def plan_of(device: str, jobs: tuple[str, ...] = (), rounds: int = 1, **fields: str) -> Plan:
    asked = apply_options(
        parse_experiment(ASKED.format(rounds=rounds), "x"), ExperimentOptions(fields=fields, jobs=jobs)
    )
    return expand_experiment(asked, device=device, sources=DiskSources())


def sweep_in(folder: Path, plan: Plan, gpus: int = 0, **settings: object) -> SweepState:
    work = sweep_of(plan, folder, scripted.computer(gpus), **settings)  # type: ignore[arg-type]
    work.runner.results.create_folder()
    work.load()
    return work


def open_queue(work: SweepState) -> WorkQueue:
    return WorkQueue.build(work)


def unit(plan: Plan, batch: int) -> Unit:
    return next(one for one in plan.units if not one.is_group and one.jobs[0].trial.batch_size == batch)


def claim_elsewhere(queue: WorkQueue, claimed: Unit, number: int = 1) -> Path:
    """Has a process of another host claim it."""
    owner = HolderProcess(host="n2", boot="b", pid_namespace="p", pid=1, began="7")
    folder, item = queue.state.runner.results.folder, queue.make_work_item(claimed, number)
    claims = WorkClaims(folder, owner=owner)
    assert claims.claim_item(item, lambda: False) == "mine"
    return folder / "records" / item.unit_id[1:3] / claims.name


def test_what_somebody_else_has_measured_meanwhile_is_done(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    queue = open_queue(first)
    run_with(Scripted(), second, Heard(), has_tables=False)
    assert queue.claim_turn(unit(plan, 8), 1) == ("done", "")
    # What the other has stored is known from now on.
    assert sorted(one.trial["batch_size"] for one in first.records) == [8, 16]
    assert first.measured == set()


def test_what_is_stored_while_it_is_claimed_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who measured it has stored it after the look for it, and given it back before the claim."""
    plan = plan_of("cpu", batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    queue = open_queue(first)

    def measure_elsewhere(*_: object) -> str:
        run_with(Scripted(), second, Heard(), has_tables=False)
        return "mine"

    monkeypatch.setattr(queue.claims, "claim_item", measure_elsewhere)
    assert queue.claim_turn(unit(plan, 8), 1) == ("done", "")


def test_what_a_sweep_begins_with_is_claimed_in_the_round_that_lacks_it(tmp_path: Path) -> None:
    plan = plan_of("cpu", rounds=2, batch_size="8,16")
    work = sweep_in(tmp_path, plan)
    queue = open_queue(work)
    item = PlannedUnit(unit(plan, 8), "run", rounds=(2,))
    queue.claim_first_unit([PlannedUnit(unit(plan, 16), "done"), item])
    (claim,) = (tmp_path / "records").rglob("*-r*")
    assert (claim.name.split("-r")[0], claim.name.split("-r")[1].split("-")[0]) == (item.unit.unit_id, "2")


def test_what_failed_elsewhere_is_not_tried_again_by_all(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    first = sweep_in(tmp_path, plan, retry=frozenset({"failed"}))
    second = sweep_in(tmp_path, plan, retry=frozenset({"failed"}))
    failing = Scripted(lambda _: scripted.raises)
    queue = open_queue(first)
    # Nor does one try it again and again.
    assert run_with(failing, second, Heard(), has_tables=False).failed == 1
    assert queue.claim_turn(unit(plan, 8), 1)[0] == "done"


@pytest.mark.parametrize(
    ("script", "came_of_it"),
    [(None, {"ran": 1, "reused": 1}), (scripted.raises, {"ran": 1, "failed": 1, "reused": 1})],
    ids=["ok", "failed"],
)
def test_beside_others_a_fresh_sweep_counts_what_was_measured_by_whom(
    tmp_path: Path, script: Any, came_of_it: dict[str, int]
) -> None:
    """All of it counts from an older sweep, too."""
    plan = plan_of("cpu", batch_size="8,16")
    run_with(Scripted(), sweep_in(tmp_path, plan), Heard(), has_tables=False)
    first, second = sweep_in(tmp_path, plan, fresh=True), sweep_in(tmp_path, plan, fresh=True)
    beside: list[Ended] = []

    def measure_beside(_: object) -> None:
        if not beside:
            launcher = Scripted(lambda _: script) if script else Scripted()
            beside.append(run_with(launcher, second, Heard(), has_tables=False))

    ended = run_with(Scripted(), first, Heard(), emit=measure_beside, has_tables=False)
    assert [counts(each) for each in (*beside, ended)] == [came_of_it, {"ran": 1, "reused": 1}]


def test_what_was_interrupted_elsewhere_is_run(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    queue = open_queue(first)
    launcher = Scripted()
    run_with(launcher, second, Heard(), lambda: bool(launcher.launched), has_tables=False)
    assert [one.status for one in second.records] == ["interrupted"]
    assert queue.claim_turn(unit(plan, 8), 1) == ("run", "")


def test_a_round_of_another_is_no_answer_to_this_one(tmp_path: Path) -> None:
    plan = plan_of("cpu", rounds=2, batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan_of("cpu", batch_size="8"))
    queue = open_queue(first)
    run_with(Scripted(), second, Heard(), has_tables=False)
    assert queue.claim_turn(unit(plan, 8), 1)[0] == "done"
    assert queue.claim_turn(unit(plan, 8), 2)[0] == "run"


def test_a_group_and_its_trials_alone_are_taken_as_one(tmp_path: Path) -> None:
    plan = plan_of("cpu", ("batch_size=8,cpus=1", "batch_size=16,cpus=1"))
    work = sweep_in(tmp_path, plan)
    group = next(one for one in plan.units if one.is_group)
    queue = open_queue(work)
    assert len(plan.units) == 3
    assert len({queue.lots[one.unit_id] for one in plan.units}) == 1
    claim_elsewhere(queue, next(one for one in plan.units if one.unit_id == queue.lots[group.unit_id]))
    assert queue.claim_turn(group, 1)[0] == "theirs"
    assert queue.claim_turn(unit(plan, 16), 1)[0] == "theirs"


def test_what_is_taken_as_one_stands_together_and_all_is_there(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16", copies="1,2")
    work = sweep_in(tmp_path, plan)
    queue = open_queue(work)
    given = work.list_planned_of_round(1)[::-1]
    # Without others at work it keeps the order of the round.
    assert queue.list_in_queue_order(given) == given
    queue.place = 0.0
    planned = queue.list_in_queue_order(given)
    assert sorted(item.unit.unit_id for item in planned) == sorted(one.unit_id for one in plan.units)
    lots = [queue.lots[item.unit.unit_id] for item in planned]
    assert len(set(lots)) > 1
    assert [lot for lot, _ in itertools.groupby(lots)] == list(dict.fromkeys(lots)), "none begins twice"
    for lot in set(lots):
        of_lot = [item for item in planned if queue.lots[item.unit.unit_id] == lot]
        assert of_lot == [item for item in given if queue.lots[item.unit.unit_id] == lot]


def test_beside_others_it_begins_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of("cpu", batch_size="8,16", precision="fp32,bf16")
    work = sweep_in(tmp_path, plan)
    assert open_queue(work).place is None
    claim_elsewhere(open_queue(work), plan.units[0])
    assert open_queue(work).place is not None
    (tmp_path / "records").rename(tmp_path / "gone")
    assert open_queue(work).place is None
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    # Others of its array are about to come.
    assert open_queue(work).place is not None


def test_a_larger_batch_waits_while_a_smaller_one_may_run_out_of_memory(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64,256")
    work = sweep_in(tmp_path, plan, gpus=1)
    queue = open_queue(work)
    taken = claim_elsewhere(queue, unit(plan, 16))
    assert queue.claim_turn(unit(plan, 64), 1)[0] == "waits"
    assert queue.claim_turn(unit(plan, 16), 1)[0] == "theirs"
    taken.unlink()
    assert queue.claim_turn(unit(plan, 64), 1)[0] == "run"


def test_it_does_not_wait_where_what_ran_says_that_it_fits(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64,256,1024")
    work = sweep_in(tmp_path, plan, gpus=1)
    ran = sweep_of(
        plan_of("cuda", batch_size="16"),
        tmp_path,
        scripted.computer(1),
        nvml=Driver(mib={os.getpid(): 8000.0}),
    )
    queue = open_queue(work)
    run_with(Scripted(), ran, Heard(), has_tables=False)
    claim_elsewhere(queue, unit(plan, 64))
    # 16 times 8,000 MiB is less than 90 % of 143,771.
    assert queue.claim_turn(unit(plan, 256), 1)[0] == "run"
    assert queue.claim_turn(unit(plan, 1024), 1)[0] == "waits"


def test_a_further_round_waits_for_nobody_s_memory(tmp_path: Path) -> None:
    plan = plan_of("cuda", rounds=2, batch_size="16,64")
    work = sweep_in(tmp_path, plan, gpus=1)
    queue = open_queue(work)
    claim_elsewhere(queue, unit(plan, 16))
    assert queue.claim_turn(unit(plan, 64), 2)[0] == "run"


def test_what_ran_out_of_memory_elsewhere_is_not_tried_with_a_larger_batch(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64")
    first, second = (
        sweep_in(tmp_path, plan, gpus=1),
        sweep_in(tmp_path, plan_of("cuda", batch_size="16"), gpus=1),
    )
    queue = open_queue(first)
    run_with(Scripted(lambda _: scripted.runs_out_of_gpu_memory), second, Heard(), has_tables=False)
    turn, why = queue.claim_turn(unit(plan, 64), 1)
    assert turn == "skip"
    assert why.startswith("batch 16 ")


@pytest.mark.slow
def test_what_is_stored_while_the_tables_are_written_is_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last of two that end at once would write over what the other one has."""
    plan = plan_of("cpu", batch_size="8,16")
    first = sweep_in(tmp_path, plan_of("cpu", batch_size="8"))
    second = sweep_in(tmp_path, plan)
    write = SweepState.write_tables

    def write_late(work: SweepState) -> None:
        if work is first and not second.records:
            run_with(Scripted(), second, Heard())
        write(work)

    monkeypatch.setattr(SweepState, "write_tables", write_late)
    run_with(Scripted(), first, Heard())
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 3


def test_a_claim_that_a_dead_one_has_left_on_what_is_done_keeps_nobody_waiting(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64")
    work = sweep_in(tmp_path, plan, gpus=1)
    ran = sweep_in(tmp_path, plan_of("cuda", batch_size="16"), gpus=1)
    queue = open_queue(work)
    run_with(Scripted(lambda _: scripted.raises), ran, Heard(), has_tables=False)
    claim_elsewhere(queue, unit(plan, 16))
    # 16 has failed, and says nothing of memory.
    assert queue.claim_turn(unit(plan, 64), 1)[0] == "run"


def test_who_has_other_cpus_measures_for_itself_and_takes_nothing_away(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16")
    two = sweep_of(plan, tmp_path, scripted.computer(cpus=2))
    one = sweep_of(plan, tmp_path, scripted.computer(cpus=1))
    for work in (two, one):
        work.runner.results.create_folder()
        work.load()
    run_with(Scripted(), two, Heard(), has_tables=False)
    summary = run_with(Scripted(), one, Heard(), has_tables=False)
    assert summary.ran == 2
    assert {
        len(set(work.find_counting_records()) & {job.trial_id for job in plan.jobs}) for work in (one, two)
    } == {2}


@pytest.mark.slow
def test_a_budget_leaves_the_first_round_whole(tmp_path: Path) -> None:
    """What another has given back in the meantime is run, however little time there is for further rounds."""
    plan = with_budget(plan_of("cpu", batch_size="8,16"))
    work = sweep_in(tmp_path, plan)
    clock = time.monotonic
    later = [0.0]
    work.runner.claims = WorkClaims(tmp_path, clock=lambda: clock() + later[0])
    taken = claim_elsewhere(open_queue(work), unit(plan, 16))
    asked: list[int] = []

    def give_back() -> bool:
        if len(work.records) >= 1:
            asked.append(1)
            later[0] = SILENT_S + 1 if len(asked) > 3 else 0  # whoever may be dead is waited for
            if len(asked) == 20:
                with taken.open("a") as file:
                    file.write("nothing\n")
        return False

    summary = run_with(Scripted(), work, Heard(), give_back, has_tables=False)
    assert sorted(r.trial["batch_size"] for r in work.records if r.round == 1) == [8, 16]
    assert summary.limits.certainty.is_over_budget


def with_budget(plan: Plan) -> Plan:
    rounds = replace(plan.experiment.rounds, number=5, budget_s=0.001)
    return replace(plan, experiment=replace(plan.experiment, rounds=rounds))


def test_who_was_taken_for_dead_and_woken_stores_what_does_not_count(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    frozen, heir = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    frozen.runner.claims = WorkClaims(
        tmp_path, owner=replace(HolderProcess.make_current(), pid=2**22 + 1)
    )  # no such process

    launcher = Scripted()

    def take_over() -> bool:
        if launcher.launched and not heir.measured:
            frozen.runner.cpu_locks.release()  # as if on another host
            assert run_with(Scripted(), heir, Heard(), has_tables=False).ran == 1
        return False

    run_with(launcher, frozen, Heard(), take_over, has_tables=False)
    records = Results(tmp_path).read_records()
    assert sorted(r.claim.rpartition(".")[2] for r in records) == ["1", "2"]
    (counts,) = select_counting_records(records).values()
    assert counts.claim.endswith(".2")
    assert [r.claim.rpartition(".")[2] for r in list_superseded_records(records)] == ["1"]
    rule = audit_folder(read_folder(tmp_path, print))[2]
    assert (rule.number, rule.verdict) == (3, "kept")
    assert [observation.code for observation in rule.observations] == ["runs-kept", "superseded"]


def test_a_record_that_was_taken_away_is_measured_again(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    run_with(Scripted(), sweep_in(tmp_path, plan), Heard(), has_tables=False)
    for path in (tmp_path / "records").glob("*/*.json"):
        path.unlink()
    again = sweep_in(tmp_path, plan)
    assert run_with(Scripted(), again, Heard(), has_tables=False).ran == 1
    assert [r.claim.rpartition(".")[2] for r in again.records] == ["2"]
    rule = audit_folder(read_folder(tmp_path, print))[2]
    assert (rule.number, rule.verdict) == (3, "broken")
    assert "records-gone" in [observation.code for observation in rule.observations]


def test_a_folder_that_has_lost_its_id_goes_on_under_that_of_its_attempts(tmp_path: Path) -> None:
    plan = plan_of("cpu", rounds=2, batch_size="8")
    run_with(Scripted(), sweep_in(tmp_path, plan_of("cpu", batch_size="8")), Heard(), has_tables=False)
    (tmp_path / "records" / "folder-id").unlink()
    again = sweep_in(tmp_path, plan)
    assert run_with(Scripted(), again, Heard(), has_tables=False).ran == 1
    assert len({r.folder_id for r in again.records}) == 1
    assert [r.round for r in select_counting_records(Results(tmp_path).read_records()).values()] == [1, 2]


@pytest.mark.parametrize("content", ["", "xyz", "0123456789abcdef"])
def test_a_damaged_id_of_a_folder_is_one_line(tmp_path: Path, content: str) -> None:
    plan = plan_of("cpu", batch_size="8")
    run_with(Scripted(), sweep_in(tmp_path, plan), Heard(), has_tables=False)
    (tmp_path / "records" / "folder-id").write_text(content)
    with pytest.raises(UnusableError, match=r"folder-id is damaged: [^\n]*$"):
        run_with(Scripted(), sweep_in(tmp_path, plan, fresh=True), Heard(), has_tables=False)
