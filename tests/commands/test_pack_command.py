"""`gpubench pack` and `gpubench unpack`, as users run them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from swept import swept
from warm_command import WarmCommand

from gpubench.store.work_claims import WorkClaims, WorkItem

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(warm_command: WarmCommand, tmp_path: Path) -> Run:
    """Runs gpubench with these arguments."""

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return start


def test_a_folder_is_packed_read_and_unpacked(run: Run, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16,32")
    before = run("table", "a").stdout
    ended = run("pack", "a")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("a: 4 files packed")
    assert not (tmp_path / "a" / "logs").exists()
    assert run("table", "a").stdout == before
    assert run("unpack", "a").stdout.startswith("a: 4 files unpacked")
    assert len(list((tmp_path / "a").glob("logs/*/*.log"))) == 2


@pytest.mark.parametrize("command", ["pack", "unpack"])
def test_a_folder_in_which_a_sweep_measures_is_refused(run: Run, tmp_path: Path, command: str) -> None:
    swept(tmp_path / "a", "one", "16")
    WorkClaims(tmp_path / "a").claim_item(WorkItem("t0123456789a", 1, "a machine"))
    ended = run(command, "a")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert f"process {os.getpid()} on " in ended.stderr
    assert " measures into a: " in ended.stderr
    assert run(command, "nowhere").returncode == 4
