"""Sweeps of jobs side by side, with scripted trials: every ending, every column, what is run again."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scripted
from benches import Heard, run_with, sweep_of
from fake_nvml import FakeNvml, gpu, running
from scripted import Scripted, trains_for

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands import sweep as command
from gpubench.commands.audit import audit
from gpubench.node.watch.nvml import Nvml
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import Options, with_options
from gpubench.plan.plan import Unit
from gpubench.plan.sources import Disk
from gpubench.plan.unit_label import unit_label
from gpubench.record import recording
from gpubench.report.contents import contents
from gpubench.results.counting import newest
from gpubench.results.csv_text import csv_cell
from gpubench.results.store import Results
from gpubench.schema.columns import MEASURED, OF_GROUPS
from gpubench.schema.events import RankExit
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record
from gpubench.schema.row import Row
from gpubench.sweep.closing import emit, finish
from gpubench.sweep.preflight import check_hardware
from gpubench.sweep.stored_plan import store_plan
from gpubench.sweep.summary import Summary
from gpubench.sweep.survey import Settings
from gpubench.sweep.sweep import Sweep

BASE = """
name = "test"
[fixed]
model = "lenet"
variant = "synthetic"
input_size = 28
[run]
rounds = 1
epochs = 3
"""


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps into it one after the other, as `gpubench sweep` makes them."""

    folder: Path
    gpus: int = 1
    cpus: int | None = 2
    nvml: Nvml | None = None
    said: list[str] = dataclasses.field(default_factory=list)
    emitted: list[Row] = dataclasses.field(default_factory=list)

    def work(self, *jobs: str, retry: str = "", fresh: bool = False, **given: Any) -> Sweep:
        options = {name: given.pop(name) for name in ("repeats", "timeout", "pairs") if name in given}
        experiment = with_options(parse(BASE, "test"), Options(fields=given, jobs=jobs, **options))
        machine = scripted.computer(self.gpus, cpus=self.cpus)
        plan = make_plan(experiment, machine, Disk(), "given")
        settings = Settings(retry=frozenset(retry.split(",") if retry else ()), fresh=fresh)
        made = sweep_of(plan, self.folder, machine, nvml=self.nvml, settings=settings)
        made.load()
        return made

    def sweep(
        self,
        *jobs: str,
        by: Scripted | None = None,
        stop: Callable[[], bool] = lambda: False,
        **given: Any,
    ) -> Summary:
        """`gpubench sweep --job … --job …` with these options, as text."""
        work = self.work(*jobs, **given)
        work.bench.results.create()
        store_plan(work)
        view, launcher = Heard(), by or Scripted()
        self.emitted = []
        summary = run_with(launcher, work, view, stop, self.emitted.append)
        launcher.close()
        self.said = view.lines
        return summary

    def records(self) -> list[Record]:
        """Every attempt that is stored, a job each."""
        return Results(self.folder).records()

    def jobs(self) -> list[Record]:
        """Of each job of a group the attempt that counts, in the order of the jobs."""
        found = [r for r in newest(self.records()).values() if r.group]
        return sorted(found, key=lambda r: (str(r.group), str(r.job)))

    def solos(self) -> list[Record]:
        return [r for r in newest(self.records()).values() if not r.group]

    def table(self) -> pd.DataFrame:
        """trials.csv, of groups only."""
        return pd.read_csv(self.folder / "trials.csv").query("group.notna()").sort_values(["group", "job"])

    def measured_alone(self, figures: dict[int, dict[str, Any]]) -> None:
        """Writes figures by batch size into the stored trials alone, as if they had been watched. None: not known."""
        for path in (self.folder / "records").glob("*/t*.json"):
            stored = json.loads(path.read_text())
            for column, value in figures[stored["trial"]["batch_size"]].items():
                stored["result"].pop(column, None)
                stored["missing"].pop(column, None)
                kind = "missing" if value is None else "result"
                stored[kind][column] = value or "the log does not tell"
            path.write_text(json.dumps(stored))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def counts(summary: Summary) -> dict[str, Any]:
    """What is not zero."""
    values = ((field.name, getattr(summary, field.name)) for field in dataclasses.fields(summary))
    return {name: value for name, value in values if value}


def times(alone: dict[int, float], together: dict[int, float]) -> Scripted:
    """Epoch times by batch size."""

    def choose(order: TrialOrder) -> scripted.Script:
        return trains_for((together if order.jobs > 1 else alone)[order.batch_size])

    return Scripted(choose)


def in_a_group(script: scripted.Script, batch: int) -> Scripted:
    """This script for the job of that batch, only where others run beside it."""
    return Scripted(lambda order: script if order.jobs > 1 and order.batch_size == batch else scripted.trains)


TWO = ("batch_size=16", "batch_size=32")


# ---- ok ----


