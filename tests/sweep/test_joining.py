"""Sweeps that work through one plan together: whose turn a unit is, and what the others have found."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import scripted
from benches import Heard, run_with, sweep_of
from scripted import Driver, Scripted

from gpubench.commands.sweep import leaving
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import with_options
from gpubench.plan.plan import Plan, Unit, expand
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.store.holder import Holder
from gpubench.sweep.joining import Joining
from gpubench.sweep.survey import Settings
from gpubench.sweep.sweep import Sweep

ASKED = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nrounds = {rounds}\nepochs = 2\n'


def plan_of(device: str, jobs: tuple[str, ...] = (), rounds: int = 1, **fields: str) -> Plan:
    asked = with_options(parse(ASKED.format(rounds=rounds), "x"), Options(fields=fields, jobs=jobs))
    return expand(asked, device=device, sources=Disk())


def sweep_in(folder: Path, plan: Plan, gpus: int = 0, **settings: object) -> Sweep:
    work = sweep_of(plan, folder, scripted.computer(gpus), settings=Settings(joins=True, **settings))  # type: ignore[arg-type]
    work.bench.results.create()
    work.load()
    return work


@contextlib.contextmanager
def joined(work: Sweep) -> Iterator[Joining]:
    with work.bench.results.locked(joins=True):
        units = work.bench.results.units
        assert units is not None
        yield Joining.of(work, units)


def unit(plan: Plan, batch: int) -> Unit:
    return next(one for one in plan.units if not one.is_group and one.jobs[0].trial.batch_size == batch)


def elsewhere(joining: Joining, one: Unit, number: int = 1) -> Path:
    """Has a process of another host take it."""
    path = joining.lot(one, number).path(joining.work.bench.results.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(Holder(host="n2", boot="b", pid_namespace="p", pid=1, began="7"))))
    return path


def test_what_somebody_else_has_measured_meanwhile_is_done(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    with second.bench.results.locked(joins=True), joined(first) as joining:
        run_with(Scripted(), second, Heard())
        assert joining.turn(unit(plan, 8), 1) == ("done", "")
        assert sorted(one.trial.batch_size for one in first.records) == [8, 16], "and is known from now on"
        assert first.measured == set()


def test_what_failed_elsewhere_is_not_tried_again_by_all(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    first = sweep_in(tmp_path, plan, retry=frozenset({"failed"}))
    second = sweep_in(tmp_path, plan, retry=frozenset({"failed"}))
    failing = Scripted(lambda _: scripted.raises)
    with second.bench.results.locked(joins=True), joined(first) as joining:
        assert run_with(failing, second, Heard()).failed == 1, "nor again and again by one"
        assert joining.turn(unit(plan, 8), 1)[0] == "done"


def test_what_was_interrupted_elsewhere_is_run(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    with second.bench.results.locked(joins=True), joined(first) as joining:
        launcher = Scripted()
        run_with(launcher, second, Heard(), lambda: bool(launcher.launched))
        assert [one.status for one in second.records] == ["interrupted"]
        assert joining.turn(unit(plan, 8), 1) == ("run", "")


def test_a_round_of_another_is_no_answer_to_this_one(tmp_path: Path) -> None:
    plan = plan_of("cpu", rounds=2, batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan_of("cpu", batch_size="8"))
    with second.bench.results.locked(joins=True), joined(first) as joining:
        run_with(Scripted(), second, Heard())
        assert joining.turn(unit(plan, 8), 1)[0] == "done"
        assert joining.turn(unit(plan, 8), 2)[0] == "run"


def test_a_group_and_its_trials_alone_are_taken_as_one(tmp_path: Path) -> None:
    plan = plan_of("cpu", ("batch_size=8,cpus=1", "batch_size=16,cpus=1"))
    work = sweep_in(tmp_path, plan)
    group = next(one for one in plan.units if one.is_group)
    with joined(work) as joining:
        assert len(plan.units) == 3
        assert len({joining.lots[one.unit_id] for one in plan.units}) == 1
        elsewhere(joining, next(one for one in plan.units if one.unit_id == joining.lots[group.unit_id]))
        assert joining.turn(group, 1)[0] == "theirs"
        assert joining.turn(unit(plan, 16), 1)[0] == "theirs"


def test_what_is_taken_as_one_stands_together_and_all_is_there(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16", copies="1,2")
    work = sweep_in(tmp_path, plan)
    with joined(work) as joining:
        given = work.survey()[::-1]
        planned = joining.in_lots(given)
        assert sorted(item.unit.unit_id for item in planned) == sorted(one.unit_id for one in plan.units)
        lots = [joining.lots[item.unit.unit_id] for item in planned]
        assert len(set(lots)) > 1
        assert [lot for lot, _ in itertools.groupby(lots)] == list(dict.fromkeys(lots)), "none begins twice"
        for lot in set(lots):
            of_lot = [item for item in planned if joining.lots[item.unit.unit_id] == lot]
            assert of_lot == [item for item in given if joining.lots[item.unit.unit_id] == lot]


def test_batch_sizes_of_one_configuration_stand_together(tmp_path: Path) -> None:
    """In whatever order a round has them, so that one node measures most of what is compared."""
    plan = plan_of("cpu", batch_size="8,16,32", precision="fp32,bf16")
    work = sweep_in(tmp_path, plan)
    with joined(work) as joining:
        given = random.Random(3).sample(work.survey(), 6)
        trials = [item.unit.jobs[0].trial for item in joining.in_lots(given)]
        before = [item.unit.jobs[0].trial for item in given]
        assert [one for one, _ in itertools.groupby(one.precision for one in before)] not in (
            ["fp32", "bf16"],
            ["bf16", "fp32"],
        )
        first = before[0].precision
        assert trials == sorted(before, key=lambda one: one.precision != first)


def test_a_larger_batch_waits_while_a_smaller_one_may_run_out_of_memory(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64,256")
    work = sweep_in(tmp_path, plan, gpus=1)
    with joined(work) as joining:
        taken = elsewhere(joining, unit(plan, 16))
        assert joining.turn(unit(plan, 64), 1)[0] == "waits"
        assert joining.turn(unit(plan, 16), 1)[0] == "theirs"
        taken.unlink()
        assert joining.turn(unit(plan, 64), 1)[0] == "run"


def test_it_does_not_wait_where_what_ran_says_that_it_fits(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64,256,1024")
    work = sweep_in(tmp_path, plan, gpus=1)
    ran = sweep_of(
        plan_of("cuda", batch_size="16"),
        tmp_path,
        scripted.computer(1),
        nvml=Driver(mib={os.getpid(): 8000.0}),
    )
    with ran.bench.results.locked(joins=True), joined(work) as joining:
        run_with(Scripted(), ran, Heard())
        elsewhere(joining, unit(plan, 64))
        assert joining.turn(unit(plan, 256), 1)[0] == "run", "16 times 8,000 MiB is less than 90 % of 143,771"
        assert joining.turn(unit(plan, 1024), 1)[0] == "waits"


def test_a_further_round_waits_for_nobody_s_memory(tmp_path: Path) -> None:
    plan = plan_of("cuda", rounds=2, batch_size="16,64")
    work = sweep_in(tmp_path, plan, gpus=1)
    with joined(work) as joining:
        elsewhere(joining, unit(plan, 16))
        assert joining.turn(unit(plan, 64), 2)[0] == "run"


def test_what_ran_out_of_memory_elsewhere_is_not_tried_with_a_larger_batch(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64")
    first, second = (
        sweep_in(tmp_path, plan, gpus=1),
        sweep_in(tmp_path, plan_of("cuda", batch_size="16"), gpus=1),
    )
    with second.bench.results.locked(joins=True), joined(first) as joining:
        run_with(Scripted(lambda _: scripted.runs_out_of_gpu_memory), second, Heard())
        turn, why = joining.turn(unit(plan, 64), 1)
        assert turn == "skip"
        assert why == "batch 16 of the same configuration was out of memory"


def test_the_tables_wait_for_the_last_one(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    table = tmp_path / "trials.csv"
    with first.bench.results.locked(joins=True):
        with second.bench.results.locked(joins=True):
            run_with(Scripted(), second, Heard())
            assert not table.exists()
            assert len(second.others) == 1
        summary = run_with(Scripted(), first, Heard())
        assert summary.ran == 0
        assert (summary.reused, summary.elsewhere) == (2, 0)
        assert len(table.read_text().splitlines()) == 3
        assert first.others == []


def test_who_breaks_off_before_anything_is_stored_writes_no_tables_whatever_plan_lies_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "x-12345678.toml").write_text("name = [")
    work = sweep_in(tmp_path, plan_of("cpu", batch_size="8"))
    with work.bench.results.locked(joins=True):
        work.leave()
    assert (work.unwritten, list(tmp_path.glob("*.csv"))) == ("", [])


def test_a_lock_that_a_dead_one_has_left_on_what_is_done_keeps_nobody_waiting(tmp_path: Path) -> None:
    plan = plan_of("cuda", batch_size="16,64")
    work = sweep_in(tmp_path, plan, gpus=1)
    ran = sweep_in(tmp_path, plan_of("cuda", batch_size="16"), gpus=1)
    with ran.bench.results.locked(joins=True), joined(work) as joining:
        run_with(Scripted(lambda _: scripted.raises), ran, Heard())
        elsewhere(joining, unit(plan, 16))
        assert joining.turn(unit(plan, 64), 1)[0] == "run", "16 has failed, and says nothing of memory"


def test_who_has_other_cpus_measures_for_itself_and_takes_nothing_away(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8,16")
    two = sweep_of(plan, tmp_path, scripted.computer(cpus=2), settings=Settings(joins=True))
    one = sweep_of(plan, tmp_path, scripted.computer(cpus=1), settings=Settings(joins=True))
    for work in (two, one):
        work.bench.results.create()
        work.load()
    with two.bench.results.locked(joins=True), one.bench.results.locked(joins=True):
        run_with(Scripted(), two, Heard())
        summary = run_with(Scripted(), one, Heard())
    assert summary.ran == 2
    assert {len(set(work.chosen()) & {job.trial_id for job in plan.jobs}) for work in (one, two)} == {2}


def test_a_budget_leaves_the_first_round_whole(tmp_path: Path) -> None:
    """What another has given back in the meantime is run, however little time there is for further rounds."""
    plan = with_budget(plan_of("cpu", batch_size="8,16"))
    work = sweep_in(tmp_path, plan)
    with work.bench.results.locked(joins=True):
        units = work.bench.results.units
        assert units is not None
        taken = elsewhere(Joining.of(work, units), unit(plan, 16))
        os.utime(taken, (0, 0))  # silent for long: whoever has nothing else to do waits
        freed: list[int] = []

        def frees() -> bool:
            if len(work.records) >= 1 and taken.exists() and len(freed) < 50:
                freed.append(1)
                if len(freed) == 20:
                    taken.unlink()
            return False

        summary = run_with(Scripted(), work, Heard(), frees)
    assert sorted(one.trial.batch_size for one in work.records if one.round == 1) == [8, 16]
    assert summary.out_of_budget


def with_budget(plan: Plan) -> Plan:
    rounds = replace(plan.experiment.rounds, number=5, budget_s=0.001)
    return replace(plan, experiment=replace(plan.experiment, rounds=rounds))


def test_however_it_ends_the_last_one_writes_the_tables(tmp_path: Path) -> None:
    plan = plan_of("cpu", batch_size="8")
    first, second = sweep_in(tmp_path, plan), sweep_in(tmp_path, plan)
    with (
        contextlib.suppress(KeyboardInterrupt),
        second.bench.results.locked(joins=True),
        leaving(second, joins=True),
    ):
        with first.bench.results.locked(joins=True):
            run_with(Scripted(), first, Heard())
        assert not (tmp_path / "trials.csv").exists()
        raise KeyboardInterrupt  # while it starts
    assert len((tmp_path / "trials.csv").read_text().splitlines()) == 2
