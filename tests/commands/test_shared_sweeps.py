"""Several `gpubench sweep` work through one plan in one folder."""

from __future__ import annotations

import csv
import json
import os
import signal
import time
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
    "8,16,32",
    "--set",
    "train_images=64",
    "--cpus",
    "1",
)
SHARED = (*GRID, "--rounds", "2", "--out", "all")


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("records/*/*.json"))]


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
    started = [place.start("sweep", *SHARED) for _ in range(3)]
    assert [one.wait(LIMIT_S) for one in started] == [0, 0, 0], [one.communicate() for one in started]
    stored = records(place.home / "all")
    assert Counter((one["trial"]["batch_size"], one.get("round", 1)) for one in stored) == {
        (size, number): 1 for size in (8, 16, 32) for number in (1, 2)
    }
    with (place.home / "all" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    # The last one has written what all of them measured.
    assert len(rows) == 6


@pytest.mark.slow
def test_what_a_killed_one_was_at_is_measured_by_the_next(place: Place) -> None:
    hold, command = held(place)
    first = place.start(*command)
    until(lambda: any((place.home / "all").glob("records/*/*.1")), "the first one to take a trial")
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "its trial to begin")
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait(LIMIT_S) == -signal.SIGKILL
    hold.unlink()
    second = place.run(*command)
    assert second.returncode == 0, second.stderr
    assert f"process {first.pid} on " in second.stderr
    assert " has died while it measured" in second.stderr
    stored = records(place.home / "all")
    # The killed attempt keeps its number and its log.
    assert sorted((one["trial"]["batch_size"], one["attempt"], one["status"]) for one in stored) == [
        (8, 2, "ok"),
        (16, 1, "ok"),
    ]


@pytest.mark.slow
def test_on_one_host_s_cpus_they_measure_in_turns(place: Place) -> None:
    hold, command = held(place)
    first = place.start(*command)
    until(lambda: any((place.home / "all").glob("logs/*/*.log")), "the first trial to begin")
    second = place.start(*command)
    until(lambda: len(list((place.home / "all").glob("records/*/*.1"))) == 2, "the second one to claim")
    time.sleep(3)
    assert len(list((place.home / "all").glob("logs/*/*.log"))) == 1, "it waits for the CPUs"
    third = place.run(*command)
    assert third.returncode == 0, third.stderr
    assert "2 others (process " in third.stderr
    assert "are at work on 2 of its trials and groups, which the table lacks yet" in third.stderr
    status = place.run("status", "all")
    assert status.returncode == 5
    for sweep in (first, second):
        assert f"process {sweep.pid} on " in status.stdout
    hold.unlink()
    assert (first.wait(LIMIT_S), second.wait(LIMIT_S)) == (0, 0)
    assert sorted(one["trial"]["batch_size"] for one in records(place.home / "all")) == [8, 16]
    assert len((place.home / "all" / "trials.csv").read_text().splitlines()) == 3


@pytest.mark.slow
def test_parts_of_a_plan_live_side_by_side_in_one_folder(place: Place) -> None:
    hold, command = held(place)
    parts = [place.start(*command, "--shard", f"{number}/2") for number in (1, 2)]
    until(lambda: len(list((place.home / "all").glob("records/*/*.1"))) == 2, "each part to claim a trial")
    hold.unlink()
    assert [one.wait(LIMIT_S) for one in parts] == [0, 0]
    assert sorted(one["trial"]["batch_size"] for one in records(place.home / "all")) == [8, 16]