def test_two_jobs_and_their_baselines(desk: Desk) -> None:
    by = times(alone={16: 2.0, 32: 1.0}, together={16: 3.0, 32: 2.0})
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 3}
    assert [(order.batch_size, order.jobs) for order in by.launched] == [
        (16, 1),
        (32, 1),
        (16, 2),
        (32, 2),
    ]
    one, other = desk.jobs()
    assert [r.status for r in (one, other)] == ["ok", "ok"]
    assert (one.group, one.job, other.job) == ("16 & 32", "1 of 2", "2 of 2")
    assert one.group_id == other.group_id
    alone = {r.trial.batch_size: r.trial_id for r in desk.solos()}
    for record, batch, slowdown, solo_s in ((one, 16, 1.5, 2.0), (other, 32, 2.0, 1.0)):
        result = vars(record.result)
        assert result["slowdown"] == pytest.approx(slowdown)
        assert result["solo_epoch_time_s"] == pytest.approx(solo_s)
        assert result["overlap_gain"] == pytest.approx(1 / 1.5 + 1 / 2 - 1)
        assert result["sharing"] == "perhaps partly parallel", "two epochs were measured"
        assert result["group_id"] == record.group_id
        assert result["solo_id"] == alone[batch]
        assert record.missing["top1_pct"] == f"left to the same trial alone, {alone[batch]}"
        assert record.missing["loss"] == record.missing["top1_pct"]
        assert record.epochs[-1]["epoch_time_s"] == pytest.approx(solo_s * slowdown)


def test_the_table_tells_it(desk: Desk) -> None:
    by = times(alone={16: 2.0, 32: 1.0}, together={16: 3.0, 32: 2.0})
    desk.sweep(*TWO, by=by)
    found = desk.table()
    assert list(found["group"]) == ["16 & 32"] * 2
    assert list(found["job"]) == ["1 of 2", "2 of 2"], "a spreadsheet makes no date of it"
    assert list(found["slowdown"]) == pytest.approx([1.5, 2.0])
    assert list(found["overlap_gain"]) == pytest.approx([0.166667] * 2)
    assert list(found["sharing"]) == ["perhaps partly parallel"] * 2
    assert found["group_id"].nunique() == 1
    assert set(found["solo_id"]) == {r.trial_id for r in desk.solos()}
    for name in ("table.csv", "table.md"):
        text = (desk.folder / name).read_text(encoding="utf-8")
        assert "16 & 32" in text, name
        assert "1 of 2" in text, name
        assert "0.17" in text or "0.166" in text, name
    page = (desk.folder / "table.md").read_text(encoding="utf-8")
    assert page.count("partly parallel") == page.count("perhaps partly parallel") == 3, (
        "two rows, one sentence"
    )


def test_the_barrier_and_the_end_of_filling_stand_in_the_record(desk: Desk) -> None:
    by = times(alone={16: 0.1, 32: 0.1}, together={16: 0.1, 32: 0.1})
    desk.sweep(*TWO, by=by)
    for record in desk.jobs():
        facts, windows = record.together, {w.epoch: w for w in record.windows}
        warmup = [e["epoch"] for e in record.epochs if e["warmup"]]
        measured = [e["epoch"] for e in record.epochs if not e["warmup"]]
        assert record.span.launched <= facts["released"] <= facts["stopped"] <= record.span.finished
        assert all(windows[number].t0 <= facts["released"] for number in warmup)
        assert all(windows[number].t0 >= facts["released"] for number in measured)
        assert facts["jobs"] == 2
        assert len(measured) == 2, "what was trained to keep the others company does not count"


def test_several_ranks_wait_at_one_barrier(desk: Desk) -> None:
    desk.gpus = 4
    desk.sweep("batch_size=16,gpu_ids=0", "batch_size=32,gpu_ids=1+2")
    assert [(r.status, r.resolved["gpus"]) for r in desk.jobs()] == [("ok", 1), ("ok", 2)]


def _both_or_neither(record: Record) -> list[str]:
    return [
        column.name
        for column in MEASURED
        if column.name != "doubts"
        and (vars(record.result).get(column.name) is None) != bool(record.missing.get(column.name))
    ]


@pytest.mark.parametrize(
    "script",
    [
        scripted.trains,
        scripted.runs_out_of_gpu_memory,
        scripted.runs_out_when_measured,
        scripted.raises,
        scripted.is_killed,
        scripted.hangs,
    ],
)
@pytest.mark.parametrize("gpus", [0, 1])
def test_every_column_has_a_value_or_a_reason(desk: Desk, script: scripted.Script, gpus: int) -> None:
    desk.gpus = gpus
    desk.sweep(*TWO, by=in_a_group(script, 32), timeout="0.3s")
    for record in desk.records():
        assert _both_or_neither(record) == []
        if not record.group:
            assert {record.missing[column] for column in OF_GROUPS} == {"the trial ran alone"}
        else:
            assert record.result.group_id
            assert record.result.solo_id
            assert record.result.solo_epoch_time_s == pytest.approx(scripted.EPOCH_S)


