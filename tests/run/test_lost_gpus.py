"""A GPU is lost before, between or during trials: what has it runs elsewhere or is skipped, what is measured stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scripted
from benches import Heard, run_with, sweep_of
from fake_nvml import FakeNvml, gpu, refused
from scripted import Script, Scripted

from gpubench.basics.errors import UnusableError
from gpubench.node.environment import Gpu
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import with_options
from gpubench.plan.plan import expand
from gpubench.plan.resolve import place_on_gpus
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.results.store import Results
from gpubench.run.checks import look_around
from gpubench.run.stored_plan import store_plan
from gpubench.run.summary import Summary
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record
from gpubench.schema.row import Row
from gpubench.schema.trial import make

G0, G1 = gpu(0).uuid, gpu(1).uuid
BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
BASE += "[run]\nrounds = 1\nepochs = 2\n"
CLOCK = r"\d\d:\d\d"


def lost(number: int, said: str = "GPU is lost") -> str:
    """The pattern of the words on a loss."""
    gpu = rf"GPU {number} \(GPU-{number}{number}\)"
    return rf"{gpu} has been lost since {CLOCK}; the driver says: {said}; reset it or reboot"


@dataclass
class Losing(FakeNvml):
    """Every call on a lost GPU says so."""

    lost: dict[str, str] = field(default_factory=dict)
    """uuid -> what the driver says of it."""

    def fail(self, call: str, uuid: str) -> None:
        if uuid in self.lost:
            raise refused(call, self.lost[uuid])
        super().fail(call, uuid)


@dataclass
class Desk:
    """A results folder on a machine with two GPUs."""

    folder: Path
    nvml: Losing = field(default_factory=Losing)
    said: list[str] = field(default_factory=list)

    def job(self, groups: str = "", rounds: int | None = None, **fields: str) -> SweepState:
        experiment = with_options(parse(BASE + groups, "test"), Options(fields=fields, rounds=rounds))
        plan = expand(experiment, device="cuda", sources=Disk(), order="given")
        work = sweep_of(plan, self.folder, scripted.computer(2), nvml=self.nvml)
        work.load()
        work.runner.results.create()
        store_plan(work)
        return work

    def sweep(self, launcher: Scripted, **fields: str) -> Summary:
        view = Heard()
        self.said = view.lines
        try:
            return run_with(launcher, self.job(**fields), view)
        finally:
            launcher.close()

    def records(self) -> list[Record]:
        found = Results(self.folder).records()
        return sorted(found, key=lambda r: (r.trial.batch_size, r.resolved["gpu_ids"] or []))

    def rows(self) -> list[tuple[int, str, str]]:
        """Batch size, GPUs asked for, status of trials.csv, in the order of the trials."""
        table = pd.read_csv(self.folder / "trials.csv", dtype=str)
        return [(int(b), str(g), s) for b, g, s in table[["batch_size", "gpu_ids", "status"]].values.tolist()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "results")


def losing(desk: Desk, uuid: str, script: Script, said: str = "GPU is lost") -> Script:
    """Plays the script, and loses a GPU after its first words."""

    def play(order: TrialOrder) -> Iterator[scripted.Event]:
        for number, event in enumerate(script(order)):
            if number == 2:
                desk.nvml.lost[uuid] = said
            yield event

    return play


def first_then_well(first: Script) -> Scripted:
    played: list[TrialOrder] = []

    def choose(order: TrialOrder) -> Script:
        played.append(order)
        return first if len(played) == 1 else scripted.trains

    return Scripted(choose)


def uuids(launcher: Scripted) -> list[tuple[str, ...]]:
    return [tuple(order.gpu_uuids) for order in launcher.launched]


@pytest.mark.slow
@pytest.mark.parametrize("said", ["GPU is lost", "GPU requires restart", "Unknown Error"])
def test_a_trial_that_outlives_its_gpu_keeps_its_row_and_the_rest_is_skipped(desk: Desk, said: str) -> None:
    launcher = first_then_well(losing(desk, G1, scripted.trains, said))
    summary = desk.sweep(launcher, gpu_ids="1,0", batch_size="64,128")
    assert uuids(launcher) == [(G1,), (G0,), (G0,)]
    assert {(r.status, r.reason) for r in desk.records()} == {("ok", "")}
    first = next(r for r in desk.records() if r.resolved["gpu_uuids"] == [G1])
    assert first.result.epoch_time_s > 0
    assert said in first.missing["gpu_mem_mib"]
    told = [line for line in desk.said if re.match(lost(1, said), line)]
    # Once, however many trials need it.
    assert len(told) == 1
    skipped = [line for line in desk.said if "skipped: " in line]
    assert len(skipped) == summary.lost == summary.skipped == 1
    assert all(re.search(f"skipped: {lost(1, said)}$", line) for line in skipped)
    reasons = pd.read_csv(desk.folder / "trials.csv").query("status == 'skipped'")["reason"]
    assert [bool(re.fullmatch(lost(1, said), reason)) for reason in reasons] == [True] * summary.lost

    desk.nvml.lost.clear()
    again = Scripted()
    assert desk.sweep(again, gpu_ids="1,0", batch_size="64,128").ran == summary.lost
    assert set(uuids(again)) == {(G1,)}


@pytest.mark.parametrize(("script", "ended"), [
    (scripted.raises, "ValueError: no such layer"), (scripted.hangs, "did not end within 0.3 s"),
])  # fmt: skip
def test_a_trial_that_breaks_with_its_gpu_says_so(desk: Desk, script: Script, ended: str) -> None:
    work = desk.job(gpu_ids="1", batch_size="64")
    work.runner.timeout_s = 0.3
    launcher = first_then_well(losing(desk, G1, script))
    summary = run_with(launcher, work, Heard())
    assert (summary.failed, summary.timed_out) == ((0, 1) if script is scripted.hangs else (1, 0))
    (record,) = desk.records()
    assert record.status == ("timeout" if "not end" in ended else "failed")
    assert re.fullmatch(f"{lost(1)}; {ended}", record.reason)


def test_what_breaks_beside_a_lost_gpu_keeps_its_own_reason(desk: Desk) -> None:
    desk.sweep(first_then_well(losing(desk, G1, scripted.raises)), gpu_ids="0", batch_size="64")
    (record,) = desk.records()
    assert record.reason == "ValueError: no such layer"


def between(desk: Desk, uuid: str) -> Callable[[Record], None]:
    return lambda _: desk.nvml.lost.update({uuid: "GPU is lost"})


def test_a_number_of_gpus_is_given_from_those_that_are_left(desk: Desk) -> None:
    """Lost between two trials. What wants both is skipped, what wants one gets the other, and its row says which."""
    work, view, launcher = desk.job(gpus="1,2", batch_size="64,128,256"), Heard(), Scripted()
    summary = run_with(launcher, work, view, lambda: False, between(desk, G0))
    assert uuids(launcher) == [(G0,), (G1,), (G1,)]
    assert [(r.trial.gpus, r.resolved["gpu_ids"]) for r in desk.records()] == [
        (1, [0]),
        (1, [1]),
        (1, [1]),
    ]
    assert summary.lost == sum("skipped: " in line for line in view.lines) == 3


def test_what_a_lost_gpu_keeps_from_further_rounds_is_skipped_once(desk: Desk) -> None:
    work, view, launcher = desk.job(rounds=5, gpu_ids="0,1", batch_size="64"), Heard(), Scripted()

    def in_the_second_round(row: Row) -> None:
        if row.round == 2:
            desk.nvml.lost[G1] = "GPU is lost"

    summary = run_with(launcher, work, view, lambda: False, in_the_second_round)
    assert (summary.skipped, summary.lost) == (1, 1)
    assert sum("skipped: " in line for line in view.lines) == 1
    assert Counter(uuids(launcher))[G0,] == 5, "the others go on"


def test_no_trial_is_moved_onto_a_gpu_that_nobody_has_looked_at(desk: Desk) -> None:
    """Somebody else may be at work there, which would have kept the sweep from starting."""
    work, view, launcher = desk.job(gpus="1", batch_size="64,128,256"), Heard(), Scripted()
    work.runner.lost_gpus.checked = {0}
    summary = run_with(launcher, work, view, lambda: False, between(desk, G0))
    assert uuids(launcher) == [(G0,)]
    assert summary.lost == 2


def test_the_sweep_ends_when_no_gpu_is_left(desk: Desk) -> None:
    desk.nvml.lost[G0] = "GPU requires restart"
    launcher = first_then_well(losing(desk, G1, scripted.trains))
    with pytest.raises(UnusableError) as caught:
        desk.sweep(launcher, gpus="1", batch_size="64,128,256")
    words = rf"no GPU is left: {lost(0, 'GPU requires restart')}; {lost(1)}; then the same command goes on .*"
    assert re.fullmatch(words, str(caught.value))
    assert caught.value.exit_code == 4
    assert len(launcher.launched) == 1
    assert [r.status for r in desk.records()] == ["ok"]
    assert desk.rows() == [(64, "1", "ok")]
    assert not [line for line in desk.said if "skipped" in line and "GPU 1" in line]

    desk.nvml.lost.clear()
    assert desk.sweep(Scripted(), gpus="1", batch_size="64,128,256").ran == 2


def test_the_last_trial_of_a_plan_needs_no_gpu_after_it(desk: Desk) -> None:
    desk.nvml.lost[G0] = "GPU is lost"
    launcher = first_then_well(losing(desk, G1, scripted.trains))
    assert desk.sweep(launcher, gpus="1", batch_size="64").ran == 1
    assert [bool(re.match(lost(number), line)) for number, line in enumerate(desk.said)] == [True, True]


def test_what_needs_no_gpu_still_runs_and_then_the_sweep_ends(desk: Desk) -> None:
    desk.nvml.lost |= {G0: "GPU is lost", G1: "GPU is lost"}
    launcher = Scripted()
    with pytest.raises(UnusableError, match="no GPU is left"):
        desk.sweep(launcher, device="cuda,cpu", batch_size="64")
    assert [order.device for order in launcher.launched] == ["cpu"]


def test_one_call_that_fails_loses_no_gpu(desk: Desk) -> None:
    desk.nvml.broken, desk.nvml.error = {"memory"}, "Unknown Error"
    assert desk.sweep(Scripted(), gpus="1,2", batch_size="64").ran == 2


def test_the_look_before_a_sweep_leaves_lost_gpus_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[list[str]] = []
    monkeypatch.setattr("gpubench.node.node.idle.look_at_gpus", lambda _, uuids: looked.append(uuids) or {})
    desk.nvml.lost[G0] = "GPU is lost"
    work, view = desk.job(gpus="1,2", batch_size="64"), Heard()
    look_around(work, work.list_round(1), view, allow_busy=False)
    assert looked == [[G1]]
    assert re.match(lost(0), view.lines[0])
    desk.nvml.lost[G1] = "GPU is lost"
    with pytest.raises(UnusableError, match="no GPU is left"):
        look_around(work, work.list_round(1), view, allow_busy=False)


def test_a_gpu_that_was_lost_before_the_sweep_is_named(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the others' numbers tell another GPU than they did; not one that somebody else has for himself."""
    monkeypatch.setattr("gpubench.node.node.idle.look_at_gpus", lambda *_: {})
    desk.nvml.unreadable = {0: "GPU 0: GPU is lost", 3: "GPU 3: Insufficient Permissions"}
    work, view = desk.job(gpus="1", batch_size="64"), Heard()
    look_around(work, work.list_round(1), view, allow_busy=False)
    assert view.lines == [
        "the driver's GPU 0 is left out (GPU 0: GPU is lost), so the numbers of the GPUs after it are one lower; "
        "to have it back, reset it or reboot"
    ]


