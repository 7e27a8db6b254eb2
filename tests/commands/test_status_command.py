"""`gpubench status`, as users and their scripts run it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import committed
import pytest
from swept import swept
from warm_command import WarmCommand

from gpubench.results.store import Results
from gpubench.store.work_claims import DEAD_S, WorkClaims, WorkItem

Status = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def status(warm_command: WarmCommand, tmp_path: Path) -> Status:
    """Runs `gpubench status` with these arguments."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        given = ("status", *map(str, arguments))
        return warm_command.run(given, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def unfold(ended: subprocess.CompletedProcess[str]) -> str:
    """What was printed, as one line."""
    return " ".join(ended.stdout.split())


def of_another_host(lock: Path) -> None:
    """Makes a lock that of a process on another host."""
    told = json.loads(lock.read_text()) | {"host": "elsewhere", "boot": "another", "pid": 7}
    lock.write_text(json.dumps(told))


def test_a_folder_whose_trials_all_ended_is_complete(status: Status, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16,32")
    ended = status("a")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[:2] == ["a: complete", "  trials and groups: 2 ok"]


def test_a_folder_with_something_left_ends_in_75_and_says_how_long_it_takes(
    status: Status, tmp_path: Path
) -> None:
    swept(tmp_path / "a", "one", "16,32,64", stop_after=1)
    ended = status("a")
    assert ended.returncode == 75
    first, rest, second, *_ = ended.stdout.splitlines()
    assert "; 2 of 3 measurements" in first
    assert max(map(len, (first, rest))) <= 80
    assert ": 1 ok, 2 not" in second


def test_what_failed_is_told_and_ends_in_1(status: Status, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16,32")
    record = min((tmp_path / "a" / "records").glob("*/*.json"))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "failed", "reason": "it broke"}))
    ended = status("a")
    assert ended.returncode == 1
    assert ended.stdout.startswith("a: finished, with failures\n")
    assert ": it broke\n" in ended.stdout
    assert "--retry failed,timeout" in ended.stdout


def test_a_running_sweep_is_named_and_not_disturbed(status: Status, tmp_path: Path) -> None:
    job = swept(tmp_path / "a", "one", "16,32", stop_after=1)
    claims = WorkClaims(tmp_path / "a")
    (missing,) = {one.trial_id for one in job.plan.jobs} - {one.trial_id for one in job.records}
    claims.claim_item(WorkItem(missing, 1, "a machine"))
    log = Results(tmp_path / "a").make_log_path(missing, "1")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    ended = status("a")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")} == before
    assert ended.returncode == 5
    assert ended.stdout.startswith("a: running; 1 of 2 ")
    assert f"process {os.getpid()} on " in ended.stdout
    assert f"({log.relative_to(tmp_path)})" in ended.stdout
    claims.give_back()


def test_a_sweep_that_was_killed_and_one_on_another_host(status: Status, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16,32", stop_after=1)
    item = WorkItem("t0123456789a", 1, "a machine")
    WorkClaims(tmp_path / "a").claim_item(item)
    path = item.make_claim_path(tmp_path / "a", 1)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"began": "1"}))
    ended = status("a")
    assert ended.returncode == 75
    assert "has died" in ended.stdout
    of_another_host(path)
    ended = status("a")
    assert ended.returncode == 5
    assert ": process 7 on elsewhere, " in ended.stdout
    old = time.time() - 2 * DEAD_S
    os.utime(path, (old, old))
    ended = status("a")
    assert ended.returncode == 75
    assert "probably dead: last heard of" in unfold(ended)
    assert " 10 min ago" in unfold(ended)
    path.write_text("{")
    assert status("a").returncode == 5


@pytest.mark.slow
def test_of_several_folders_the_one_that_needs_somebody_decides(status: Status, tmp_path: Path) -> None:
    swept(tmp_path / "done", "one", "16")
    swept(tmp_path / "left", "one", "16,32", stop_after=1)
    assert status("left", "done").returncode == 75
    ended = status("done", "nowhere")
    assert ended.returncode == 4
    assert ended.stdout.startswith("done: complete")
    assert ended.stderr.count("\n") == 1
    (tmp_path / "empty").mkdir()
    ended = status("empty")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "empty is not a results folder" in ended.stderr


def test_a_folder_that_is_not_there_yet_and_one_of_results_folders(status: Status, tmp_path: Path) -> None:
    """Whoever has just submitted a job asks for the first; the second is the same with a word less."""
    ended = status("results/later")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "results/later is not there" in ended.stderr
    swept(tmp_path / "results" / "one", "one", "16")
    ended = status("results")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ": one\n" in ended.stderr
    (tmp_path / "file").touch()
    assert "is not a results folder" in status("file").stderr


@pytest.mark.parametrize("name", ["titan-xp-2021", "h200x4-groups-2026"])
def test_committed_results_of_versions_that_knew_no_rounds_are_complete(status: Status, name: str) -> None:
    assert status(committed.folder(name)).returncode == 0


def test_a_damaged_record_is_named_and_counts_as_missing(status: Status, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16,32")
    min((tmp_path / "a" / "records").glob("*/*.json")).write_text("{")
    ended = status("a")
    assert ended.returncode == 75
    assert "1 ok, 1 not run" in ended.stdout
    assert "is left out" in ended.stderr
