"""`gpubench audit` over real folders."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import committed
import pytest
from swept import swept

from gpubench.analysis.audit.rules import audit
from gpubench.commands.audit import facts_of, traces
from gpubench.results.store import Results


def verdicts(folder: Path) -> dict[int, str]:
    results = Results(folder)
    facts, problems = facts_of(results, results.records())
    assert not problems
    return {rule.number: finding.verdict for rule, finding in audit(facts)}


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
    log = job.bench.results.part("logs", first.trial_id, 2, "log")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.touch()
    assert (first.trial_id, 2) in traces(tmp_path)
    assert verdicts(tmp_path)[3] == "not decidable"
    log.unlink()
    again = first.model_copy(update={"attempt": 3})
    job.bench.results.save([again], [[]], ["t"])
    assert verdicts(tmp_path)[3] == "broken"


def test_trials_that_never_ran_are_seen(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32,64", stop_after=1)
    assert verdicts(tmp_path)[12] == "broken"


def test_without_any_result_nothing_can_be_decided(tmp_path: Path) -> None:
    ended = run(str(tmp_path))
    assert (ended.returncode, ended.stdout) == (4, b"")
    assert b"holds no records" in ended.stderr


def test_two_forms_at_once_are_refused() -> None:
    ended = run(str(committed.folder("titan-xp-2021")), "--markdown", "--json")
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert ended.stderr == b"gpubench: --json and --markdown are two forms of the same; give one of them\n"


@pytest.mark.parametrize("form", [[], ["--markdown"], ["--json"]])
def test_it_says_and_does_not_judge_in_any_locale(form: list[str]) -> None:
    ended = run(
        str(committed.folder("h200x4-2026")), *form, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    text = ended.stdout.decode("ascii")
    if form == ["--json"]:
        assert [json.loads(line)["number"] for line in text.splitlines()] == list(range(1, 14))
    else:
        assert "8 kept, 2 broken, 3 not decidable" in text
