"""Stored results of trials that left CPUs or loaders to the machine, once it gives them others."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Heard, run_with, sweep_of
from fakes import record
from folders import analyze, analyze_own, rows_of_table
from scripted import Scripted
from warm_command import WarmCommand

from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.words import format_significant
from gpubench.results.counting import explain_allowance_mismatch, select_matching_records
from gpubench.run.announce import list_not_reused_lines
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.record import Record

BASE = """
name = "test"
[fixed]
model = "lenet"
input_size = 28
data = "procedural"
[run]
rounds = 1
epochs = 2
"""
NOW = {"cpus": 2, "workers": 1, "gpus": 0}


def stored(cpus: int = 2, workers: int = 1, **others: Any) -> Record:
    asked = {"batch_size": 16, "cpus": None, "workers": None} | others.pop("asked", {})
    return record(trial=asked, resolved={"cpus": cpus, "workers": workers}, **others)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (stored(), None),
        (stored(cpus=1), "measured on 1 CPU, here 2 may be used"),
        (stored(cpus=16, workers=4), "measured on 16 CPUs, here 2 may be used"),
        (stored(workers=4), "measured with 4 loader workers, here it gets 1"),
        (stored(cpus=1, status="failed"), "measured on 1 CPU, here 2 may be used"),
        (stored(cpus=1, asked={"cpus": 1}), None),
        (stored(workers=4, asked={"workers": 4}), None),
        (stored(cpus=1, status="oom"), None),
        (record(), None),  # of a log, which does not tell
    ],
)
def test_unlike(attempt: Record, why: str | None) -> None:
    assert explain_allowance_mismatch([attempt], {(attempt.trial_id, attempt.machine_key): NOW}) == why


def test_an_earlier_attempt_that_is_alike_counts_and_foreign_ones_stay() -> None:
    own, later = stored(attempt=1), stored(cpus=1, attempt=2, started_at="2026-11-20 10:00:00")
    elsewhere = stored(cpus=1, machine_key="another", started_at="2026-11-20 11:00:00")
    now = {(own.trial_id, own.machine_key): NOW}
    assert select_matching_records([own, later, elsewhere], now) == ([own, elsewhere], {})
    kept, lost = select_matching_records([later, elsewhere], now)
    assert (kept, lost) == ([elsewhere], {own.trial_id: "measured on 1 CPU, here 2 may be used"})
    assert select_matching_records([own, later], {}) == ([own, later], {})


def test_one_job_takes_its_neighbours_along() -> None:
    jobs = [
        stored(cpus=cpus, trial_id=f"t{place:012}", group="g", group_id="g0123456789ab")
        for place, cpus in enumerate((2, 1))
    ]
    kept, lost = select_matching_records(jobs, {(job.trial_id, job.machine_key): NOW for job in jobs})
    assert kept == []
    assert list(lost) == [job.trial_id for job in jobs]


@pytest.mark.parametrize(
    ("endings", "stays"),
    [
        (("oom", "skipped"), True),
        (("skipped", "oom"), True),
        (("ok", "oom"), True),
        (("ok", "skipped"), False),
        (("failed", "oom"), False),
        (("failed", "skipped"), False),
    ],
)
def test_a_group_that_ran_out_of_memory_would_do_so_with_other_cpus_too(
    endings: tuple[str, str], stays: bool
) -> None:
    """What ended it decides, not how its neighbours, whom it took along, are called."""
    jobs = [
        stored(cpus=1, trial_id=f"t{place:012}", group="g", group_id="g0123456789ab", status=status)
        for place, status in enumerate(endings)
    ]
    kept, lost = select_matching_records(jobs, {(job.trial_id, job.machine_key): NOW for job in jobs})
    assert kept == (jobs if stays else [])
    assert list(lost) == ([] if stays else [job.trial_id for job in jobs])


# ---- sweeps, with scripted trials ----


def work(folder: Path, cpus: int, *jobs: str, gpus: int = 0, repeats: int = 1, **fields: str) -> SweepState:
    experiment = apply_options(
        parse_experiment(BASE, "test"),
        ExperimentOptions(fields={"variant": "synthetic"} | fields, jobs=jobs, repeats=repeats),
    )
    machine = scripted.computer(gpus, cpus=cpus)
    plan = make_plan(experiment, machine, DiskSources(), "given")
    made = sweep_of(plan, folder, machine)
    made.load()
    return made


def sweep(
    folder: Path, cpus: int, *jobs: str, seconds: float = 0.5, gpus: int = 0, repeats: int = 1, **fields: str
) -> SweepState:
    made = work(folder, cpus, *jobs, gpus=gpus, repeats=repeats, **fields)
    made.runner.results.create_folder()
    store_plan(made)
    launcher = Scripted(lambda _: scripted.trains_for(seconds))
    run_with(launcher, made, Heard(), has_tables=False)
    launcher.close()
    return made


def states(made: SweepState) -> list[tuple[str, str]]:
    return [(item.state, item.why) for item in made.list_planned_of_round(1)]


@pytest.mark.slow
def test_rows_of_other_cpus_run_again_and_those_of_these_are_found_again(tmp_path: Path) -> None:
    sweep(tmp_path, 1, seconds=4.0, batch_size="16,32")
    other = work(tmp_path, 2, batch_size="16,32,64")
    why = "measured on 1 CPU, here 2 may be used"
    assert states(other) == [("run", why), ("run", why), ("run", "")]
    (line,) = list_not_reused_lines(other.list_planned_of_round(1))
    assert (line[:2], line.endswith(why)) == ("2 ", True)
    sweep(tmp_path, 2, seconds=1.0, batch_size="16,32,64")
    assert [state for state, _ in states(work(tmp_path, 2, batch_size="16,32,64"))] == ["done"] * 3
    back = work(tmp_path, 1, batch_size="16,32")
    assert [state for state, _ in states(back)] == ["done"] * 2, "the earlier attempts count here"
    assert {r.attempt for r in back.find_counting_records().values()} == {1}
    own = rows_of_table(analyze_own(back))
    assert [(row["cpus"], row["epoch_time_s"]) for row in own] == [(1, pytest.approx(4.0))] * 2


@pytest.mark.slow
def test_a_table_never_compares_across_them_and_shows_them(tmp_path: Path) -> None:
    sweep(tmp_path, 1, seconds=4.0, batch_size="16,32")
    made = sweep(tmp_path, 2, seconds=1.0, batch_size="64,128")
    folder = analyze(made.runner.results, made.records)
    assert "cpus" in folder.tables[0].varied
    found = [(r["cpus"], r["batch_size"], r["epoch_time_growth_pct"] is None) for r in rows_of_table(folder)]
    assert found == [(1, 16, True), (1, 32, False), (2, 64, True), (2, 128, False)]


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_through_real_processes(tmp_path: Path, warm_command: WarmCommand) -> None:
    every = sorted(os.sched_getaffinity(0))

    def gpubench(cpus: list[int], *more: str) -> str:
        options = ["--device", "cpu", "--variant", "synthetic", "--model", "lenet", "--batch-size", "16"]
        options += ["--set", "input_size=28", "--set", "train_images=64", "--epochs", "2"]
        options += ["--rounds", "1", *more]
        env = os.environ | {"GPUBENCH_OUT": str(tmp_path)}
        ran = warm_command.run(["sweep", *options], cwd=tmp_path, env=env, timeout=60, cpu_ids=cpus)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    gpubench(every[:1])
    assert "1 trial to run; " in (told := gpubench(every[:2], "-n"))
    assert "measured on 1 CPU, " in told
    assert "1 stored result is not" in gpubench(every[:2])
    assert ": 1 done" in gpubench(every[:2])
    back = gpubench(every[:1])
    assert ": 1 done" in back
    with next(tmp_path.rglob("trials.csv")).open() as file:
        times = {line["cpus"]: float(line["epoch_time_s"]) for line in csv.DictReader(file)}
    # Its table shows the rows that count here.
    assert format_significant(times["1"]) in back
