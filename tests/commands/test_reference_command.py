"""`gpubench sweep --join --reference`: real sweeps on two nodes, which differ in nothing but their names."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from place import HELD, SMALL, Place, until

GRID = (
    "--model", "held.py:net", *SMALL[:-2], "--variant", "synthetic", "--set", "train_images=128", "--cpus", "1",
)  # fmt: skip
JOINED = (*GRID, "--batch-size", "8,16,32,64", "--rounds", "3", "--join", "--reference", "--out", "all")
LIMIT_S = 240


def on_node(place: Place, name: str) -> subprocess.Popen[str]:
    """The command in a host of another name, of whose processes others know nothing but heartbeats."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("needs root, for hosts of other names")
    apart = ["unshare", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
    command = ["sh", "-c", 'hostname "$0" && exec "$@"', name, sys.executable, "-m", "gpubench", "sweep"]
    return subprocess.Popen(
        [*apart, *command, *JOINED],
        env=place.environment, cwd=place.home, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def held(place: Place) -> Path:
    """A file that keeps trials from ending as long as it exists."""
    hold = place.home / "hold"
    (place.home / "held.py").write_text(HELD.format(hold=str(hold)))
    return hold


def test_each_node_measures_it_once_a_round_and_the_table_reckons_with_it(place: Place) -> None:
    hold = held(place)
    hold.touch()
    running = []
    for count, name in enumerate(("node-a", "node-b"), 1):
        running.append(on_node(place, name))
        logs = (place.home / "all").glob
        until(lambda count=count, logs=logs: len(list(logs("logs/*/*.log"))) == count, f"{name} to begin")
    hold.unlink()
    told = [one.communicate(timeout=LIMIT_S) for one in running]
    assert [one.returncode for one in running] == [0, 0], told
    stored = [json.loads(path.read_text()) for path in (place.home / "all").glob("records/*/*.json")]
    assert {one["status"] for one in stored} == {"ok"}
    of_plan = [one for one in stored if not one.get("reference")]
    places = [(one["trial"]["batch_size"], one.get("round", 1)) for one in of_plan]
    assert Counter(places) == dict.fromkeys(itertools.product((8, 16, 32, 64), (1, 2, 3)), 1)
    at_work = {(one["environment"]["host"], one.get("round", 1)) for one in of_plan}
    assert {node for node, _ in at_work} == {"node-a", "node-b"}, "both got something to do"
    eights = [
        (one["environment"]["host"], one.get("round", 1)) for one in stored if one["trial"]["batch_size"] == 8
    ]
    assert Counter(eights) == dict.fromkeys(at_work, 1), "once on each node in each round in which it worked"
    with (place.home / "all" / "trials.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(stored)
    table = place.run("table", "all").stdout
    assert "Measured on 2 nodes of one kind (node-a and node-b)" in table
    assert "Against node-a, epoch time " in table
    assert "No row connects" not in table
    status = place.run("status", "all")
    assert status.returncode == 0, status.stdout
    assert "complete" in status.stdout
    assert place.run("audit", "all").returncode in (0, 1)
    again = place.run("sweep", *JOINED)
    assert "nothing left to do: 4 done" in again.stderr


def test_it_is_named_before_anything_is_measured(place: Place) -> None:
    held(place)
    for more in (("-n",), ("-n", "--explain")):
        plan = place.run("sweep", *JOINED, *more)
        assert plan.returncode == 0, plan.stderr
        (line,) = [line for line in plan.stderr.splitlines() if line.startswith("reference: ")]
        assert line == "reference: batch_size=8 is measured on each node that joins, in each round"


def test_alone_it_is_refused_in_one_line(place: Place) -> None:
    held(place)
    asked = place.run("sweep", *GRID, "--batch-size", "8", "--no-join", "--reference")
    assert asked.returncode == 2
    assert "--reference is for a sweep that others join: give --join, too" in asked.stderr
