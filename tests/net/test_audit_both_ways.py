"""The audit built anew comes to the verdicts of the old one, on committed and synthetic folders."""

from __future__ import annotations

from pathlib import Path

import committed
import pytest
import synthetic

from gpubench.analysis.audit.rules import audit
from gpubench.analyze.audit import audit_folder
from gpubench.analyze.folder import read_folder
from gpubench.commands.audit import facts_of
from gpubench.results.store import Results

NAMES = [name for name in committed.NAMES if name != "h200-checks-2026"]


def judge(path: Path) -> tuple[dict[int, str], dict[int, str]]:
    """By the old audit, and by the new one."""
    results = Results(path)
    facts, _ = facts_of(results, results.records(lambda _: None))
    before = {rule.number: finding.verdict for rule, finding in audit(facts)}
    findings = audit_folder(read_folder(path, lambda _: None))
    return before, {finding.number: finding.verdict for finding in findings}


@pytest.mark.parametrize("name", NAMES)
def test_committed_folders(name: str) -> None:
    before, now = judge(committed.folder(name))
    assert now == before


@pytest.mark.parametrize("family", list(synthetic.FAMILIES))
def test_synthetic_folders(family: str, tmp_path: Path) -> None:
    for name in synthetic.list_folders(family)[::5]:
        synthetic.write(name, tmp_path / name)
        before, now = judge(tmp_path / name)
        assert now == before, name
