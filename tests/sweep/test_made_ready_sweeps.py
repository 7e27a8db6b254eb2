"""Sweeps whose further rounds are made ready ahead, with scripted trials on a machine with a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import scripted
from benches import Heard, run_with, sweep_of
from scripted import Driver, Line, Script, Scripted, ScriptedTrial

from gpubench.node.launch.launcher import never
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import Options, with_options
from gpubench.plan.sources import Disk
from gpubench.report.live_progress import LiveProgress
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record
from gpubench.sweep.summary import Summary
from gpubench.sweep.survey import Settings

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
BASE += "[run]\nrounds = 1\nepochs = 3\n"
SIZES = "16,32,64"


class Shown(Heard):
    """Keeps what the live area says of processes that are made ready, too."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def update(self, progress: LiveProgress) -> None:
        self.notes.append(progress.note)


@dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps in two rounds into it."""

    folder: Path
    launcher: Scripted = field(default_factory=lambda: Scripted(lambda _: scripted.trains_for(1.5)))
    mib: dict[int, float] = field(default_factory=lambda: {os.getpid(): 700.0})
    view: Shown = field(default_factory=Shown)

    def sweep(
        self,
        *jobs: str,
        sizes: str = SIZES,
        rounds: int = 2,
        stop: Callable[[], bool] = never,
        **options: str,
    ) -> Summary:
        asked = {} if jobs else {"batch_size": sizes}
        experiment = with_options(
            parse(BASE, "test"), Options(fields=asked, jobs=jobs, rounds=rounds, **options)
        )
        machine = scripted.computer(1, cpus=8)
        plan = make_plan(experiment, machine, Disk(), "given")
        work = sweep_of(plan, self.folder, machine, nvml=Driver(mib=self.mib), settings=Settings(ahead=True))
        work.bench.results.create()
        summary = run_with(self.launcher, work, self.view, stop)
        self.launcher.close()  # which finds out whether all have been ended
        self.records: list[Record] = work.bench.results.records()
        self.logs = {path for path in (self.folder / "logs").rglob("*") if path.is_file()}
        return summary

    @property
    def ahead(self) -> list[bool]:
        """Of each process that was launched, in order, whether it was made ready ahead of its turn."""
        return [order.ahead for order in self.launcher.launched]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def test_a_further_round_s_trials_are_made_ready_together_and_measured_as_ever(desk: Desk) -> None:
    desk.sweep()
    assert desk.ahead == [False] * 3 + [True] * 3
    assert [r.status for r in desk.records] == ["ok"] * 6
    assert sorted(r.round for r in desk.records) == [1, 1, 1, 2, 2, 2]
    assert sorted(r.attempt for r in desk.records) == [1, 1, 1, 2, 2, 2]
    assert any(note.startswith("making 3 processes ready") for note in desk.view.notes)
    second = [r for r in desk.records if r.round == 2]
    assert all("stranger" not in r.doubts for r in second), "those that wait are no strangers"
    assert len(desk.logs) == 6


def test_a_group_of_jobs_is_not_made_ready_and_those_beside_it_are_run_all_the_same(desk: Desk) -> None:
    desk.sweep("batch_size=16", "batch_size=32")
    assert [r.status for r in desk.records] == ["ok"] * 8
    assert not any(order.ahead for order in desk.launcher.launched if order.jobs > 1)


def test_nothing_is_made_ready_where_the_driver_does_not_tell_of_memory(desk: Desk) -> None:
    desk.mib = {}
    desk.sweep()
    assert not any(desk.ahead)
    assert [r.round for r in desk.records].count(2) == 3


def fails(how: Script, size: int) -> Callable[[TrialOrder], Script]:
    """The trial of this batch size does so while it is made ready; afterwards, as all others, it trains."""
    return lambda order: how if order.ahead and order.batch_size == size else scripted.trains_for(1.5)


def dies_while_it_waits(order: TrialOrder) -> Iterator[Line]:
    yield from list(scripted.hello(order))[:-1]
    yield scripted.exits(-9)


@pytest.mark.parametrize("size", [16, 32, 64])
@pytest.mark.parametrize(
    "how",
    [scripted.raises, scripted.vanishes, scripted.runs_out_of_gpu_memory, dies_while_it_waits],
    ids=["raises", "vanishes", "out of memory", "dies while it waits"],
)
def test_what_can_t_be_made_ready_is_run_as_ever(desk: Desk, how: Script, size: int) -> None:
    broken = how if how is dies_while_it_waits else before_it_is_ready(how)
    desk.launcher = Scripted(fails(broken, size))
    desk.sweep(rounds=3)
    assert [r.status for r in desk.records] == ["ok"] * 9
    launched = [(o.batch_size, o.ahead) for o in desk.launcher.launched]
    assert (size, False) in launched[3:]
    assert len(desk.logs) == 9
    if how is not dies_while_it_waits:
        assert launched.count((size, True)) == 1, "it is not tried again"


def test_nobody_waits_while_one_runs_that_could_not_be_made_ready(desk: Desk) -> None:
    """As where a GPU lets only one process in: then those that wait would keep it from running."""
    left_then: list[int] = []

    def notes(order: TrialOrder) -> Script:
        if order.ahead:
            return before_it_is_ready(scripted.raises) if order.batch_size == 32 else scripted.trains_for(1.5)
        if any(desk.ahead[:-1]):
            left_then.append(desk.launcher.left)
        return scripted.trains_for(1.5)

    desk.launcher = Scripted(notes)
    desk.sweep()
    assert [r.status for r in desk.records] == ["ok"] * 6
    assert left_then
    assert set(left_then) == {1}


def before_it_is_ready(how: Script) -> Script:
    """So ends one that has said hello, and no more."""

    def script(order: TrialOrder) -> Iterator[Line]:
        lines = list(how(order))
        return (line for line in lines if type(line).__name__ not in ("Rehearsed", "Until"))

    return script


def test_a_stop_while_processes_are_made_ready_leaves_no_process_and_no_record(desk: Desk) -> None:
    def never_ready(order: TrialOrder) -> Iterator[Line]:  # noqa: ARG001
        yield scripted.HANG

    desk.launcher = Scripted(lambda order: never_ready if order.ahead else scripted.trains_for(1.5))
    summary = desk.sweep(stop=lambda: any(desk.ahead))
    assert summary.interrupted
    assert [r.status for r in desk.records] == ["ok"] * 3
    assert len(desk.logs) == 3


def test_a_stop_in_a_turn_ends_those_that_wait(desk: Desk) -> None:
    began: list[int] = []

    def hangs_in_its_turn(order: TrialOrder) -> Iterator[Line]:
        yield from scripted.hello(order)
        began.append(order.batch_size)
        yield scripted.HANG

    desk.launcher = Scripted(lambda order: hangs_in_its_turn if order.ahead else scripted.trains_for(1.5))
    summary = desk.sweep(stop=lambda: bool(began))
    assert summary.interrupted
    assert [r.status for r in desk.records].count("interrupted") == 1
    assert len(desk.records) == 4
    assert len(desk.logs) == 4


def test_an_error_of_the_sweep_s_own_ends_those_that_wait(desk: Desk) -> None:
    class Breaks(Shown):
        def finished(self, number: int, total: int, label: str, row: object) -> None:  # noqa: ARG002
            if any(desk.ahead):
                raise KeyError(label)

    desk.view = Breaks()
    with pytest.raises(KeyError):
        desk.sweep()
    desk.launcher.close()


def test_a_deadline_counts_from_the_turn(desk: Desk) -> None:
    """A trial that hangs in its turn is ended, and told of as ever; the others have theirs."""

    def hangs_in_its_turn(order: TrialOrder) -> Iterator[Line]:
        yield from scripted.hello(order)
        yield scripted.HANG

    desk.launcher = Scripted(
        lambda o: hangs_in_its_turn if o.ahead and o.batch_size == 32 else scripted.trains_for(1.5)
    )
    desk.sweep(timeout="1s")
    second = {r.trial.batch_size: r for r in desk.records if r.round == 2}
    assert {size: r.status for size, r in second.items()} == {16: "ok", 32: "timeout", 64: "ok"}
    assert second[32].reason.startswith("did not end within 1 s")


class Processes(Scripted):
    """Each trial is a process of its own, which the driver lists."""

    def __init__(self, mib: dict[int, float]) -> None:
        super().__init__(lambda _: scripted.trains_for(1.5))
        self.mib = mib
        self.alive: list[subprocess.Popen[bytes]] = []

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never) -> ScriptedTrial:
        made = super().launch(order, should_stop)
        process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
        self.alive.append(process)
        self.mib[process.pid] = 700.0
        made.pid = process.pid
        plain_end = made.end

        def end() -> None:
            plain_end()
            process.kill()
            process.wait()
            self.mib.pop(process.pid, None)

        made.end = end  # type: ignore[method-assign]
        return made


def test_those_that_wait_are_no_strangers_to_who_is_measured_and_a_stranger_is(desk: Desk) -> None:
    desk.mib = {}
    desk.launcher = Processes(desk.mib)
    desk.sweep()
    assert desk.ahead[3:] == [True] * 3
    assert ["stranger" in r.doubts for r in desk.records] == [False] * 6
    assert {r.result.gpu_mem_mib for r in desk.records} == {700.0}, "its own processes' alone"
    desk.mib[os.getpid()] = 300.0
    desk.folder = desk.folder.with_name("other")
    desk.sweep()
    assert ["stranger" in r.doubts for r in desk.records] == [True] * 6


def test_no_more_are_made_ready_than_the_budget_lets_run(desk: Desk) -> None:
    """With no time left after the first round none is begun at all."""
    summary = desk.sweep(budget="0.001s")
    assert summary.out_of_budget
    assert not any(desk.ahead)