def test_each_job_has_a_line_of_its_own(desk: Desk) -> None:
    desk.sweep(*TWO)
    assert [(row.batch_size, row.job) for row in desk.emitted] == [
        (16, None), (32, None), (16, "1 of 2"), (32, "2 of 2"),
    ]  # fmt: skip


def test_json_lines_of_a_group(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.sweep(*TWO, by=in_a_group(scripted.runs_out_when_measured, 32))
    for row in desk.emitted:
        emit(row, "json")
    *alone, one, other = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["status"] for line in alone] == ["ok", "ok"]
    assert (one["job"], one["status"], one["group"]) == ("1 of 2", "skipped", "16 & 32")
    assert (other["job"], other["status"]) == ("2 of 2", "oom")
    assert one["group_id"] == other["group_id"]
    assert "together" not in one


def test_samples_and_logs_are_each_jobs_own(desk: Desk) -> None:
    desk.sweep(*TWO)
    results = Results(desk.folder)
    for record in desk.jobs():
        assert results.part("samples", record.trial_id, 1, "csv").exists()
        assert results.log(record.trial_id, 1).exists()
    assert len(list(desk.folder.rglob("records/*/*.json"))) == 3, "a file each for two trials and the group"


def test_the_audit_copes_with_groups(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.sweep(*TWO, by=in_a_group(scripted.runs_out_when_measured, 32), repeats=2)
    assert audit(desk.folder, form="json") == 0
    captured = capsys.readouterr()
    found = {line["number"]: line["verdict"] for line in map(json.loads, captured.out.splitlines())}
    assert len(found) == 13
    assert captured.err == ""
    assert found[3] == "kept", "every attempt of every job is there"


def test_every_pair(desk: Desk) -> None:
    by = Scripted(lambda order: trains_for(1.0 if order.jobs == 1 else 1.0 + order.batch_size / 100))
    desk.sweep("batch_size=10", "batch_size=20", "batch_size=40", by=by, pairs=True)
    assert len(by.launched) == 3 + 2 * 3, "each job alone once"
    text = (desk.folder / "table.md").read_text(encoding="utf-8")
    assert "1.10 / 1.20" in text or "1.20 / 1.10" in text
    matrix = text[text.index("Two jobs together") :].splitlines()
    rows = [line for line in matrix if line.startswith("|")][2:4]
    assert [row.count(" / ") for row in rows] == [1, 2], "half a matrix"


# ---- the published log ----

LOG = {
    # alone, together, overlap gain, GPUs (of one process each), batches
    "four GPUs": ((19.6, 12.8, 11.3), (51.0, 28.0, 22.5), 0.17, ("0+1+2+3,strategy=dp",) * 3, (32, 64, 128)),
    "own GPUs": ((16.2, 15.4, 11.3), (28.5, 28.5, 28.5), 0.25, ("0", "1", "2+3,strategy=dp"), (32, 64, 128)),
    "one GPU": ((21.5, 13.6), (32.5, 23.1), 0.25, ("0", "0"), (16, 32)),
}


@pytest.mark.parametrize("name", LOG)
def test_the_logs_figures_through_the_whole_path(desk: Desk, name: str) -> None:
    alone, together, gain, gpus, batches = LOG[name]
    desk.gpus = 4
    by = times(dict(zip(batches, alone, strict=True)), dict(zip(batches, together, strict=True)))
    jobs = [f"batch_size={batch},gpu_ids={ids}" for batch, ids in zip(batches, gpus, strict=True)]
    desk.sweep(*jobs, by=by, epochs="4")  # three are measured, so the verdict is sure
    found = desk.table()
    assert list(found["overlap_gain"].round(2)) == [gain] * len(jobs)
    assert list(found["slowdown"]) == pytest.approx(
        [t / a for t, a in zip(together, alone, strict=True)], rel=1e-5
    )
    assert set(found["sharing"]) == {"partly parallel"}
    assert f"overlap gain {gain}" in (desk.folder / "table.md").read_text(encoding="utf-8")


def test_two_epochs_of_5_and_15_s_leave_a_group_without_a_verdict(desk: Desk) -> None:
    """What is stored of them, and what whoever reads that says."""
    desk.sweep(*TWO, by=Scripted(lambda order: trains_for(*((5.0, 15.0) if order.jobs > 1 else (10.0,)))))
    for record in desk.jobs():
        assert record.result.overlap_gain == pytest.approx(1.0)
        assert "sharing" not in vars(record.result)
        assert record.missing["sharing"].startswith("epoch times spread by as much as they last")
    assert set(desk.table()["sharing"].isna()) == {True}
    text = (desk.folder / "table.md").read_text(encoding="utf-8")
    assert "no verdict (overlap gain 1.00): epoch times spread by as much as they last" in text


def test_the_logs_own_group_is_predicted_from_its_rows_alone(desk: Desk) -> None:
    """CPU share × epoch time adds up to 27.6 s; it took 28.5 s."""
    alone, together, _, gpus, batches = LOG["own GPUs"]
    desk.gpus, desk.cpus = 4, 1
    by = times(dict(zip(batches, alone, strict=True)), dict(zip(batches, together, strict=True)))
    jobs = [f"batch_size={batch},gpu_ids={ids}" for batch, ids in zip(batches, gpus, strict=True)]
    for job in jobs:
        fields: dict[str, Any] = dict(part.split("=") for part in job.split(","))
        desk.sweep(by=by, **fields)
    shares = (0.59, 0.61, 0.766)
    desk.measured_alone(
        {
            batch: {"cpu_s_per_epoch": time * share, "data_wait_pct": None}
            for batch, time, share in zip(batches, alone, shares, strict=True)
        }
    )
    assert counts(desk.sweep(*jobs, by=by)) == {"ran": 1, "reused": 3}, "the baselines were there already"
    found = desk.table()
    predicted_s = list(found["predicted_slowdown"] * found["solo_epoch_time_s"])
    assert predicted_s == pytest.approx([31.8, 30.3, 22.2], abs=0.05)
    facts = desk.jobs()[0].together
    assert facts["predicted"]["rounds"]["cpu"] == pytest.approx(27.6, abs=0.05)
    assert facts["predicted"]["limits"] == ["cpu"]
    (line,) = desk.said
    assert (
        "predicted 1.97, 1.97, 1.97 times as long as alone: perhaps partly parallel, overlap gain 0.26"
        in line
    )
    assert line.endswith("; they would wait for the CPUs")
    text = (desk.folder / "table.md").read_text(encoding="utf-8")
    assert "; predicted 1.97, 1.97 and 1.97 times as long as alone, measured 1.76, 1.85 and 2.52" in text


def test_without_figures_of_the_cpus_nothing_is_predicted(desk: Desk) -> None:
    desk.sweep(*TWO)
    (line,) = desk.said
    assert "not predicted: not known of the trials alone: " in line
    for record in desk.jobs():
        assert record.missing["predicted_slowdown"].startswith("not known of the trials alone: ")
        assert record.together["no_prediction"] == record.missing["predicted_slowdown"]


def test_what_is_predicted_weighs_how_far_repeats_alone_lie_apart(desk: Desk) -> None:
    """As `gpubench predict` does: one process's epochs tell nothing of the next one's."""
    desk.cpus = 1
    by_seed = Scripted(lambda order: scripted.trains_for(0.5 * (1 + order.seed)))
    desk.sweep(by=by_seed, batch_size="16,32", repeats=2)
    alone = {"gpu_busy_s_per_epoch": 0.2, "cpu_s_per_epoch": 0.3, "data_wait_pct": None}
    desk.measured_alone({16: alone, 32: alone})
    desk.sweep(*TWO)
    (line,) = desk.said
    assert "times as long as alone" in line
    doubts = line.partition("; alone with doubts (")[2].partition(")")[0].split(", ")
    assert "spread" in doubts


# ---- baselines that are lacking ----


def test_a_baseline_that_failed_leaves_the_slowdown_empty_and_the_group_runs(desk: Desk) -> None:
    by = Scripted(
        lambda order: scripted.raises if order.jobs == 1 and order.batch_size == 32 else scripted.trains
    )
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 3, "failed": 1}
    one, other = desk.jobs()
    assert [r.status for r in (one, other)] == ["ok", "ok"]
    assert one.result.slowdown == pytest.approx(1.0)
    assert "slowdown" not in vars(other.result)
    assert other.missing["slowdown"] == "the same trial alone has no figures here"
    assert other.missing["solo_epoch_time_s"] == other.missing["slowdown"]
    for record in (one, other):
        assert record.missing["overlap_gain"].startswith("not all jobs have a slowdown: ")
        assert record.missing["predicted_slowdown"] == "no figures of job 2 of 2 alone"
    (line,) = [line for line in desk.said if "predicted" in line]
    assert line.endswith("not predicted: no figures of job 2 of 2 alone")


