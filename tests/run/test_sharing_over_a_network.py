"""Sweeps that share a folder over a file system that caches, as a network's does: each sees late what others have done.

Not every kernel knows NFS. So each sweep has a view of its own of one folder, through a file system in user space
that keeps names and attributes, and that a name is not there, for a minute. That is worse than NFS, which at least
forgets a folder's names when it sees that the folder has changed. Each sweep runs in a pid namespace of its own, so
that it knows of the others what a process on another host knows: their heartbeats.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from place import TINY

VIEWS = ("first", "second")
CACHED_S = 60
GRID = (*TINY[:-2], "--variant", "synthetic", "--batch-size", "8,16,32", "--set", "train_images=64")
REQUIRED = os.environ.get("GPUBENCH_BINDFS") == "required"


@contextlib.contextmanager
def views(home: Path) -> Iterator[list[Path]]:
    """One folder, as each of several hosts sees it."""
    if not REQUIRED and (shutil.which("bindfs") is None or os.geteuid() != 0):
        pytest.skip(
            "needs bindfs, and root for pid namespaces (set GPUBENCH_BINDFS=required to fail instead)"
        )
    real = home / "real"
    real.mkdir()
    cached = ",".join(f"{what}_timeout={CACHED_S}" for what in ("attr", "entry", "negative", "ac_attr"))
    with contextlib.ExitStack() as endings:
        found = []
        for name in VIEWS:
            view = home / name
            view.mkdir()
            subprocess.run(["bindfs", "-o", cached, real, view], check=True)
            endings.callback(subprocess.run, ["umount", view], check=True)
            found.append(view)
        yield found


@pytest.mark.slow
def test_the_caches_of_this_test_are_stale(tmp_path: Path) -> None:
    with views(tmp_path) as (one, two):
        assert not (two / "x").exists()
        (one / "x").touch()
        # Otherwise the other test shows nothing.
        assert not (two / "x").exists()
        with pytest.raises(FileExistsError):
            (two / "x").symlink_to("y")


@pytest.mark.slow
def test_nothing_is_measured_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    with views(tmp_path) as seen:
        command = [sys.executable, "-m", "gpubench", "sweep", *GRID, "--cpus", "1", "--rounds", "2"]
        apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        running = []
        for view in seen:
            running.append(
                subprocess.Popen(
                    [*apart, *command, "--out", str(view / "all")],
                    env=environment, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
            time.sleep(0.5)  # so that the caches differ
        told = [one.communicate(timeout=240) for one in running]
        assert [one.returncode for one in running] == [0, 0], told
        folder = tmp_path / "real" / "all"
        stored = [json.loads(path.read_text()) for path in folder.glob("records/*/*.json")]
        assert Counter((one["trial"]["batch_size"], one.get("round", 1)) for one in stored) == {
            (size, number): 1 for size in (8, 16, 32) for number in (1, 2)
        }
        assert len((folder / "trials.csv").read_text().splitlines()) == 7, "the last one has all"
