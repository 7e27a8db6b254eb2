"""`gpubench table` and its options, as users run it, over the results that are kept here."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Callable
from pathlib import Path

import committed
import pytest
from swept import swept
from warm_command import WarmCommand

Table = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def table(warm_command: WarmCommand) -> Table:
    """Runs `gpubench table` with these arguments."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm_command.run(
            ("table", *arguments), cwd=Path.cwd(), env={"PATH": "/usr/bin:/bin"}, timeout=60
        )

    return run


def test_columns_on_request(table: Table) -> None:
    ended = table(str(committed.folder("h200x4-2026")), "--columns", "power_w,-data_wait_pct")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "power" in ended.stdout
    assert "wait" not in ended.stdout


@pytest.mark.parametrize("given", ["powr_w", "-powr_w"])
def test_a_column_that_is_none_names_the_nearest(table: Table, given: str) -> None:
    ended = table(str(committed.folder("h200x4-2026")), "--columns", given)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(
        "gpubench: unknown column 'powr_w': did you mean power_w? docs/columns.md lists"
    )
    assert ended.stderr.count("\n") == 1


def test_every_repeat_stands_in_trials_csv(tmp_path: Path) -> None:
    swept(tmp_path, "one", "16,32", repeats=3)
    with (tmp_path / "trials.csv").open(newline="") as file:
        rows = [(line["batch_size"], line["repeat"]) for line in csv.DictReader(file)]
    assert sorted(rows) == [(batch, str(n)) for batch in ("16", "32") for n in range(3)]
    with (tmp_path / "table.csv").open(newline="") as file:
        assert [line["repeats"] for line in csv.DictReader(file)] == ["3", "3"]
