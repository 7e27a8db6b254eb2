"""`gpubench table` and its options, as users run it, over the results that are kept here."""

from __future__ import annotations

import csv
import io
import json
import shlex
from typing import Any

import committed
import pytest
from fixed_folder import fixed
from place import Place
from swept import swept


def read_json(place: Place, *arguments: str) -> Any:
    ended = place.run("table", *arguments, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    return json.loads(ended.stdout)


def test_columns_on_request(place: Place) -> None:
    folder = str(committed.folder("h200x4-2026"))
    ended = place.run("table", folder, "--columns", "power_w,-data_wait_pct")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "power" in ended.stdout
    assert "wait" not in ended.stdout
    names = [
        cell["column"]
        for cell in read_json(place, folder, "--columns", "all")["reports"][0]["table"][0]["rows"][0]["cells"]
    ]
    assert {"batch_size", "epoch_time_growth_pct", "gpu_util_pct", "top1_pct"} <= set(names)


def test_a_column_that_is_none_names_the_nearest(place: Place) -> None:
    ended = place.run("table", str(committed.folder("h200x4-2026")), "--columns", "-powr_w")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("gpubench: unknown column 'powr_w'")
    assert ended.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_answer_of_a_folder_is_in_every_form_the_same(place: Place) -> None:
    folder = str(committed.folder("h200x2-2026"))
    (report,) = read_json(place, folder)["reports"]
    finding = report["findings"][0]
    assert (finding["question"], finding["verdict"], finding["choice"]["is_firm"]) == (
        "batch_size",
        "sure",
        True,
    )
    best = report["rows"][[row["row"] for row in report["rows"]].index(finding["choice"]["row"])]
    assert best["fields"] == {"gpus": 2, "strategy": "ddp", "batch_size": 128}
    shown = {form: place.run("table", folder, *form) for form in ((), ("--markdown",), ("--why",))}
    for ended in shown.values():
        assert (ended.returncode, ended.stderr) == (0, "")
        assert " on 2 GPUs (ddp)" in " ".join(ended.stdout.split())
    assert max(map(len, shown[()].stdout.splitlines())) <= 80
    claims = [claim for finding in report["findings"] for claim in finding["claims"]]
    lines = shown["--why",].stdout.splitlines()
    verdicts = [line for line in lines if line.endswith((", sure", ", likely", " unknown"))]
    assert len(verdicts) == len(claims) > 20
    count = sum(claim["verdict"] == "sure" for claim in claims)
    assert sum(line.endswith(", sure") for line in verdicts) == count > 0


@pytest.mark.slow
def test_best_is_a_command_that_a_sweep_takes(place: Place) -> None:
    folder = str(committed.folder("h200-until-top1-2026"))
    command = place.run("table", folder, "--best").stdout
    program, *arguments = shlex.split(command)
    assert program == "gpubench"
    assert "--batch-size 128 " in command
    assert "--until-top1 60" in command
    (best,) = read_json(place, folder, "--best")["best"]
    assert best["command"] == [program, *arguments]
    assert (best["name"], best["fields"]["batch_size"]) == ("mobilenet_v2-until-top1", 128)

    swept(place.home / "mine", "mine", "16,32")
    _, *arguments = shlex.split(place.run("table", str(place.home / "mine"), "--best").stdout)
    planned = place.run(*arguments, "-n", "--out", "x")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert "1 trial" in planned.stdout


def test_a_condition_that_no_row_meets_is_told(place: Place) -> None:
    folder = str(committed.folder("h200x2-2026"))
    ended = place.run("table", folder, "--where", "batch_size>4096")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == "gpubench: no row meets batch_size>4096\n"


def test_where_nothing_is_recommended_it_says_so(place: Place) -> None:
    ended = place.run("table", str(committed.folder("h200-pairs-rounds-2026")), "--best")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.startswith("gpubench: no table recommends")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--why", "--json"], "--why goes with text alone, not with --json; --json has all claims"),
        (["--best", "--csv"], "--best is a command, or data with --json; leave --csv out"),
        (["--csv", "--json"], "--csv and --json are two forms of the same; give one of them"),
    ],
)
def test_what_does_not_go_together(place: Place, arguments: list[str], why: str) -> None:
    ended = place.run("table", str(committed.folder("h200x4-2026")), *arguments)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"gpubench: {why}\n")


def test_rows_that_are_chosen_are_counted_wherever_they_go(place: Place) -> None:
    folder = str(committed.folder("h200x2-2026"))
    options = ("--where", "batch_size>=64", "--sort=-images_per_s")
    ended = place.run("table", folder, "--csv", *options)
    lines = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert len(lines) == 12
    times = [float(line["images_per_s"]) for line in lines]
    assert times == sorted(times, reverse=True)
    said = "12 of 18 rows shown where batch_size>=64, sorted by images_per_s downward; findings and warnings are of all"
    assert ended.stderr == f"gpubench: mobilenet_v2-2gpu: {said} rows\n"
    (report,) = read_json(place, folder, *options)["reports"]
    assert report["selection"]["rows"] == 12


def test_of_several_folders_one_that_can_not_be_read_is_named(place: Place) -> None:
    folder = fixed(place.home / "fixed")
    record = min((folder / "records").glob("*/*.json"))
    record.write_bytes(record.read_bytes()[:200])
    ended = place.run("table", str(place.home / "nothing"), str(folder), str(committed.folder("h200x4-2026")))
    assert ended.returncode == 4
    damaged, missing = ended.stderr.splitlines()
    assert f"{record.name} is left out" in damaged
    assert missing.startswith(f"gpubench: {place.home / 'nothing'} is not a results folder")
    assert ended.stdout.startswith("fixed: fixed - ")
    assert "h200x4-2026: resnet34-4gpu - " in ended.stdout