def test_a_baseline_that_ran_out_of_memory_skips_its_groups(desk: Desk) -> None:
    by = Scripted(
        lambda order: scripted.runs_out_of_gpu_memory if order.batch_size >= 32 else scripted.trains
    )
    assert counts(desk.sweep(*TWO, by=by)) == {"ran": 2, "skipped": 1}
    why = "job 2 of 2: batch 32 of the same configuration was out of memory alone"
    assert desk.said == [f"[3/3] 16 & 32  skipped: {why}"]
    found = desk.table()
    assert list(found["status"]) == ["skipped"] * 2
    assert list(found["reason"]) == [why] * 2
    assert found["solo_id"].notna().all()
    assert len(desk.records()) == 2, "skipped before it ran: nothing is stored"
    assert counts(desk.sweep(*TWO)) == {"reused": 2, "skipped": 1}


# ---- members that end badly ----


@pytest.mark.parametrize("script", [scripted.runs_out_of_gpu_memory, scripted.runs_out_when_measured])
def test_jobs_that_do_not_fit_together_are_a_result(desk: Desk, script: scripted.Script) -> None:
    summary = desk.sweep(*TWO, by=in_a_group(script, 32), precision="fp32,bf16")
    assert counts(summary) == {"ran": 6}, "no failure: exit code 0; and the sweep goes on"
    for record in desk.jobs():
        if record.trial.batch_size == 32:
            assert (record.status, record.reason) == ("oom", "OutOfMemoryError: CUDA out of memory")
        else:
            assert record.status == "skipped"
            assert record.reason == "job 2 of 2 ran out of GPU memory: OutOfMemoryError: CUDA out of memory"
        assert record.missing["overlap_gain"].startswith("not all jobs have a slowdown: job ")
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, precision="fp32,bf16")) == {"reused": 6}
    assert again.launched == []


