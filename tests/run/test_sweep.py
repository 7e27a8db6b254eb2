"""The sweep, with scripted trials: every ending, what is skipped, what is run again, what is kept."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import scripted
from benches import Heard, counts, run_with, sweep_of
from scripted import Driver, Script, Scripted

from gpubench.basics.errors import UnusableError
from gpubench.node import environment
from gpubench.node.watch.nvml import Nvml
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results
from gpubench.run.limits import SweepSummary
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
BASE += "[run]\nrounds = 1\nepochs = 2\n"


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps into it one after the other."""

    folder: Path
    gpus: int = 0
    nvml: Nvml | None = None
    name: str = "NVIDIA H200"
    said: list[str] = dataclasses.field(default_factory=list)
    last_job: SweepState = dataclasses.field(init=False)

    def job(self, *, retry: str, fresh: bool, order: str, options: ExperimentOptions) -> SweepState:
        experiment = apply_options(parse_experiment(BASE, "test"), options)
        plan = expand_experiment(
            experiment, device="cuda" if self.gpus else "cpu", sources=DiskSources(), order=order
        )
        again = frozenset(retry.split(",") if retry else ())
        machine = scripted.computer(self.gpus, self.name)
        work = sweep_of(plan, self.folder, machine, nvml=self.nvml, retry=again, fresh=fresh)
        work.load()
        return work

    def sweep(
        self,
        launcher: Scripted | None = None,
        *,
        retry: str = "",
        fresh: bool = False,
        order: str = "given",
        stop: Callable[[], bool] = lambda: False,
        repeats: int | None = None,
        timeout: str | None = None,
        **fields: str,
    ) -> SweepSummary:
        """`gpubench sweep` with these options, as text."""
        launcher = launcher or Scripted()
        options = ExperimentOptions(fields=fields, repeats=repeats, timeout=timeout)
        job = self.last_job = self.job(retry=retry, fresh=fresh, order=order, options=options)
        job.runner.results.create_folder()
        store_plan(job)
        view = Heard()
        summary = run_with(launcher, job, view, stop, has_tables=False)
        launcher.close()
        self.said = view.lines
        return summary

    def records(self) -> list[Record]:
        """Every attempt that is stored."""
        return Results(self.folder).read_records()

    def only(self) -> Record:
        (record,) = self.records()
        return record

    def table(self) -> pd.DataFrame:
        """trials.csv by batch size, as the last sweep writes it."""
        self.last_job.write_tables()
        return pd.read_csv(self.folder / "trials.csv").set_index("batch_size").sort_index()

    def statuses(self) -> dict[int, str]:
        """How each trial of the last sweep's plan ended, by batch size: of what counts, or that it was skipped."""
        job = self.last_job
        ended = {id_: record.status for id_, record in job.find_counting_records().items()}
        ended = dict.fromkeys(job.skips, "skipped") | ended
        return {
            each.trial.batch_size: ended[each.trial_id] for each in job.plan.jobs if each.trial_id in ended
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


@pytest.fixture
def gpu_desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results", gpus=2)


def from_batch(batch: int, script: Script) -> Scripted:
    """This script for batches of this size and above."""
    return Scripted(lambda order: script if order.trial.batch_size >= batch else scripted.trains)


def always(script: Script) -> Scripted:
    return Scripted(lambda _: script)


# ---- ok ----


def test_a_measured_trial(desk: Desk) -> None:
    assert counts(desk.sweep(batch_size="64")) == {"ran": 1}
    row = desk.table().loc[64]
    assert row.status == "ok"
    assert row.epoch_time_s == pytest.approx(scripted.EPOCH_S)
    assert row.images_per_epoch == 10_240
    assert row.images_per_s * row.epoch_time_s == pytest.approx(row.images_per_epoch, rel=1e-4)
    assert (row.epochs_measured, row.workers, row.gpus) == (1, 0, 0)
    epochs = pd.read_csv(desk.folder / "epochs.csv")
    assert list(epochs["warmup"]) == [1, 0]


# ---- the other endings ----


def test_out_of_memory_is_a_row_and_larger_batches_are_skipped(gpu_desk: Desk) -> None:
    launcher = from_batch(32, scripted.runs_out_of_gpu_memory)
    assert counts(gpu_desk.sweep(launcher, batch_size="16,32,64,128")) == {"ran": 2, "skipped": 2}
    assert launcher.batches == [16, 32]
    table = gpu_desk.table()
    assert list(table["status"]) == ["ok", "oom", "skipped", "skipped"]
    assert "out of memory" in str(table.loc[32, "reason"])
    assert str(table.loc[128, "reason"]).startswith("batch 32 ")
    assert table.loc[32:, "epoch_time_s"].isna().all()
    assert len(gpu_desk.records()) == 2, "skipped is never stored"
    assert len(gpu_desk.said) == 2

    # It is final, until it is asked for; then what is asked for runs, and so do larger ones.
    again = Scripted()
    assert counts(gpu_desk.sweep(again, batch_size="16,32,64,128")) == {"reused": 2, "skipped": 2}
    assert again.batches == []
    gpu_desk.sweep(again, batch_size="16,32,64,128", retry="oom")
    assert again.batches == [32, 64, 128]
    assert set(gpu_desk.statuses().values()) == {"ok"}


def test_a_chain_in_any_order(gpu_desk: Desk) -> None:
    """Where the larger batch came first, it has its own row; only what is left is skipped."""
    launcher = from_batch(32, scripted.runs_out_of_gpu_memory)
    gpu_desk.sweep(launcher, batch_size="64,16,32,128")
    assert launcher.batches == [64, 16, 32]
    assert gpu_desk.statuses() == {16: "ok", 32: "oom", 64: "oom", 128: "skipped"}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "reason"), scripted.DEATHS)
