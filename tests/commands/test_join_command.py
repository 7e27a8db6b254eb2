"""`gpubench sweep --join`: several commands work through one plan in one folder."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from place import HELD, LIMIT_S, SMALL, TINY, Place, until

GRID = (
    *TINY[:-2],
    "--variant",
    "synthetic",
    "--batch-size",
    "8,16,32,64",
    "--set",
    "train_images=128",
    "--cpus",
    "1",
)
JOINED = (*GRID, "--rounds", "2", "--join", "--out", "all")
IN_USE = 4


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("records/*/*.json"))]


def left_behind(folder: Path) -> list[str]:
    """What only working sweeps have in their folder."""
    return [str(path) for path in folder.rglob("*") if ".lock" in path.name or path.parent.name == ".joined"]


def held(place: Place) -> tuple[Path, tuple[str, ...]]:
    """A file that keeps trials from ending as long as it exists, and the command that waits for it."""
    hold = place.home / "hold"
    hold.touch()
    (place.home / "held.py").write_text(HELD.format(hold=str(hold)))
    asked = (
        "sweep",
        "--model",
        "held.py:net",
        *SMALL,
        "--variant",
        "synthetic",
        "--batch-size",
        "8,16",
    )
    return hold, (*asked, "--out", "all")


@pytest.mark.slow
def test_several_measure_each_trial_once_a_round(place: Place) -> None:
    started = [place.start("sweep", *JOINED) for _ in range(3)]
    assert [one.wait(LIMIT_S) for one in started] == [0, 0, 0], [one.communicate() for one in started]
    stored = records(place.home / "all")
    assert Counter((one["trial"]["batch_size"], one.get("round", 1)) for one in stored) == {
        (size, number): 1 for size in (8, 16, 32, 64) for number in (1, 2)
    }
    assert left_behind(place.home / "all") == []
    with (place.home / "all" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8, "the last one has written what all of them measured"
    again = place.run("sweep", *JOINED)
    assert again.returncode == 0
    assert ": 4 done, " in again.stderr


def test_what_a_killed_one_was_at_is_measured_by_the_next(place: Place) -> None:
    hold, command = held(place)
    first = place.start(*command, "--join")
    until(lambda: any((place.home / "all").glob("records/*/.*.lock")), "the first one to take a trial")
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "its trial to begin")
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(LIMIT_S) == -signal.SIGKILL
    hold.unlink()
    second = place.run(*command, "--join")
    assert second.returncode == 0, second.stderr
    assert f"process {first.pid} on " in second.stderr
    assert "has died while it measured; this sweep measures it in its place" in second.stderr
    stored = records(place.home / "all")
    assert sorted((one["trial"]["batch_size"], one["attempt"], one["status"]) for one in stored) == [
        (8, 2, "ok"),
        (16, 1, "ok"),
    ], "the killed attempt keeps its number and its log"
    assert left_behind(place.home / "all") == []


@pytest.mark.slow
def test_who_joins_takes_what_is_left_and_leaves_the_rest_to_the_others(place: Place) -> None:
    hold, command = held(place)
    first = place.start(*command, "--join")
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "the first trial to begin")
    second = place.start(*command, "--join")
    until(
        lambda: len(list((place.home / "all").glob("logs/*/*.log"))) == 2, "the second one to begin the other"
    )
    third = place.run(*command, "--join")
    assert third.returncode == 0, third.stderr
    assert "2 others (process " in third.stderr
    assert "are still at it: the last one writes and prints the table" in third.stderr
    assert third.stdout == "", "a table that lacks what the others are at"
    assert not (place.home / "all" / "trials.csv").exists(), "the others are still at it"
    status = place.run("status", "all")
    assert status.returncode == 5
    for one in (first, second):
        assert f", process {one.pid} on " in status.stdout, "who is at which trial"
    hold.unlink()
    assert (first.wait(LIMIT_S), second.wait(LIMIT_S)) == (0, 0)
    assert sorted(one["trial"]["batch_size"] for one in records(place.home / "all")) == [8, 16]
    assert (place.home / "all" / "trials.csv").exists()


@pytest.mark.slow
def test_who_joins_with_another_plan_is_told_so(place: Place) -> None:
    hold, command = held(place)
    first = place.start(*command, "--join")
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "the first trial to begin")
    same = place.start(*command, "--join")
    other = place.start(*command, "--join", "--set", "lr=0.2")
    until(lambda: len(list((place.home / "all").glob("plans/*.toml"))) == 2, "the other plan to be stored")
    hold.unlink()
    said = {one.pid: one.communicate(timeout=LIMIT_S)[1] for one in (first, same, other)}
    assert [one.returncode for one in (first, same, other)] == [0, 0, 0], said
    told = [pid for pid, text in said.items() if "its plan is another one than those in the folder" in text]
    assert told == [other.pid]


@pytest.mark.slow
def test_alone_and_together_exclude_each_other(place: Place) -> None:
    hold, command = held(place)
    together = place.start(*command, "--join")
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "its trial to begin")
    alone = place.run(*command)
    assert alone.returncode == IN_USE
    assert "all is worked through by a sweep (process " in alone.stderr
    assert "--join works with them, --wait waits for their end" in alone.stderr
    merged = place.run("merge", "all")
    assert merged.returncode == IN_USE
    os.kill(together.pid, signal.SIGTERM)
    assert together.wait(LIMIT_S) == 75
    alone_now = place.start(*command)
    until(lambda: len(list((place.home / "all").glob("logs/*/*.log"))) == 2, "its trial to begin")
    joins = place.run(*command, "--join")
    assert joins.returncode == IN_USE
    assert "another sweep writes into all" in joins.stderr
    hold.unlink()
    assert alone_now.wait(LIMIT_S) == 0
    assert left_behind(place.home / "all") == []


@pytest.mark.parametrize("option", ["--fresh", "--find-max-batch"])
def test_what_needs_the_folder_for_itself_does_not_join(place: Place, option: str) -> None:
    ended = place.run("sweep", *GRID, "--join", option)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"gpubench: {option} is for a sweep that has its folder for itself: leave it or --join out\n"
    )


def test_a_task_of_an_array_joins_unasked(place: Place) -> None:
    hold, command = held(place)
    place.environment |= {"SLURM_JOB_ID": "11", "SLURM_ARRAY_TASK_ID": "1"}
    first = place.start(*command)
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "its trial to begin")
    place.environment |= {"SLURM_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "2"}
    second = place.start(*command)
    until(lambda: len(list((place.home / "all").glob("logs/*/*.log"))) == 2, "the other one's to begin")
    refused = place.run(*command, "--no-join")
    assert refused.returncode == IN_USE
    hold.unlink()
    assert (first.wait(LIMIT_S), second.wait(LIMIT_S)) == (0, 0)


def test_parts_of_a_plan_live_side_by_side_in_one_folder(place: Place) -> None:
    hold, command = held(place)
    parts = [place.start(*command, "--shard", f"{number}/2") for number in (1, 2)]
    until(lambda: len(list((place.home / "all").glob("logs/*/*.log"))) == 2, "a trial of each part to begin")
    hold.unlink()
    assert [one.wait(LIMIT_S) for one in parts] == [0, 0]
    assert sorted(one["trial"]["batch_size"] for one in records(place.home / "all")) == [8, 16]
    shown = place.run("table", "all").stdout.splitlines()
    sizes = [line.split()[0] for line in shown if re.match(r" +\d+ +[\d,]+", line)]
    assert sizes == ["8", "16"]