def test_groups_that_need_more_are_skipped_and_smaller_ones_are_not(desk: Desk) -> None:
    def choose(order: TrialOrder) -> scripted.Script:
        return scripted.runs_out_when_measured if order.jobs * order.batch_size >= 64 else scripted.trains

    by = Scripted(choose)
    summary = desk.sweep(by=by, batch_size="16,32", copies="1,2,3,4,5")
    endings = {(r.trial.batch_size, r.trial.copies): r.status for r in desk.jobs()}
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
    assert desk.table()["status"].eq("ok").all()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (scripted.raises, "ValueError: no such layer"),
        (scripted.is_killed, f"rank 0 {scripted.SIGKILLED}; "
                             "last line of its output: the kernel was not amused"),
        (scripted.vanishes, "its processes ended without a result"),
    ],
)  # fmt: skip
def test_one_that_dies_takes_the_others_along_and_the_whole_group_is_run_again(
    desk: Desk, script: scripted.Script, reason: str
) -> None:
    assert counts(desk.sweep(*TWO, by=in_a_group(script, 16), seed="0,1")) == {"ran": 6, "failed": 2}
    for record in desk.jobs():
        if record.trial.batch_size == 16:
            assert (record.status, record.reason) == ("failed", reason)
        else:
            assert (record.status, record.reason) == ("skipped", f"job 1 of 2 failed: {reason}")
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, seed="0,1")) == {"reused": 4, "failed": 2}
    assert again.launched == []
    assert counts(desk.sweep(*TWO, by=again, seed="0", retry="failed")) == {"ran": 1, "reused": 2}
    assert again.batches == [16, 32], "not only the job that failed"
    assert [(r.attempt, r.status) for r in desk.jobs() if r.trial.seed == 0] == [(2, "ok")] * 2
    kept = [r.status for r in desk.records() if r.group and r.trial.seed == 0]
    assert sorted(kept) == ["failed", "ok", "ok", "skipped"], "both attempts are kept"


def test_a_job_that_hangs_is_named_and_the_others_were_skipped(desk: Desk) -> None:
    summary = desk.sweep(*TWO, by=in_a_group(scripted.hangs, 32), timeout="0.3s")
    assert counts(summary) == {"ran": 3, "timed_out": 1}
    one, other = desk.jobs()
    assert (other.status, other.reason) == ("timeout", "did not end within 0.3 s")
    assert (one.status, one.reason) == ("skipped", "job 2 of 2 timed out: did not end within 0.3 s")
    assert one.epochs, "what it got done is kept"
    assert counts(desk.sweep(*TWO, retry="timeout")) == {"ran": 1, "reused": 2}


def test_an_interrupted_group_runs_again_unasked(desk: Desk) -> None:
    by = in_a_group(scripted.hangs, 32)
    summary = desk.sweep(*TWO, by=by, seed="0,1", stop=lambda: len(by.launched) == 4)
    assert counts(summary) == {"ran": 3, "interrupted": True}
    assert [(r.status, r.reason) for r in desk.jobs()] == [("interrupted", "the sweep was stopped")] * 2
    again = Scripted()
    assert counts(desk.sweep(*TWO, by=again, seed="0,1")) == {"ran": 4, "reused": 2}
    assert [order.jobs for order in again.launched] == [2, 2, 1, 1, 2, 2]
    assert {r.status for r in desk.jobs()} == {"ok"}


def test_a_sweep_that_was_killed_in_a_group_leaves_a_log_that_is_kept(desk: Desk) -> None:
    work = desk.work(*TWO)
    log = work.bench.results.log(work.plan.units[-1].jobs[1].trial_id, 1)
    log.parent.mkdir(parents=True)
    log.write_text("its last words")
    desk.sweep(*TWO)
    assert [(r.status, r.attempt) for r in desk.jobs()] == [("ok", 2)] * 2
    assert log.read_text() == "its last words"


