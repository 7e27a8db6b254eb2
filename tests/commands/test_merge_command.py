"""`gpubench merge`, as users run it."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from swept import swept
from warm_command import WarmCommand

from gpubench.store.work_claims import WorkClaims, WorkItem

Merge = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def merge(warm_command: WarmCommand, tmp_path: Path) -> Merge:
    """Runs `gpubench merge` with these arguments."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        given = ("merge", *map(str, arguments))
        return warm_command.run(given, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def test_where_several_go_must_be_said_and_an_input_is_no_place_unless_it_is_the_first(
    merge: Merge, tmp_path: Path
) -> None:
    for name in "ab":
        swept(tmp_path / name, name, "16")
    ended = merge("a", "b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith(": --out FOLDER\n")
    ended = merge("a", "b", "--out", "b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("gpubench: --out b is one ")
    assert merge("a", "b", "--out", "a").returncode == 0
    assert merge("a", "nowhere", "--out", "a").returncode == 4


@pytest.mark.slow
def test_of_a_folder_in_which_a_sweep_measures_what_is_there_is_copied_and_it_is_told(
    merge: Merge, tmp_path: Path
) -> None:
    for name in "ab":
        swept(tmp_path / name, name, "16")
    claims = WorkClaims(tmp_path / "b")
    claims.claim_item(WorkItem("t0123456789a", 1, "a machine"))
    ended = merge("a", "b", "--out", "c")
    assert ended.returncode == 0
    assert ended.stdout.startswith("c: 2 attempts added")
    assert ended.stderr.startswith(
        f"gpubench: process {os.getpid()} on {socket.gethostname()} measures into b"
    )
    assert ended.stderr.count("\n") == 1
    claims.give_back()
    assert merge("a", "b", "--out", "c").stderr == ""
