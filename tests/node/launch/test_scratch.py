"""Temporary files go with their trial; what a killed sweep leaves goes with the next one."""

from __future__ import annotations

import contextlib
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from family import family

from gpubench.basics.errors import UnusableError
from gpubench.node.launch import scratch

MODELS = "tests/train/user_models.py:"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_private_and_goes_with_what_is_in_it(home: Path) -> None:
    with scratch.open_scratch_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "left").mkdir()
        assert folder.parent == home
    assert list(home.iterdir()) == []


def test_where_none_can_be_made_that_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(home / "gone"))
    with (
        pytest.raises(
            UnusableError, match=r"no folder for temporary files can be made: No such file .*TMPDIR"
        ),
        scratch.open_scratch_folder(),
    ):
        pass


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_stays(home: Path) -> None:
    code = (
        "import sys, tempfile; tempfile.tempdir = sys.argv[1]\n"
        "from gpubench.node.launch.scratch import open_scratch_folder\n"
        "with open_scratch_folder() as folder:\n    print(folder, flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    folder = Path(other.stdout.readline().strip())
    scratch.remove_abandoned_folders()
    assert folder.exists(), "its process lives"
    other.send_signal(signal.SIGKILL)
    other.wait()
    (home / "gpubench-of-an-older-version").mkdir()
    (home / "gpubench-file").touch()
    (home / "gpubench-link").symlink_to(folder)
    scratch.remove_abandoned_folders()
    assert sorted(p.name for p in home.iterdir()) == [
        "gpubench-file",
        "gpubench-link",
        "gpubench-of-an-older-version",
    ]
    for pipe in (other.stdin, other.stdout):
        assert pipe is not None
        pipe.close()


@pytest.mark.slow
def test_what_a_trial_leaves_among_temporary_files_goes_with_it(train, server) -> None:
    """Loader workers open sockets; whether a killed one removes them is a matter of luck, so we look where they are."""
    seen: set[Path] = set()

    def look(_: object) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in family(server):
                seen.update(Path(c.laddr) for c in process.net_connections("unix") if "pymp-" in c.laddr)

    # A socket's path must be short.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        train(model=MODELS + "slow_step", workers=2, look=look, scratch_in=Path(folder))
        assert seen
        assert {path.parents[2] for path in seen} == {Path(folder)}
        assert list(Path(folder).iterdir()) == []