def test_a_second_sweep_has_nothing_to_do(desk: Desk) -> None:
    asked: dict[str, Any] = {"copies": "1,2,3", "batch_size": "16,32"}
    first = counts(desk.sweep(**asked))
    before = {path: path.read_bytes() for path in desk.folder.rglob("records/*/*.json")}
    again = Scripted()
    assert counts(desk.sweep(by=again, **asked)) == {"reused": first["ran"]}
    assert again.launched == []
    assert {path: path.read_bytes() for path in desk.folder.rglob("records/*/*.json")} == before


def test_fresh_runs_groups_again(desk: Desk) -> None:
    desk.sweep(*TWO)
    assert counts(desk.sweep(*TWO, fresh=True)) == {"ran": 3}
    assert {r.attempt for r in desk.jobs()} == {2}


def test_groups_beyond_the_machine(desk: Desk) -> None:
    assert counts(desk.sweep("gpu_ids=0", "gpu_ids=3")) == {"skipped": 3}
    assert set(desk.table()["reason"]) == {"needs 4 GPUs, this machine shows 1"}
    work = desk.work("gpu_ids=0", "gpu_ids=3")
    with pytest.raises(UsageError, match="no trial is left: needs 4 GPUs, this machine shows 1"):
        check_hardware(work.survey(), work.bench.node.machine)
    summary = desk.sweep("lr=0.1", "lr=0.2", "lr=0.3", cpu_sharing="pinned")
    assert summary.skipped == 4
    assert "needs 3 CPUs for jobs pinned to their own, 2 may be used" in desk.said[-1]


def test_a_cap_that_one_job_breaks_is_out_of_memory(desk: Desk) -> None:
    """Both train to the end, 900 MiB each by the driver; the cap of one is below that, but only in the group."""
    desk.nvml = scripted.Driver(mib={os.getpid(): 700.0})
    desk.gpus = 2
    jobs = ("batch_size=16,gpu_mem_cap_mib=800,gpu_ids=0", "batch_size=32,gpu_ids=1")
    work = desk.work(*jobs)
    for solo in (unit for unit in work.plan.units if not unit.is_group):
        trial = solo.jobs[0].trial
        cap: dict[str, Any] = {"gpu_mem_cap_mib": "800"} if trial.gpu_mem_cap_mib else {}
        desk.sweep(
            batch_size=str(trial.batch_size), gpu_ids=str(trial.gpu_ids[0] if trial.gpu_ids else 0), **cap
        )
    desk.nvml = scripted.Driver(mib={os.getpid(): 900.0})
    assert counts(desk.sweep(*jobs)) == {"ran": 1, "reused": 2}, "no failure"
    one, other = desk.jobs()
    assert (one.status, one.reason) == ("oom", "900 MiB by the driver, over the cap of 800 MiB")
    assert other.status == "skipped"
    assert other.reason == f"job 1 of 2 ran out of GPU memory: {one.reason}"
    assert counts(desk.sweep(*jobs)) == {"reused": 3}, "final"


# ---- what each job gets ----


def test_pinned_jobs_get_cpus_of_their_own_and_shared_ones_the_same(desk: Desk) -> None:
    desk.cpus = 4
    by = Scripted()
    desk.sweep(by=by, copies="2", cpu_sharing="shared,pinned", variant="synthetic")
    cpus = [list(order.cpu_ids) for order in by.launched]
    assert cpus == [[0, 1, 2, 3]] * 3 + [[0, 1]] + [[0, 1], [2, 3]]
    assert [r.resolved["cpus"] for r in desk.jobs()] == [4, 2, 4, 2]


def test_energy_of_a_shared_gpu_is_divided_and_adds_up(desk: Desk) -> None:
    """100 W, whoever works: both jobs' parts of it, a second, are 100 J again."""
    first = gpu(0)
    nvml = FakeNvml(
        devices=(first,), answers={"power_w": {first.uuid: 100.0}, "utilisation": running({first.uuid: 80.0})}
    )
    desk.nvml, desk.cpus = nvml, None
    seconds = {(16, 1): 0.3, (32, 1): 0.3, (16, 2): 0.3, (32, 2): 0.6}
    by = Scripted(lambda order: scripted.lasts(seconds[order.batch_size, order.jobs], warmup_s=0.3))
    desk.sweep(*TWO, by=by, epochs="2")
    one, other = desk.jobs()
    for solo in desk.solos():
        assert solo.epochs[0]["energy_j"] == pytest.approx(100 * 0.3, rel=0.1), "alone it is known"
        assert solo.result.energy_j == pytest.approx(100 * solo.result.epoch_time_s, rel=1e-3)
        assert solo.result.energy_source == "nvml-power-integral"
    for column in ("energy_j", "energy_sampled_j"):
        a, b = (vars(r.result)[column] / r.result.epoch_time_s for r in (one, other))
        assert a + b == pytest.approx(100, rel=1e-3), column
        assert a / b == pytest.approx(2, rel=0.2), "equal work, half as often"
    for record in (one, other):
        assert record.result.energy_source == "estimate"
        assert "an estimate" in record.provenance["energy_j"]["source"]
        assert record.result.power_w == pytest.approx(100, rel=1e-3), "the whole GPU's"
        assert record.missing["gpu_busy_s_per_epoch"]
        assert record.epochs[-1]["energy_j"] == pytest.approx(record.result.energy_j)
        assert record.epochs[0]["energy_j"] is None, "nobody knows its part of what went while it warmed up"
        assert "shared-gpu" in record.doubts
        assert _both_or_neither(record) == []