def test_a_trial_that_dies_leaves_a_row_and_the_sweep_goes_on(
    desk: Desk, script: Script, reason: str
) -> None:
    launcher = Scripted(lambda order: script if order.trial.batch_size == 16 else scripted.trains)
    assert counts(desk.sweep(launcher, batch_size="16,32")) == {"ran": 2, "failed": 1}
    table = desk.table()
    assert list(table["status"]) == ["failed", "ok"]
    assert table.loc[16, "reason"] == reason


def test_a_deadline(desk: Desk) -> None:
    launcher = Scripted(lambda order: scripted.hangs if order.trial.batch_size == 16 else scripted.trains)
    assert counts(desk.sweep(launcher, batch_size="16,32", timeout="1s")) == {"ran": 2, "timed_out": 1}
    assert desk.statuses() == {16: "timeout", 32: "ok"}
    assert str(desk.table().loc[16, "reason"]).endswith("within 1 s")
    record = next(r for r in desk.records() if r.status == "timeout")
    # What it got done is kept.
    assert [e["epoch"] for e in record.epochs] == [0]


@pytest.mark.slow
def test_an_interrupt_stops_the_sweep_and_nothing_is_lost(desk: Desk) -> None:
    launcher = from_batch(32, scripted.hangs)
    summary = desk.sweep(launcher, batch_size="16,32,64", stop=lambda: len(launcher.launched) == 2)
    assert counts(summary) == {"ran": 2, "interrupted": True}
    assert sorted(r.status for r in desk.records()) == ["interrupted", "ok"]
    assert desk.statuses() == {16: "ok", 32: "interrupted"}
    again = Scripted()
    assert counts(desk.sweep(again, batch_size="16,32,64")) == {"ran": 2, "reused": 1}
    # What was interrupted runs again unasked.
    assert again.batches == [32, 64]
    assert desk.statuses() == {16: "ok", 32: "ok", 64: "ok"}
    assert [r.attempt for r in desk.records() if r.trial["batch_size"] == 32] == [1, 2], (
        "both attempts are kept"
    )


def test_a_trial_that_cannot_be_launched_is_a_failed_row(desk: Desk) -> None:
    class Broken(Scripted):
        def launch(self, order: TrialOrder, *more: object) -> scripted.ScriptedTrial:  # noqa: ARG002
            if order.trial.batch_size == 32:
                raise UnusableError("the fork server died")
            return super().launch(order)

    desk.sweep(Broken(), batch_size="16,32,64")
    assert desk.statuses() == {16: "ok", 32: "failed", 64: "ok"}
    assert desk.table().loc[32, "reason"] == "the fork server died"


# ---- memory, as the driver sees it ----


def test_over_the_cap_by_the_drivers_figure_is_out_of_memory(gpu_desk: Desk) -> None:
    gpu_desk.nvml = Driver(mib={os.getpid(): 9000.0})
    gpu_desk.sweep(batch_size="16,32", gpu_mem_cap_mib="8000")
    assert gpu_desk.statuses() == {16: "oom", 32: "skipped"}
    assert gpu_desk.table().loc[16, "reason"] == "9,000 MiB by the driver, over the cap of 8,000 MiB"
    gpu_desk.sweep(batch_size="16", gpu_mem_cap_mib="9000")
    assert sorted(r.status for r in gpu_desk.records()) == ["ok", "oom"]


def test_out_of_memory_beside_a_stranger_is_a_failure(gpu_desk: Desk) -> None:
    """It may well fit once the other has gone: nothing final is said of the configuration."""
    gpu_desk.nvml = Driver(mib={1: 120_000.0})
    launcher = from_batch(32, scripted.runs_out_of_gpu_memory)
    assert counts(gpu_desk.sweep(launcher, batch_size="32,64")) == {"ran": 2, "failed": 2}
    table = gpu_desk.table()
    assert list(table["status"]) == ["failed", "failed"]
    assert str(table.loc[32, "reason"]).startswith("GPU memory ran out while others held some: process 1 (")


