"""GPUs that one sweep of a host has for itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from gpubench.node.gpu_locks import GpuLocks

HOLDS = """
import pathlib, sys
from gpubench.node.gpu_locks import GpuLocks
hold = GpuLocks(pathlib.Path(sys.argv[1]))
print(hold.take(["GPU-1", "GPU-2"]), flush=True)
sys.stdin.read()
"""


def test_what_one_has_another_does_not_get_until_it_is_given_up(tmp_path: Path) -> None:
    one, other = GpuLocks(tmp_path), GpuLocks(tmp_path)
    assert one.take(["GPU-1", "GPU-2"]) == []
    assert other.take(["GPU-2", "GPU-3"]) == ["GPU-2"]
    assert one.take(["GPU-1"]) == [], "its own"
    assert one.take(["GPU-3"]) == ["GPU-3"]
    one.release()
    assert other.take(["GPU-1", "GPU-2"]) == []


def test_a_killed_sweep_holds_nothing(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "[]\n"
    assert GpuLocks(tmp_path).take(["GPU-1"]) == ["GPU-1"]
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    assert GpuLocks(tmp_path).take(["GPU-1"]) == []


def test_a_file_that_somebody_else_made_is_locked_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "gpubench-GPU-1.lock"
    path.touch(mode=0o444)
    one, other = GpuLocks(tmp_path), GpuLocks(tmp_path)
    assert one.take(["GPU-1"]) == []
    assert other.take(["GPU-1"]) == ["GPU-1"]


def test_where_no_file_can_be_made_nobody_is_refused(tmp_path: Path) -> None:
    assert GpuLocks(tmp_path / "nowhere").take(["GPU-1"]) == []
    (tmp_path / "gpubench-GPU-2.lock").symlink_to(tmp_path / "elsewhere")
    assert GpuLocks(tmp_path).take(["GPU-2"]) == []
    assert not (tmp_path / "elsewhere").exists(), "no link is followed"
