"""`gpubench merge`, as users run it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from swept import swept
from warm_command import WarmCommand

from gpubench.results.locks.folder_lock import FolderLock

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
    assert ended.stderr == "gpubench: say where the folders are merged into: --out FOLDER\n"
    ended = merge("a", "b", "--out", "b")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("gpubench: --out b is one of the folders, and not the first")
    assert merge("a", "b", "--out", "a").returncode == 0
    assert merge("a", "nowhere", "--out", "a").returncode == 4


def test_a_folder_that_somebody_writes_into_is_refused(merge: Merge, tmp_path: Path) -> None:
    for name in "ab":
        swept(tmp_path / name, name, "16")
    lock = FolderLock(tmp_path / "b" / ".lock", say=print)
    lock.take()
    for arguments in (("a", "b", "--out", "c"), ("b",)):
        ended = merge(*arguments)
        assert (ended.returncode, ended.stdout) == (4, "")
        assert ended.stderr.count("\n") == 1
        assert "writes into b" in ended.stderr
    assert not (tmp_path / "c").exists()
    lock.release()
    assert merge("a", "b", "--out", "c").returncode == 0