def test_a_stranger_is_a_doubt(gpu_desk: Desk) -> None:
    gpu_desk.nvml = Driver(mib={1: 500.0, os.getpid(): 700.0})
    gpu_desk.sweep(batch_size="16")
    assert "stranger" in gpu_desk.only().doubts


def test_trials_for_more_gpus_than_there_are_are_skipped(gpu_desk: Desk) -> None:
    launcher = Scripted()
    assert counts(gpu_desk.sweep(launcher, batch_size="64", gpus="1,2,4")) == {"ran": 2, "skipped": 1}
    assert [len(order.gpu_uuids) for order in launcher.launched] == [1, 2]
    (line,) = gpu_desk.said
    label, _, reason = line.partition("  skipped: ")
    assert label == "[3/3] gpus=4"
    assert re.findall(r"\d", reason) == ["4", "2"]


# ---- resume ----


@pytest.mark.slow
def test_failures_run_again_when_asked(desk: Desk) -> None:
    desk.sweep(
        Scripted(lambda order: scripted.raises if order.trial.batch_size == 16 else scripted.trains),
        batch_size="16,32",
    )
    launcher = Scripted()
    assert counts(desk.sweep(launcher, batch_size="16,32")) == {"reused": 1, "failed": 1}
    assert launcher.launched == []
    assert counts(desk.sweep(launcher, batch_size="16,32", retry="failed")) == {"ran": 1, "reused": 1}
    assert launcher.batches == [16]
    assert desk.statuses() == {16: "ok", 32: "ok"}
    assert len(desk.records()) == 3


@pytest.mark.slow
def test_fresh_runs_everything_and_keeps_everything(gpu_desk: Desk) -> None:
    gpu_desk.sweep(from_batch(32, scripted.runs_out_of_gpu_memory), batch_size="16,32,64")
    launcher = from_batch(64, scripted.runs_out_of_gpu_memory)
    assert counts(gpu_desk.sweep(launcher, batch_size="16,32,64", fresh=True)) == {"ran": 3}
    assert launcher.batches == [16, 32, 64]
    assert len(gpu_desk.records()) == 5
    assert gpu_desk.statuses() == {16: "ok", 32: "ok", 64: "oom"}
    gpu_desk.sweep(always(scripted.raises), batch_size="16", fresh=True)
    assert gpu_desk.statuses()[16] == "ok", "no result is lost to a failure"


@pytest.mark.slow
def test_other_versions_are_stale_and_run_again_only_when_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.sweep(batch_size="16,32")
    monkeypatch.setattr(environment, "_find_package_version", lambda package: f"{package} of tomorrow")
    launcher = Scripted()
    assert counts(desk.sweep(launcher, batch_size="16,32")) == {"reused": 2, "stale": 2}
    assert launcher.launched == []
    assert counts(desk.sweep(launcher, batch_size="16", retry="stale")) == {"ran": 1}
    assert counts(desk.sweep(launcher, batch_size="16,32")) == {"reused": 2, "stale": 1}


def test_another_machine_measures_for_itself(gpu_desk: Desk) -> None:
    gpu_desk.sweep(batch_size="16")
    gpu_desk.name = "NVIDIA A100"
    assert counts(gpu_desk.sweep(batch_size="16")) == {"ran": 1}
    gpu_desk.name = "NVIDIA H200"
    assert counts(gpu_desk.sweep(batch_size="16")) == {"reused": 1}
    assert len(gpu_desk.table()) == 2


# ---- repeats ----


@pytest.mark.slow
def test_repeats_run_in_a_random_order_drawn_from_the_seed(desk: Desk, tmp_path: Path) -> None:
    one, same, other = Scripted(), Scripted(), Scripted()
    batches = "8,16,32,64"
    desk.sweep(one, repeats=2, order="random", batch_size=batches)
    Desk(folder=tmp_path / "same").sweep(same, repeats=2, order="random", batch_size=batches)
    Desk(folder=tmp_path / "other").sweep(other, repeats=2, order="random", seed="1", batch_size=batches)
    runs = [
        [(order.trial.batch_size, order.seed) for order in launcher.launched]
        for launcher in (one, same, other)
    ]
    assert len(set(runs[0])) == 8
    assert {seed for _, seed in runs[0]} == {0, 1}
    assert runs[0] == runs[1]
    assert [batch for batch, _ in runs[0]] != [batch for batch, _ in runs[2]]
    assert [batch for batch, _ in runs[0]] != [8, 16, 32, 64] * 2
