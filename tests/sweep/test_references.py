"""Sweeps of several nodes that work through one plan, each of which measures the reference in each round."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import scripted
from benches import Heard, run_with, sweep_of
from scripted import Scripted
from test_joining import elsewhere, plan_of, unit

from gpubench.basics.errors import UsageError
from gpubench.commands.sweep import referred
from gpubench.plan.plan import Plan
from gpubench.plan.wall_time import WallTime
from gpubench.results.counting import counting, newest_of_rounds, node_of
from gpubench.results.locks.holder import Holder
from gpubench.results.locks.unit_locks import Lot
from gpubench.results.merging.merge import merge
from gpubench.results.status import status_of
from gpubench.results.store import Results
from gpubench.schema.record import RECORD_SCHEMA, Record
from gpubench.sweep.joining import Joining
from gpubench.sweep.losses import Loss
from gpubench.sweep.reference import Reference, reference_of
from gpubench.sweep.stored_plan import store_plan
from gpubench.sweep.survey import Settings
from gpubench.sweep.sweep import Sweep


def sweep_on(node: str, folder: Path, plan: Plan, **settings: object) -> Sweep:
    machine = replace(scripted.computer(0), host=node)
    work = sweep_of(
        plan,
        folder,
        machine,
        settings=Settings(joins=True, reference=True, **settings),  # type: ignore[arg-type]
    )
    work.bench.results.create()
    work.load()
    return work


def told(folder: Path) -> list[tuple[int, int, str, bool]]:
    """Batch size, round, node and whether it is a reference, of each record that counts."""
    found = counting(records(folder)).values()
    return sorted((int(one.trial.batch_size or 0), one.round, node_of(one), one.reference) for one in found)


class Named(Heard):
    """Keeps what each trial is called, too."""

    def started(self, number: int, total: int, label: str) -> None:
        self.say(f"[{number}/{total}] {label}")


def records(folder: Path) -> list[Record]:
    return Results(folder).records()


def swept(
    node: str, folder: Path, plan: Plan, script: scripted.Script = scripted.trains
) -> tuple[Scripted, Heard]:
    """What a sweep of this node has launched, and said."""
    work, launcher, view = sweep_on(node, folder, plan), Scripted(lambda _: script), Named()
    with work.bench.results.locked(joins=True):
        run_with(launcher, work, view)
    return launcher, view


def joining_of(work: Sweep) -> Joining:
    units = work.bench.results.units
    assert units is not None
    return Joining.of(work, units)


def held(folder: Path, lot: Lot) -> None:
    """Has a process that lives take a lot."""
    path = lot.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(Holder.here())))


def test_a_node_measures_the_reference_before_its_first_unit_of_each_round(tmp_path: Path) -> None:
    few, more = plan_of("cpu", rounds=2, batch_size="8,16"), plan_of("cpu", rounds=2, batch_size="8,16,32")
    swept("n1", tmp_path, few)
    launcher, view = swept("n2", tmp_path, more)
    assert launcher.batches == [8, 32, 8, 32]
    assert told(tmp_path) == [
        (8, 1, "n1", False),
        (8, 1, "n2", True),
        (8, 2, "n1", False),
        (8, 2, "n2", True),
        (16, 1, "n1", False),
        (16, 2, "n1", False),
        (32, 1, "n2", False),
        (32, 2, "n2", False),
    ]
    assert next(line for line in view.lines if "lenet" in line or "batch_size" in line).startswith(
        "[1/1] reference of n2: "
    )


def test_further_rounds_of_the_reference_measure_a_window_as_others_do(tmp_path: Path) -> None:
    few, more = plan_of("cpu", rounds=2, batch_size="8"), plan_of("cpu", rounds=2, batch_size="8,16")
    swept("n1", tmp_path, few)
    launcher, _ = swept("n2", tmp_path, more)
    whole, _, window, _ = launcher.launched
    assert (whole.batch_size, whole.steps) == (8, None)
    assert window.batch_size == 8
    assert window.steps is not None


def test_what_the_plan_gave_a_node_is_its_reference(tmp_path: Path) -> None:
    """One node alone measures nothing besides; nor does one that comes to find nothing left."""
    plan = plan_of("cpu", rounds=2, batch_size="8,16")
    launcher, _ = swept("n1", tmp_path, plan)
    assert sorted(launcher.batches) == [8, 8, 16, 16]
    launcher, _ = swept("n2", tmp_path, plan)
    assert launcher.batches == []
    assert not any(reference for *_, reference in told(tmp_path))


def test_a_node_measures_it_once_however_many_sweeps_it_joins_with(tmp_path: Path) -> None:
    for node, batches, measured in (
        ("n1", "8,16", [8, 16]),
        ("n2", "8,16,32", [8, 32]),
        ("n2", "8,16,32,64", [64]),
        ("n1", "8,16,32,64,128", [128]),
    ):
        launcher, _ = swept(node, tmp_path, plan_of("cpu", batch_size=batches))
        assert launcher.batches == measured


def test_another_sweep_of_this_node_that_is_at_it_is_left_to_it(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"))
    plan = plan_of("cpu", batch_size="8,16")
    work = sweep_on("n2", tmp_path, plan)
    with work.bench.results.locked(joins=True):
        own = joining_of(work).lot(unit(plan, 8), 1)
        held(tmp_path, Lot(own.unit_id, 1, f"{own.machine} on n2"))
        held(tmp_path, Lot(own.unit_id, 1, f"{own.machine} on n3"))
        launcher = Scripted()
        run_with(launcher, work, Heard())
    assert launcher.batches == [16]


def test_while_the_plan_s_own_measurement_is_under_way_units_go_first(tmp_path: Path) -> None:
    """Then, at the end of the round, the node waits for it: here its owner goes without having measured it."""
    plan = plan_of("cpu", rounds=2, batch_size="8,16,32")
    work = sweep_on("n2", tmp_path, plan)
    with work.bench.results.locked(joins=True):
        lock = elsewhere(joining_of(work), unit(plan, 8))
        launcher = Scripted()
        looks = itertools.count()

        def stops() -> bool:
            if len(launcher.batches) == 4 and next(looks) == 20:
                lock.unlink()
            return False

        run_with(launcher, work, Heard(), stops)
    assert sorted(launcher.batches[:2]) == sorted(launcher.batches[2:4]) == [16, 32]
    assert launcher.batches[4:] == [8, 8]
    assert not any(reference for *_, reference in told(tmp_path))


def test_a_trial_that_did_not_end_ok_is_no_reference(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"), scripted.raises)
    launcher, _ = swept("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    assert launcher.batches == [16]


def test_one_that_was_interrupted_is_measured_again(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"))
    plan = plan_of("cpu", batch_size="8,16")
    work, launcher = sweep_on("n2", tmp_path, plan), Scripted()
    with work.bench.results.locked(joins=True):
        summary = run_with(launcher, work, Heard(), lambda: bool(launcher.launched))
    assert summary.interrupted
    assert launcher.batches == [8]
    launcher, _ = swept("n2", tmp_path, plan)
    assert launcher.batches == [8, 16]
    assert told(tmp_path) == [(8, 1, "n1", False), (8, 1, "n2", True), (16, 1, "n2", False)]


def test_a_batch_job_without_the_time_for_both_measures_the_unit(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"))
    work = sweep_on("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    each_s = work.estimates(work.plan.units)[0].seconds
    work.wall_time = WallTime(job="job 7", ends_s=time.monotonic() + 1.5 * each_s, whole_s=100 * each_s)
    launcher = Scripted()
    with work.bench.results.locked(joins=True):
        run_with(launcher, work, Heard())
    assert launcher.batches[0] == 16


def test_what_the_plan_measured_counts_as_before_beside_references(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16"))
    before = newest_of_rounds(records(tmp_path))
    swept("n2", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16,32"))
    after = newest_of_rounds(records(tmp_path))
    for number, here in before.items():
        assert {key: one.attempt for key, one in here.items()}.items() <= {
            key: one.attempt for key, one in after[number].items()
        }.items()
    work = sweep_on("n3", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16,32"))
    assert {item.state for item in work.pending()} == {"done"}
    table = work.own_table()
    assert table is not None
    assert [row.repeats for row in table.rows] == [4, 2, 2]
    assert "3 trials, in 2 rounds: 3 ok" in table.heading


def test_the_folder_is_complete_with_them_and_says_so(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16"))
    swept("n2", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16,32"))
    store_plan(
        work := sweep_on("n1", tmp_path, plan_of("cpu", rounds=2, batch_size="8,16,32")), work.plan, None
    )
    found = status_of(Results(tmp_path), lambda _: None)
    assert [(one.number, one.done, one.left) for one in found.rounds] == [(1, 3, 0), (2, 3, 0)]
    assert found.now == []


def test_versions_that_know_none_refuse_its_record(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"))
    swept("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    stored = [json.loads(path.read_text()) for path in tmp_path.glob("records/*/*.json")]
    assert sorted((one.get("reference"), one["schema_version"]) for one in stored if "reference" in one) == [
        (True, RECORD_SCHEMA)
    ]
    assert [one["schema_version"] for one in stored if "reference" not in one] == [1, 1]


def test_whoever_measures_all_anew_leaves_the_old_references_behind(tmp_path: Path) -> None:
    swept("n1", tmp_path, plan_of("cpu", batch_size="8"))
    swept("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    again = sweep_of(
        plan_of("cpu", batch_size="8,16"),
        tmp_path,
        replace(scripted.computer(0), host="n1"),
        settings=Settings(fresh=True),
    )
    again.load()
    with again.bench.results.locked():
        run_with(Scripted(), again, Heard())
    assert told(tmp_path) == [(8, 1, "n1", False), (16, 1, "n1", False)]


def test_merging_keeps_them(tmp_path: Path) -> None:
    swept("n1", tmp_path / "a", plan_of("cpu", rounds=2, batch_size="8"))
    swept("n2", tmp_path / "a", plan_of("cpu", rounds=2, batch_size="8,16"))
    swept("n3", tmp_path / "a", plan_of("cpu", rounds=2, batch_size="8,16,32"))
    target = Results(tmp_path / "b")
    target.create()
    merge([Results(tmp_path / "a")], target, lambda _: None)
    assert told(tmp_path / "b") == told(tmp_path / "a")
    assert sum(reference for *_, reference in told(tmp_path / "b")) == 4
    merge([Results(tmp_path / "a")], target, lambda _: None)
    assert told(tmp_path / "b") == told(tmp_path / "a")


def test_a_plan_without_a_trial_alone_has_none() -> None:
    plan = plan_of("cpu", ("batch_size=8,cpus=1", "batch_size=16,cpus=1"))
    assert reference_of(plan).jobs[0].trial.batch_size in (8, 16)
    with pytest.raises(UsageError, match="--reference takes a trial alone on one node"):
        reference_of(replace(plan, units=[one for one in plan.units if one.is_group]))


def gpu_sweep(node: str, folder: Path, plan: Plan, gpus: int) -> Sweep:
    machine = replace(scripted.computer(gpus), host=node)
    work = sweep_of(plan, folder, machine, settings=Settings(joins=True, reference=True))
    work.bench.results.create()
    work.load()
    return work


def test_a_node_without_room_for_the_reference_measures_none(tmp_path: Path) -> None:
    first = gpu_sweep("n1", tmp_path, plan_of("cuda", gpus="2", batch_size="8"), 2)
    with first.bench.results.locked(joins=True):
        run_with(Scripted(), first, Heard())
    work, launcher = gpu_sweep("n2", tmp_path, plan_of("cuda", gpus="2,1", batch_size="8"), 1), Scripted()
    assert referred(work) == []
    with work.bench.results.locked(joins=True):
        run_with(launcher, work, Heard())
    assert len(launcher.launched) == 1, "its own unit, without waiting for a reference"
    assert not any(record.reference for record in records(tmp_path))


def test_nobody_waits_for_a_reference_whose_owner_has_died(tmp_path: Path) -> None:
    work = sweep_on("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    with work.bench.results.locked(joins=True):
        reference = Reference.of(joining_of(work))
        lot = reference.joining.lot(reference.unit, 1)
        held(tmp_path, lot)
        assert reference.is_awaited
        lot.path(tmp_path).write_text(json.dumps(asdict(replace(Holder.here(), began="1"))))
        assert not reference.is_awaited
        lot.path(tmp_path).unlink()
        assert not reference.is_awaited


def test_where_the_budget_has_no_room_for_both_the_unit_goes_before_the_reference(tmp_path: Path) -> None:
    """Each takes as long as the other, as far as is known. The unit takes no time here, so there is room afterwards."""
    swept("n1", tmp_path, plan_of("cpu", rounds=2, batch_size="8"))
    swept("n2", tmp_path, plan_of("cpu", batch_size="8,16"))
    plan = plan_of("cpu", rounds=2, batch_size="8,16")
    work = sweep_on("n2", tmp_path, plan)
    each_s = max(one.seconds for one in work.estimates(plan.units, 2))
    rounds = replace(plan.experiment.rounds, budget_s=1.5 * each_s)
    work = sweep_on("n2", tmp_path, replace(plan, experiment=replace(plan.experiment, rounds=rounds)))
    launcher = Scripted()
    with work.bench.results.locked(joins=True):
        run_with(launcher, work, Heard())
    assert launcher.batches == [16, 8]


def test_a_node_that_has_lost_the_reference_s_gpu_measures_none(tmp_path: Path) -> None:
    plan = plan_of("cuda", gpu_ids="0,1", batch_size="8")
    first = gpu_sweep("n1", tmp_path, plan_of("cuda", gpu_ids="0", batch_size="8"), 2)
    with first.bench.results.locked(joins=True):
        run_with(Scripted(), first, Heard())
    work = gpu_sweep("n2", tmp_path, plan, 2)
    with work.bench.results.locked(joins=True):
        reference = Reference.of(joining_of(work))
        assert reference.turn(1) == "run"
        work.bench.lost[0] = Loss(gpu=work.bench.node.machine.gpus[0], since="12:01", said="GPU is lost")
        assert reference.turn(1) == "done"