def test_energy_of_gpus_of_their_own_is_each_jobs_own(desk: Desk) -> None:
    nvml = FakeNvml(
        answers={
            "power_w": {gpu(0).uuid: 100.0, gpu(1).uuid: 300.0},
            "utilisation": running({gpu(0).uuid: 80.0}),
        }
    )
    desk.gpus, desk.nvml, desk.cpus = 2, nvml, None
    desk.sweep(
        "batch_size=16,gpu_ids=0",
        "batch_size=32,gpu_ids=1",
        by=Scripted(lambda _: scripted.lasts(0.3)),
        epochs="2",
    )
    for record, watts in zip(desk.jobs(), (100, 300), strict=True):
        assert record.result.energy_j == pytest.approx(watts * record.result.epoch_time_s, rel=1e-3)
        assert record.result.energy_source == "nvml-power-integral"
        assert "shared-gpu" not in record.doubts


def test_the_view_follows_the_job_that_is_the_least_far(desk: Desk) -> None:
    """And nothing breaks while some jobs wait for others."""
    seen: list[Any] = []

    class Watching(Heard):
        def update(self, progress: Any) -> None:
            seen.append(progress)

    work = desk.work(*TWO, epochs="2")
    work.bench.results.create()
    by = Scripted(lambda order: scripted.lasts(0.6 if order.jobs > 1 and order.batch_size == 16 else 0.05))
    run_with(by, work, Watching())
    notes = {progress.note for progress in seen if progress.trial_label.startswith("16 & 32")}
    assert "job 1 of 2, 1 waits for it" in notes


def test_a_label_of_a_group_is_its_name_and_what_its_jobs_have_in_common(desk: Desk) -> None:
    work = desk.work(*TWO, variant="synthetic,pre-resized", workers="2")
    labels = [unit_label(work.plan, unit) for unit in work.plan.units]
    assert labels[2] == "16 & 32 variant=synthetic"
    assert labels[0] == "batch_size=16 variant=synthetic"
    copies = desk.work(copies="1,2", batch_size="8,16")
    assert [unit_label(copies.plan, unit) for unit in _groups(copies)] == [
        "2 copies batch_size=8",
        "2 copies batch_size=16",
    ]


def test_a_label_says_in_words_which_repeat_it_is(desk: Desk) -> None:
    def labels(**asked: Any) -> list[str]:
        work = desk.work(batch_size="8", **asked)
        return [unit_label(work.plan, unit) for unit in work.plan.units]

    assert labels() == ["model=lenet batch_size=8"]
    assert labels(repeats=2) == [f"model=lenet batch_size=8 repeat {number} of 2" for number in (1, 2)]


def _groups(work: Sweep) -> list[Unit]:
    return [unit for unit in work.plan.units if unit.is_group]


# ---- what a sweep must not get wrong ----


def test_a_lock_that_was_taken_over_ends_the_sweep(desk: Desk) -> None:
    work = desk.work(batch_size="32,64")
    work.bench.results.create()
    beats: list[int] = []

    def beat() -> None:
        beats.append(1)
        if len(beats) > 3:
            raise UnusableError("another sweep has taken this folder over; this one ends")

    work.bench.results.beat = beat  # type: ignore[method-assign]
    with pytest.raises(UnusableError, match="taken this folder over"):
        run_with(Scripted(), work, Heard())
    assert work.records == []


def test_an_axis_that_one_job_settles_leaves_every_group_whole(desk: Desk) -> None:
    desk.sweep("optimizer=adam", "batch_size=128", batch_size="32,64")
    found = contents(Results(desk.folder), Results(desk.folder).records())
    assert not found.superseded
    (shown,) = found.tables
    groups = [row.group_id for row in shown.rows if row.group]
    assert sorted(groups.count(one) for one in set(groups)) == [2, 2]
    assert any("batch_size=32/128" in line for line in desk.said), "and they are told apart"


def test_an_edited_group_takes_no_half_of_the_old_one_away(desk: Desk) -> None:
    text = BASE + '\n[[group]]\nname = "x"\njobs = [{{batch_size = 32}}, {{batch_size = {}}}]\n'
    machine = scripted.computer(1, cpus=2)
    for batch in (64, 128):
        plan = make_plan(parse(text.format(batch), "test"), machine, Disk(), "given")
        work = sweep_of(plan, desk.folder, machine)
        work.load()
        work.bench.results.create()
        store_plan(work)
        run_with(Scripted(), work, Heard())
    found = contents(Results(desk.folder), Results(desk.folder).records())
    kept: dict[str, set[bool]] = {}
    for record in Results(desk.folder).records():
        if record.group_id:
            kept.setdefault(record.group_id, set()).add(record.trial_id in found.superseded)
    assert list(kept.values()) == [{False}, {False}]


