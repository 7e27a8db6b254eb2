"""`gpubench sweep --model matmul` and other known loads, as users run them: real processes on a CPU."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd
import pytest
from place import Place

BASE = ("--device", "cpu", "--cpus", "1", "--rounds", "1")


def read(place: Place, file: str, name: str = "loads") -> pd.DataFrame:
    return pd.read_csv(place.home / "results" / name / file)


def records(place: Place, name: str = "loads") -> list[dict[str, Any]]:
    stored = [
        json.loads(file.read_text()) for file in (place.home / "results" / name / "records").rglob("*.json")
    ]
    return [job for record in stored for job in record.get("jobs", [record])]


WORK = {
    ("matmul", 48): ("tflops", 2 * 48**3 / 1e12), ("matmul", 96): ("tflops", 2 * 96**3 / 1e12),
    ("copy", 48): ("gb_per_s", 2 * 48 * 1048576 / 1e9), ("copy", 96): ("gb_per_s", 2 * 96 * 1048576 / 1e9),
    ("nbody", 48): ("tflops", 20 * 48**2 / 1e12), ("nbody", 96): ("tflops", 20 * 96**2 / 1e12),
}  # fmt: skip
"""Load and size -> the column of its rate, and what a step is in its unit."""
OF_NETWORKS = (
    "images_per_s", "images_per_epoch", "data_wait_pct", "first_batch_s", "top1_pct", "loss", "params_m", "variant",
    "gmacs_per_image", "optimizer", "lr", "strategy", "workers", "execution", "memory_format", "data", "train_images",
    "epochs",
)  # fmt: skip


def test_the_rate_is_what_the_arithmetic_gives_over_the_time_of_a_step(place: Place) -> None:
    done = place.run(
        "sweep", *BASE, "--model", "matmul,copy,nbody", "--batch-size", "48,96", "--precision", "fp32,bf16", "--steps",
        "30",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trials = read(place, "trials.csv").to_dict("records")
    assert {(row["model"], row["batch_size"]) for row in trials} == WORK.keys()
    assert [row["precision"] for row in trials if row["model"] == "matmul"].count("bf16") == 2
    assert len(trials) == 8, "others have no precision"
    windows = read(place, "epochs.csv").set_index(["trial_id", "epoch"])
    for row in trials:
        column, work = WORK[row["model"], row["batch_size"]]
        other = {"tflops": "gb_per_s", "gb_per_s": "tflops"}[column]
        window = windows.loc[row["trial_id"], 1]
        assert (row["epoch_time_source"], window["steps"]) == ("steady", 30)
        assert row["epoch_time_s"] == pytest.approx(window["epoch_time_s"] / 30, rel=1e-3, abs=1e-6)
        assert row[column] == pytest.approx(work / (window["epoch_time_s"] / 30), rel=1e-3)
        assert row["cpu_s_per_epoch"] < 10 * row["epoch_time_s"] + 0.1
        for name in (other, *OF_NETWORKS):
            assert pd.isna(row[name]), name
        for name in ("images", "train_loss", "data_wait_s", "first_batch_s", "top1_pct"):
            assert pd.isna(window[name]), name
        assert (row["model"] == "matmul") == (row["precision"] in ("fp32", "bf16"))
        assert row["cpu_probe_ms"] > 0
    why = {(record["trial"]["model"], "tflops" in record["missing"]) for record in records(place)}
    assert why == {("matmul", False), ("nbody", False), ("copy", True)}
    for record in records(place):
        assert {record["missing"][name] for name in ("images_per_s", "data_wait_pct", "loss")} == {"load"}
    table = read(place, "table.csv")
    assert table["tflops"].notna().sum() == 6
    assert table["gb_per_s"].notna().sum() == 2
    for words in ("TFLOP/s", "GB/s", "step s", "size"):
        assert words in done.stdout
    for words in ("images", "epoch s", "Take ", "Not sure: "):
        assert words not in done.stdout, words
    assert re.search(r"\[1/8\] model=matmul batch_size=48 precision=fp32  ok  [\d.]+ TFLOP/s\n", done.stderr)
    told = place.run("table", "results/loads", "--why", trains=False).stdout
    assert "steps/s" in told
    assert "images/s" not in told
    assert "precision" not in done.stderr.partition("model=copy")[2].partition("started")[0]
    rules = [json.loads(line) for line in place.run("audit", "--json", trains=False).stdout.splitlines()]
    unasked = [rule for rule in rules if "a training by gpubench itself" in json.dumps(rule)]
    assert [(rule["number"], rule["verdict"]) for rule in unasked] == [
        (number, "not decidable") for number in (1, 2, 5, 6, 8, 9, 10)
    ]


def test_a_load_beside_a_training_is_measured_while_both_run(place: Place) -> None:
    """Alone, together, the prediction, a comparison, the page and the audit: the whole chain."""
    command = (
        "sweep", *BASE, "--variant", "synthetic", "--set", "input_size=28", "--window", "0.4s", "--batch-size", "32",
        "--job", "model=matmul,batch_size=160", "--job", "model=lenet",
    )  # fmt: skip
    done = place.run(*command, "--out", "a")
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"matmul 160 & lenet  ok  0\.0*[1-9]\d* s, [\d.]+ s \([\d.]+ and [\d.]+ times alone\)", done.stderr
    )
    trials = pd.read_csv(place.home / "a" / "trials.csv")
    assert (trials["status"] == "ok").all()
    jobs = trials[trials["group"].notna()].set_index("model")
    alone = trials[trials["group"].isna()].set_index("model")
    assert set(jobs.index) == set(alone.index) == {"matmul", "lenet"}
    for name in ("matmul", "lenet"):
        slowdown = jobs.at[name, "epoch_time_s"] / alone.at[name, "epoch_time_s"]
        assert jobs.at[name, "slowdown"] == pytest.approx(slowdown, rel=1e-3)
        assert jobs.at[name, "predicted_slowdown"] >= 1
    for rows in (jobs, alone):
        rate = 2 * 160**3 / 1e12 / rows.at["matmul", "epoch_time_s"]
        assert rows.at["matmul", "tflops"] == pytest.approx(rate, rel=1e-3)
        assert rows.at["lenet", "images_per_s"] > 0
        assert pd.isna(rows.at["lenet", "tflops"])
    stored = (place.home / "a" / "records").rglob("*.json")
    (group,) = [record["jobs"] for file in stored if "jobs" in (record := json.loads(file.read_text()))]
    (a0, a1), (b0, b1) = ((w["t0"], w["t1"]) for job in group for w in job["windows"] if w["epoch"] == 1)
    assert max(a0, b0) < min(a1, b1)

    predicted = place.run("predict", "a", trains=False)
    assert predicted.returncode == 0, predicted.stderr
    assert "matmul 160 & lenet" in predicted.stdout
    asked = place.run(
        "predict",
        "a",
        "--job",
        "model=matmul,batch_size=160",
        "--job",
        "model=matmul,batch_size=160",
        trains=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert "predicted s" in asked.stdout
    unknown = place.run(
        "predict", "a", "--job", "model=matmul,batch_size=161", "--job", "model=lenet", trains=False
    )
    assert "not measured" in unknown.stdout + unknown.stderr
    page = place.run("export", "a", "--format", "html", "--out", "page.html", trains=False)
    assert page.returncode == 0, page.stderr
    assert "matmul" in (place.home / "page.html").read_text()
    audited = place.run("audit", "a", trains=False)
    assert "a resident batch in 2 of 2 rows" in " ".join(audited.stdout.split()), (
        "lenet's: loads are not asked"
    )

    again = place.run(*command, "--out", "a", "--json")
    assert [json.loads(line)["model"] for line in again.stdout.splitlines()].count("matmul") == 2
    assert len(pd.read_csv(place.home / "a" / "trials.csv")) == len(trials), "nothing is measured twice"


def test_fields_of_networks_hold_for_the_networks_beside_loads(place: Place) -> None:
    done = place.run(
        "sweep", *BASE, "--model", "copy,lenet", "--batch-size", "16", "--variant", "synthetic", "--optimizer",
        "sgd,adam", "--set", "input_size=28", "--precision", "fp32,bf16", "--steps", "5", "--out", "m",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trials = pd.read_csv(place.home / "m" / "trials.csv")
    assert trials["model"].value_counts().to_dict() == {"lenet": 4, "copy": 1}
    compared = place.run("compare", "m", "m", trains=False)
    assert "same measurements" in compared.stderr or compared.returncode == 4


REFUSED = [
    (("--model", "matmul", "--optimizer", "adam"), "optimizer has no effect on matmul: leave it out"),
    (("--model", "matmul", "--epochs", "3"), "epochs has no effect on matmul: leave it out"),
    (("--model", "matmul,copy", "--ranks", "2"), "ranks has no effect on copy and matmul: leave it out"),
    (
        ("--model", "nbody,copy", "--precision", "bf16"),
        "precision has no effect on copy and nbody: leave it out",
    ),
    (("--model", "matmul", "--batch-per-gpu", "64"), "batch_per_gpu has no effect on matmul: leave it out"),
    (("--model", "matmul", "--precision", "fp16"), "precision fp16 needs a GPU: on a CPU take fp32 or bf16"),
    (
        ("--device", "cuda", "--model", "matmul", "--gpus", "2"),
        "matmul runs on one GPU, not on 2: for several",
    ),
    (
        ("--job", "model=copy,variant=cached", "--job", "model=lenet"),
        "variant has no effect on copy: leave it out",
    ),
    (("--model", "matmull"), "unknown model 'matmull': did you mean matmul?"),
]


@pytest.mark.parametrize(("options", "told"), REFUSED, ids=lambda value: " ".join(value)[:40])
def test_what_means_nothing_for_a_load_is_refused(place: Place, options: tuple[str, ...], told: str) -> None:
    device = () if "--device" in options else ("--device", "cpu")
    done = place.run("sweep", "-n", *device, *options, trains=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert not (place.home / "results").exists()


@pytest.mark.parametrize(
    ("options", "group"),
    [
        (("--job", "model=matmul", "--job", "model=copy"), "matmul & copy batch_size=64"),
        (("--job", "model=matmul", "--job", "model=lenet"), "matmul & lenet batch_size=4096/64"),
        (
            ("--job", "model=copy", "--job", "copies=1", "--", "echo", "{batch_size}"),
            "copy & copies=1 batch_size=1024/64",
        ),
    ],
)
def test_beside_networks_and_commands_a_load_has_a_size_of_its_own(
    place: Place, options: tuple[str, ...], group: str
) -> None:
    told = place.run("sweep", "-n", "--device", "cpu", "--batch-size", "64,128", *options, trains=False)
    assert told.returncode == 0, told.stderr
    assert group in told.stdout


def test_the_list_tells_what_sizes_are_of(place: Place) -> None:
    told = place.run("data", "list", trains=False).stdout.partition("known loads (--model)")[2]
    for words in (
        "matmul",
        "side of the square matrices, 4,096 if not given",
        "copy",
        "MiB",
        "nbody",
        "bodies",
    ):
        assert words in told


def test_what_was_measured_of_a_load_is_read_back(place: Place) -> None:
    ask = ("sweep", *BASE, "--model", "copy", "--batch-size", "1", "--steps", "5")
    assert place.run(*ask).returncode == 0
    (record,) = records(place)
    assert record["resolved"].keys().isdisjoint(("num_classes", "input_size", "workers", "train_images"))
    table = place.run("table", "results/loads", trains=False)
    assert (table.returncode, table.stderr) == (0, "")
    assert "started" not in place.run(*ask, trains=False).stderr
