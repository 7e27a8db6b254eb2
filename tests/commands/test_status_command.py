"""`gpubench status`, as users and their scripts run it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import committed
import pytest
from place import Place
from swept import swept

from gpubench.results.store import Results
from gpubench.store.work_claims import DEAD_S, WorkClaims, WorkItem


def unfold(ended: subprocess.CompletedProcess[str]) -> str:
    """What was printed, as one line."""
    return " ".join(ended.stdout.split())


def of_another_host(lock: Path) -> None:
    """Makes a lock that of a process on another host."""
    told = json.loads(lock.read_text()) | {"host": "elsewhere", "boot": "another", "pid": 7}
    lock.write_text(json.dumps(told))


def test_a_folder_whose_trials_all_ended_is_complete(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    ended = place.run("status", "a")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[:2] == ["a: complete", "  trials and groups: 2 ok"]


def test_a_folder_with_something_left_ends_in_75_and_says_how_long_it_takes(place: Place) -> None:
    swept(place.home / "a", "one", "16,32,64", stop_after=1)
    ended = place.run("status", "a")
    assert ended.returncode == 75
    first, rest, second, *_ = ended.stdout.splitlines()
    assert "; 2 of 3 measurements" in first
    assert max(map(len, (first, rest))) <= 80
    assert ": 1 ok, 2 not" in second


def test_what_failed_is_told_and_ends_in_1(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    record = min((place.home / "a" / "records").glob("*/*.json"))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "failed", "reason": "it broke"}))
    ended = place.run("status", "a")
    assert ended.returncode == 1
    assert ended.stdout.startswith("a: finished, with failures\n")
    assert ": it broke\n" in ended.stdout
    assert "--retry failed,timeout" in ended.stdout


def test_a_running_sweep_is_named_and_not_disturbed(place: Place) -> None:
    job = swept(place.home / "a", "one", "16,32", stop_after=1)
    claims = WorkClaims(place.home / "a")
    (missing,) = {one.trial_id for one in job.plan.jobs} - {one.trial_id for one in job.records}
    claims.claim_item(WorkItem(missing, 1, "a machine"))
    log = Results(place.home / "a").make_log_path(missing, "1")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    before = {path: path.stat().st_mtime_ns for path in (place.home / "a").rglob("*")}
    ended = place.run("status", "a")
    assert {path: path.stat().st_mtime_ns for path in (place.home / "a").rglob("*")} == before
    assert ended.returncode == 5
    assert ended.stdout.startswith("a: running; 1 of 2 ")
    assert f"process {os.getpid()} on " in ended.stdout
    assert f"({log.relative_to(place.home)})" in ended.stdout
    claims.give_back()


def test_a_sweep_that_was_killed_and_one_on_another_host(place: Place) -> None:
    swept(place.home / "a", "one", "16,32", stop_after=1)
    item = WorkItem("t0123456789a", 1, "a machine")
    WorkClaims(place.home / "a").claim_item(item)
    path = item.make_claim_path(place.home / "a", 1)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"began": "1"}))
    ended = place.run("status", "a")
    assert ended.returncode == 75
    assert "has died" in ended.stdout
    of_another_host(path)
    ended = place.run("status", "a")
    assert ended.returncode == 5
    assert ": process 7 on elsewhere, " in ended.stdout
    old = time.time() - 2 * DEAD_S
    os.utime(path, (old, old))
    ended = place.run("status", "a")
    assert ended.returncode == 75
    assert "probably dead: last heard of" in unfold(ended)
    assert " 10 min ago" in unfold(ended)
    path.write_text("{")
    assert place.run("status", "a").returncode == 5


@pytest.mark.slow
def test_of_several_folders_the_one_that_needs_somebody_decides(place: Place) -> None:
    swept(place.home / "done", "one", "16")
    swept(place.home / "left", "one", "16,32", stop_after=1)
    assert place.run("status", "left", "done").returncode == 75
    ended = place.run("status", "done", "nowhere")
    assert ended.returncode == 4
    assert ended.stdout.startswith("done: complete")
    assert ended.stderr.count("\n") == 1
    (place.home / "empty").mkdir()
    ended = place.run("status", "empty")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "empty is not a results folder" in ended.stderr


def test_a_folder_that_is_not_there_yet_and_one_of_results_folders(place: Place) -> None:
    """Whoever has just submitted a job asks for the first; the second is the same with a word less."""
    ended = place.run("status", "results/later")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "results/later is not there" in ended.stderr
    swept(place.home / "results" / "one", "one", "16")
    ended = place.run("status", "results")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ": one\n" in ended.stderr
    (place.home / "file").touch()
    assert "is not a results folder" in place.run("status", "file").stderr


@pytest.mark.parametrize("name", ["titan-xp-2021", "h200x4-groups-2026"])
def test_committed_results_of_versions_that_knew_no_rounds_are_complete(place: Place, name: str) -> None:
    assert place.run("status", str(committed.folder(name))).returncode == 0


def test_a_damaged_record_is_named_and_counts_as_missing(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    min((place.home / "a" / "records").glob("*/*.json")).write_text("{")
    ended = place.run("status", "a")
    assert ended.returncode == 75
    assert "1 ok, 1 not run" in ended.stdout
    assert "is left out" in ended.stderr