# ---- which GPUs ----


def machine(*names: str) -> list[Gpu]:
    return [Gpu(index=k, uuid=f"GPU-{k}", name=name, memory_mib=80) for k, name in enumerate(names)]


@pytest.mark.parametrize(
    ("asked", "names", "gone", "given"),
    [
        ([{"gpus": 2}], "AAAA", (), [(0, 1)]),
        ([{"gpus": 1}], "AAAA", (0,), [(1,)]),
        ([{"gpus": 2}], "AAAA", (0, 2), [(1, 3)]),
        ([{"gpus": 2}], "AAAA", (3,), [(0, 1)]),
        ([{}], "AA", (0,), [(1,)]),
        ([{"gpus": 2}], "AA", (1,), [(0, 1)]),  # not enough are left: it can't run
        ([{"gpus": 4}], "AA", (1,), [(0, 1, 2, 3)]),
        ([{"gpus": 1}], "AB", (0,), [(0,)]),  # another model would be another machine
        ([{"gpus": 1}], "AAB", (0,), [(1,)]),
        ([{"gpu_ids": (0,)}], "AA", (0,), [(0,)]),  # as it was asked for
        ([{"gpus": 1}, {"gpus": 1}], "AA", (0,), [(1,), (1,)]),  # they shared one, and still do
        ([{"gpus": 1}, {"gpu_ids": (1,)}], "AA", (0,), [(0,), (1,)]),  # they did not
    ],
)
def test_gpus_of_trials(
    asked: list[dict[str, Any]], names: str, gone: tuple[int, ...], given: list[tuple[int, ...]]
) -> None:
    trials = [make({"model": "lenet", "batch_size": 16, **fields}) for fields in asked]
    assert place_on_gpus(trials, machine(*names), gone) == given
