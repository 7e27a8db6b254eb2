"""What `gpubench export --to` writes, read back by MLflow itself."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_command import WarmCommand

from gpubench.export.formats import check_package_installed
from gpubench.results.packed import PACKED, unpack_folder

Export = Callable[..., subprocess.CompletedProcess[str]]
PAIRS = Path(__file__).parents[2] / "results" / "h200-pairs-2026"
ALONE = "t62ed0fad9045"
"""mobilenet_v2 alone at 16."""
BATCH, EPOCHS = 16, 3


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A folder with the trials alone of another, one of which did not end well and says why in signs of all kinds."""
    folder = tmp_path / "pairs"
    shutil.copytree(PAIRS / "records", folder / "records")
    shutil.copy(PAIRS / PACKED, folder)
    unpack_folder(folder, print)
    for path in folder.glob("*/*/[!t]*"):
        path.unlink()
    (bad,) = folder.glob("records/e2/*.json")
    record = json.loads(bad.read_text())
    told = {"status": "failed", "reason": "a | pipe, <b>a tag</b>\nand ../a path"}
    bad.write_text(json.dumps(record | told | {"result": {}, "missing": {}, "epochs": [], "windows": []}))
    return folder


@pytest.fixture
def export(warm_command: WarmCommand, tmp_path: Path) -> Export:
    """Runs `gpubench export`."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        words = ["export", *map(str, arguments)]
        return warm_command.run(words, cwd=tmp_path, env={"PATH": "/usr/bin"}, timeout=60)

    return run


def count_runs(told: str) -> list[int]:
    """How many runs the command wrote, and how many it found there."""
    return [int(number) for number in re.findall(r"\d+", told.partition(";")[0])]


def sampled(folder: Path, metric: str) -> list[float]:
    (path,) = folder.glob(f"samples/*/{ALONE}-1.csv")
    with path.open() as file:
        return [float(row["value"]) for row in csv.DictReader(file) if row["metric"] == metric]


@pytest.mark.slow
def test_mlflow_reads_parameters_figures_series_tags_and_the_log(
    export: Export, stored: Path, tmp_path: Path
):
    """Of the same trials of another machine, too, one of whose samples files is damaged."""
    from mlflow.tracking import MlflowClient

    other = shutil.copytree(stored, tmp_path / "other")
    for path in other.glob("records/*/*.json"):
        changed = json.loads(path.read_text())
        changed["environment"]["host"] = "another"
        path.write_text(json.dumps(changed))
    (path,) = other.glob(f"samples/*/{ALONE}-1.csv")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:40], "1.0,0,power_w,what\n", f"1.0,0,{'x' * 250},1\n", *lines[40:]]))
    (stored / "logs" / ALONE[1:3] / f"{ALONE}-1.log").parent.mkdir(parents=True, exist_ok=True)
    (stored / "logs" / ALONE[1:3] / f"{ALONE}-1.log").write_text("what it printed\n")

    first = export(stored, other, "--to", "mlflow", "--out", tmp_path / "a place")
    written, _, command = first.stdout.strip().partition("; ")
    assert (first.returncode, written) == (0, "6 runs written"), first.stderr
    assert shlex.split(command)[-2:] == ["--backend-store-uri", f"sqlite:///{tmp_path}/a place/mlflow.db"]
    (told,) = [line for line in first.stderr.splitlines() if "is damaged" in line]
    assert f"{ALONE}-1.csv is damaged: 1 of its {len(lines) + 1:,} readings" in told

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/a place/mlflow.db")
    (experiment,) = (one for one in client.search_experiments() if one.name != "Default")
    every = client.search_runs([experiment.experiment_id])
    assert len(every) == 6
    runs = {
        run.data.tags["gpubench.trial_id"]: run
        for run in every
        if run.data.tags["gpubench.host"] != "another"
    }
    record = json.loads(next(stored.glob(f"records/*/{ALONE}-1.json")).read_text())
    alone = runs[ALONE]
    assert experiment.name == record["experiment"] == "batch-size"
    assert alone.info.status == "FINISHED"
    assert alone.data.params["batch_size"] == str(BATCH)
    assert alone.data.metrics["epoch_time_s"] == pytest.approx(record["result"]["epoch_time_s"])
    assert alone.data.tags["gpubench.gpu_name"] == record["environment"]["gpu_name"]
    times = client.get_metric_history(alone.info.run_id, "epoch/epoch_time_s")
    assert [(one.step, one.value) for one in times] == [
        (epoch["epoch"], epoch["epoch_time_s"]) for epoch in record["epochs"]
    ]
    assert len(times) == EPOCHS
    power = client.get_metric_history(alone.info.run_id, "power_w/gpu0")
    assert [one.value for one in sorted(power, key=lambda one: one.step)] == sampled(stored, "power_w")
    assert min(one.timestamp for one in power) >= alone.info.start_time
    assert max(one.timestamp for one in power) <= alone.info.end_time
    assert [one.path for one in client.list_artifacts(alone.info.run_id)] == [f"{ALONE}-1.log"]
    (failed,) = (run for run in runs.values() if run.data.tags["gpubench.status"] == "failed")
    assert failed.info.status == "FAILED"
    assert failed.data.tags["gpubench.reason"].startswith("a | pipe")
    assert "epoch_time_s" not in failed.data.metrics

    client.update_run(alone.info.run_id, "RUNNING")  # as a kill leaves it
    again = export(stored, other, "--to", "mlflow", "--out", tmp_path / "a place")
    assert count_runs(again.stdout) == [1, 5]
    assert len(client.search_runs([experiment.experiment_id])) == 7


@pytest.mark.slow
def test_a_place_that_is_a_file_is_told_in_one_line(export: Export, stored: Path, tmp_path: Path):
    (tmp_path / "file").write_text("")
    done = export(stored, "--to", "mlflow", "--out", tmp_path / "file")
    assert done.returncode == 4
    assert len(done.stderr.splitlines()) == 1


def test_names_are_checked_and_forms_refused(export: Export, stored: Path):
    assert "did you mean mlflow?" in export(stored, "--to", "mlfow").stderr
    gone = export(stored, "--to", "tensorboard")
    assert (gone.returncode, "--to mlflow" in gone.stderr) == (2, True)
    both = export(stored, "--to", "mlflow", "--format", "csv")
    assert (both.returncode, "give one of them" in both.stderr) == (2, True)


def test_a_package_that_is_missing_is_named():
    with pytest.raises(Exception, match=r"needs no_such_package.*pip install no_such_package"):
        check_package_installed("this", "no_such_package")
