"""A results folder read back: records, and planned trials without one."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest
import scripted
from benches import run_with, sweep_of
from msgspec import structs
from scripted import Scripted
from swept import ASKED, swept

from gpubench.analyze.folder import Folder, build_folder_from_records, read_folder
from gpubench.datasets.facts import DataFacts
from gpubench.export.sheets import make_table_sheet, make_trial_sheet
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.experiment_file import format_experiment, parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.skips import NodeCapacity
from gpubench.plan.sources import DiskSources, StoredSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.live import QuietView
from gpubench.results.plans import read_stored_plans
from gpubench.run.stored_plan import store_plan
from gpubench.schema import catalog


def list_sizes(folder: Folder) -> dict[str, list[int]]:
    return {table.name: folder.select_table_rows(table)["batch_size"].tolist() for table in folder.tables}


def test_planned_trials_without_a_record_are_missing(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32,64", stop_after=1).write_tables()
    runs = read_folder(tmp_path, pytest.fail).runs
    assert list(zip(runs["batch_size"], runs["status"], strict=True)) == [
        (16, "ok"),
        (32, "missing"),
        (64, "missing"),
    ]
    assert "missing" not in (tmp_path / "trials.csv").read_text()


def test_a_trial_of_two_experiments_is_one_row_and_stands_in_both_tables(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32")
    swept(tmp_path, "two", "32,64")
    folder = read_folder(tmp_path, pytest.fail)
    assert sorted(folder.runs["batch_size"]) == [16, 32, 64]
    assert list_sizes(folder) == {"one": [16, 32], "two": [32, 64]}


@pytest.mark.slow
def test_rows_stand_as_planned_whatever_was_measured_first(tmp_path: Path) -> None:
    models = "mlp,lenet"
    options = ExperimentOptions(fields={"optimizer": "sgd,adam,momentum", "model": models})
    asked = apply_options(parse_experiment(ASKED.format(name="one"), "one"), options)
    plan = expand_experiment(asked, device="cpu", sources=DiskSources(), order="random")
    job = sweep_of(plan, tmp_path, scripted.computer())
    store_plan(job)
    run_with(Scripted(), job, QuietView())
    folder = read_folder(tmp_path, pytest.fail)
    rows = folder.select_table_rows(*folder.tables)
    wanted = [(o, m) for o in ("sgd", "adam", "momentum") for m in models.split(",")]
    assert list(zip(rows["optimizer"], rows["model"], strict=True)) == wanted


def test_stored_plans_have_the_trials_that_were_run(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    (stored,), problems = read_stored_plans(job.runner.results, job.records)
    assert stored.room == NodeCapacity(gpus=0, cpus=job.runner.node.machine.cpu_count)
    assert not problems
    assert [j.trial_id for j in stored.plan.jobs] == [j.trial_id for j in job.plan.jobs]


def test_a_plan_that_cannot_be_read_closes_no_folder(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    (path,) = job.runner.results.list_plan_paths()
    text = path.read_text()
    for old, new, why in (
        ("[plan.data.procedural]", "[plan.data.other]", "lacks the facts of 'procedural'"),
        ("[fixed]", "[fixed", "left out: "),
        ('name = "one"', 'name = "one"\nnmae = 1', "did you mean name"),
    ):
        path.write_text(text.replace(old, new, 1))
        lines: list[str] = []
        folder = read_folder(tmp_path, lines.append)
        assert list_sizes(folder) == {"one": [16, 32]}
        (problem,) = folder.problems
        assert lines == [problem]
        assert str(path) in problem
        assert why in problem


def test_a_plan_of_which_all_trials_of_one_data_set_were_dropped_reads_back() -> None:
    asked = Experiment(
        name="t",
        fixed={"model": "lenet", "batch_size": 128},
        axes=(Axis(("data",), (("procedural:64",), ("procedural:160",))),),
        variants=catalog.VARIANTS,
    )
    sources = DiskSources()
    plan = expand_experiment(asked, device="cpu", sources=sources)
    assert len(plan.units) == 1
    stored = tomllib.loads(format_experiment(asked, {"device": "cpu", **sources.encode_sources()}))["plan"]
    data = {name: DataFacts(**facts) for name, facts in stored["data"].items()}
    again = expand_experiment(asked, device="cpu", sources=StoredSources(data, stored.get("models", {})))
    assert [j.trial_id for j in again.jobs] == [j.trial_id for j in plan.jobs]
    assert again.dropped == plan.dropped


def test_an_edited_variant_takes_the_place_of_its_older_rows(tmp_path: Path) -> None:
    text = (
        ASKED.format(name="mine")
        + '[variants.own]\nfiles = "none"\ncpu = [{{ RandomErasing = {{ p = {p} }} }}]\n'
    )
    for p in (0.1, 0.9):
        edited = (
            text.replace('"synthetic"', '"own"').replace("{{", "{").replace("}}", "}").replace("{p}", str(p))
        )
        asked = apply_options(
            parse_experiment(edited, "mine"), ExperimentOptions(fields={"batch_size": "16"})
        )
        sources = DiskSources()
        plan = expand_experiment(asked, device="cpu", sources=sources)
        job = sweep_of(plan, tmp_path, scripted.computer(), sources=sources)
        job.load()
        store_plan(job)
        run_with(Scripted(), job, QuietView())
    folder = read_folder(tmp_path, pytest.fail)
    assert len(folder.runs) == 2, "trials.csv keeps both"
    (trial_id,) = folder.runs.loc[list(folder.tables[0].runs), "trial_id"]
    assert trial_id == job.plan.jobs[0].trial_id


def test_repeats_that_lie_apart_are_doubted_in_both_csvs_and_in_no_record(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32", repeats=2)
    kept = [
        structs.replace(r, result={**r.result, "epoch_time_s": 1.0})
        for r in job.runner.results.read_records()
    ]
    far = [
        structs.replace(r, result={**r.result, "epoch_time_s": 2.0})
        if r.trial["batch_size"] == 32 and r.trial["repeat"]
        else r
        for r in kept
    ]
    folder = build_folder_from_records(job.runner.results, far, [], pytest.fail)
    for make, count in ((make_trial_sheet, 2), (make_table_sheet, 1)):
        text = make([folder]).format_csv()
        doubts = [(line["batch_size"], line["doubts"]) for line in csv.DictReader(text.splitlines())]
        assert [batch for batch, cell in doubts if "spread" in cell.split("+")] == ["32"] * count
    assert all("spread" not in record.doubts for record in job.runner.results.read_records())
