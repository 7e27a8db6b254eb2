"""`gpubench sweep --shard`: parts of a plan in folders of their own, and what becomes of them together."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from place import TINY, Place

GRID = (*TINY, "--variant", "synthetic", "--batch-size", "16,32")


@pytest.mark.slow
def test_shards_in_folders_of_their_own_are_the_sweep_once_merged(place: Place) -> None:
    for number in (1, 2):
        ended = place.run("sweep", *GRID, "--shard", f"{number}/2", "--out", f"s{number}", "--json")
        assert ended.returncode == 0, ended.stderr
        assert f"shard {number}/2: 1 of the plan's 2 trials and groups\n" in ended.stderr
        (line,) = ended.stdout.splitlines()
        assert json.loads(line)["batch_size"] == 16 * number
    shown = place.run("table", "s1").stdout
    (missing,) = [line for line in shown.splitlines() if line.split()[:1] == ["32"]]
    # What the other parts have is missing here.
    assert "another part of the plan" in missing
    told = place.run("status", "s1")
    assert (told.returncode, told.stdout.splitlines()[:2]) == (
        0,
        ["s1: complete", "  trials and groups: 1 ok"],
    )
    assert "it holds part 1/2 of" in told.stdout
    audited = place.run("audit", "s1")
    assert audited.returncode == 0
    # What other parts measure is not planned here.
    assert "planned trials without a result" not in audited.stdout
    assert place.run("merge", "s1", "s2", "--out", "whole").returncode == 0
    assert list(pd.read_csv(place.home / "whole" / "trials.csv")["status"]) == ["ok", "ok"]
    told = place.run("status", "whole")
    assert (told.returncode, "part" in told.stdout) == (0, False)
    ended = place.run("sweep", *GRID, "--out", "whole")
    assert ended.returncode == 0
    assert ": 2 done, 0 skipped" in ended.stderr.splitlines()[-1]


def test_a_shard_without_work_says_so_and_writes_nothing(place: Place) -> None:
    ended = place.run("sweep", *GRID, "--shard", "3/3", "--out", "s3")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert ended.stderr.startswith("shard 3/3 has nothing ")
    assert (" 2 parts" in ended.stderr, ended.stderr.count("\n")) == (True, 1)
    assert not (place.home / "s3").exists()


def test_a_shard_is_seen_in_the_plan_and_a_wrong_one_refused(place: Place) -> None:
    ended = place.run("sweep", *GRID, "--shard", "2/2", "-n")
    assert ended.returncode == 0
    assert "batch_size=32" in ended.stdout
    assert "batch_size=16" not in ended.stdout
    ended = place.run("sweep", "--shard", "3/2", "--data", "nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("gpubench: --shard '3/2': which part of how many, from 1"), (
        "before images are looked for"
    )
