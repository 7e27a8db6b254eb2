"""`gpubench audit` over real folders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import committed
import pytest
from msgspec import structs
from swept import swept

from gpubench.analyze.audit import RuleFinding, audit_folder
from gpubench.analyze.folder import read_folder


def judge(folder: Path) -> dict[int, RuleFinding]:
    return {finding.number: finding for finding in audit_folder(read_folder(folder, pytest.fail))}


def verdicts(folder: Path) -> dict[int, str]:
    return {number: finding.verdict for number, finding in judge(folder).items()}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gpubench", "audit", *arguments], capture_output=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def test_a_published_log_leaves_most_open() -> None:
    found = verdicts(committed.folder("titan-xp-2021"))
    assert found == dict.fromkeys(range(1, 14), "not decidable") | {2: "broken", 4: "kept", 11: "kept"}


def test_batch_sizes_on_four_gpus() -> None:
    found = verdicts(committed.folder("h200x4-2026"))
    assert {n for n, verdict in found.items() if verdict == "broken"} == {9, 13}
    assert {n for n, verdict in found.items() if verdict == "not decidable"} == {1, 7, 12}


def test_a_record_taken_away_and_one_that_was_never_written(tmp_path: Path) -> None:
    job = swept(tmp_path, "one", "16,32")
    assert verdicts(tmp_path)[3] == "kept"
    first = job.records[0]
    log = job.runner.results.make_log_path(first.trial_id, f"2-{first.folder_id}00000000")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    assert verdicts(tmp_path)[3] == "not decidable"
    log.unlink()
    again = structs.replace(first, attempt=3, attempt_id=f"3-{first.folder_id}00000000")
    job.runner.results.save([again], [[]], ["t"])
    assert verdicts(tmp_path)[3] == "broken"


def test_trials_that_never_ran_are_seen(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32,64", stop_after=1)
    assert verdicts(tmp_path)[12] == "broken"


def test_without_any_result_nothing_can_be_decided(tmp_path: Path) -> None:
    ended = run(str(tmp_path))
    assert (ended.returncode, ended.stdout) == (4, b"")
    assert b"holds no records" in ended.stderr


@pytest.mark.slow
def test_it_tells_rules_and_does_not_judge_in_any_locale() -> None:
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = run(str(committed.folder("h200x4-2026")), **locale)
    assert (ended.returncode, ended.stderr) == (0, b"")
    text = ended.stdout.decode("ascii")
    assert "8 kept, 2 broken, 3" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