def test_a_baseline_that_succeeds_at_last_runs_its_group_again_in_the_same_sweep(desk: Desk) -> None:
    failing = Scripted(
        lambda order: scripted.raises if order.jobs == 1 and order.batch_size == 32 else scripted.trains
    )
    desk.sweep(*TWO, by=failing)
    again = Scripted()
    desk.sweep(*TWO, by=again, retry="failed")
    assert [order.jobs for order in again.launched] == [1, 2, 2]
    assert all("slowdown" in vars(record.result) for record in desk.jobs())
    assert counts(desk.sweep(*TWO)) == {"reused": 3}


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
        yield from scripted.warms_up(order)
        for number in range(order.warmup_epochs, order.epochs):
            yield from scripted.epoch(order, number)
        yield from scripted.fills(order)
        yield scripted.HANG

    def choose(order: TrialOrder) -> scripted.Script:
        return scripted.trains if order.jobs == 1 else aborts if order.batch_size == 16 else hangs

    assert counts(desk.sweep(*TWO, by=Scripted(choose), timeout="2")) == {"ran": 3, "timed_out": 1}
    one, other = desk.jobs()
    assert (one.status, other.status) == ("skipped", "timeout")


def neighbours_seen(monkeypatch: pytest.MonkeyPatch) -> list[recording.OtherJobs]:
    """What is found out of the jobs beside each job, as a sweep finds it."""
    seen: list[recording.OtherJobs] = []
    told = recording._neighbours

    def noting(jobs: Any, index: int) -> recording.OtherJobs:
        seen.append(told(jobs, index))
        return seen[-1]

    monkeypatch.setattr(recording, "_neighbours", noting)
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
    slow = Scripted(lambda order: scripted.trains if order.jobs == 1 else trains_for(order.batch_size))
    desk.sweep(*TWO, by=slow)
    work = desk.work(*TWO)
    work.load()
    alone, *_, group = work.estimates(work.plan.units)
    assert group.seconds == pytest.approx(2 * alone.seconds, rel=0.01)


def test_a_baseline_of_a_group_that_can_not_run_is_not_trained(desk: Desk) -> None:
    by = Scripted()
    assert counts(desk.sweep(copies="3", cpu_sharing="pinned", cpus="2", by=by)) == {"skipped": 2}
    assert by.launched == []
    assert "only 3 copies needs it: needs 6 CPUs" in desk.said[0]
    # Asked for by itself it runs.
    assert counts(desk.sweep(copies="1,3", cpus="2", by=Scripted())) == {"ran": 2}


def test_a_job_that_was_faster_beside_others_leaves_no_verdict(desk: Desk) -> None:
    def choose(order: TrialOrder) -> scripted.Script:
        return trains_for(8.0) if order.jobs == 1 and order.batch_size == 16 else trains_for(1.0)

    desk.sweep(*TWO, by=Scripted(choose))
    for record in desk.jobs():
        assert "sharing" not in vars(record.result)
        assert record.missing["sharing"].startswith("job 1 of 2 took 0.12 times as long as alone")


def test_what_the_machine_has_no_room_for_is_skipped_whoever_reads_the_folder(desk: Desk) -> None:
    desk.sweep(copies="1,3", cpu_sharing="shared,pinned", cpus="2")
    found = contents(Results(desk.folder), Results(desk.folder).records())
    states = [(row.group, row.status, row.reason) for row in found.rows if row.status != "ok"]
    why = "needs 6 CPUs for jobs pinned to their own, 2 may be used"
    assert states == [("3 copies", "skipped", why)] * 3


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


def test_json_lines_of_what_was_done_already_say_what_the_tables_say(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """Doubts about repeats and verdicts follow from other rows, and so stand in no record."""
    by_seed = Scripted(lambda order: scripted.trains_for(0.5 * (1 + order.seed)))
    desk.sweep(*TWO, by=by_seed, repeats=2)
    for path in (desk.folder / "records").glob(
        "*/g*.json"
    ):  # the verdict of a version that this one contradicts
        path.write_text(re.sub(r'"sharing": "[^"]*"', '"sharing": "parallel"', path.read_text()))
    work = desk.work(*TWO, repeats=2)
    planned = work.survey()
    summary = command.nothing_to_run(work, planned)
    finish(work, planned, summary, Heard(), "json")
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
    assert all("measure more --rounds" in line["doubt_texts"]["spread"] for line in spread)


def test_the_line_of_the_last_repeat_knows_the_others(desk: Desk) -> None:
    desk.sweep(by=Scripted(lambda order: scripted.trains_for(0.5 * (1 + order.seed))), repeats=2)
    assert ["spread" in (row.doubts or "") for row in desk.emitted] == [False, True]
