"""`gpubench audit`, as users run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import committed
import pytest
from swept import swept

from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder


def test_trials_that_never_ran_are_seen(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32,64", stop_after=1)
    verdicts = {
        finding.number: finding.verdict for finding in audit_folder(read_folder(tmp_path, pytest.fail))
    }
    assert (verdicts[3], verdicts[12]) == ("kept", "broken")


@pytest.mark.slow
def test_it_tells_rules_and_does_not_judge_in_any_locale(tmp_path: Path) -> None:
    def audit(folder: Path) -> subprocess.CompletedProcess[bytes]:
        locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        return subprocess.run(
            [sys.executable, "-m", "gpubench", "audit", folder], capture_output=True, timeout=60, check=False,
            env={"PATH": "/usr/bin:/bin", **locale},
        )  # fmt: skip

    ended = audit(committed.folder("h200x4-2026"))
    assert (ended.returncode, ended.stderr) == (0, b"")
    text = ended.stdout.decode("ascii")
    assert "8 kept, 2 broken, 3" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    ended = audit(tmp_path)
    assert (ended.returncode, ended.stdout) == (4, b"")
    assert b"holds no records" in ended.stderr
