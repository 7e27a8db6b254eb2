"""Segments that a killed process of a trial has left go with the trial, or with the next sweep; no other's ever."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from family import Spy

from gpubench.basics import linux
from gpubench.node.launch import scratch, shared_memory

MODELS = "tests/train/user_models.py:"


def segment(folder: Path, pid: int) -> Path:
    """A segment as torch names it, of a number that nobody else draws."""
    path = folder / f"torch_{pid}_{secrets.randbelow(1 << 60)}_0"
    path.write_bytes(bytes(4096))
    return path


@pytest.fixture
def real() -> Iterator[Callable[[int], Path]]:
    """Makes segments in the host's own shared memory, and leaves none."""
    made: list[Path] = []

    def make(pid: int) -> Path:
        made.append(segment(shared_memory.FOLDER, pid))
        return made[-1]

    yield make
    for path in made:
        path.unlink(missing_ok=True)


def test_what_a_killed_loader_worker_left_goes_with_its_trial(
    train: Callable[..., Any], server: Any, real: Callable[[int], Path]
) -> None:
    left: dict[str, Path] = {}

    def kill_a_worker(found: list[Any]) -> None:
        worker = next(p for p in found if not p.children())
        left["worker"], left["rank"], left["test"] = real(worker.pid), real(worker.ppid()), real(os.getpid())
        worker.kill()

    ran = train(model=MODELS + "slow_step", epochs=50, workers=2, look=Spy(server, 4, kill_a_worker))
    assert ran.status == "failed"
    assert {name: path.exists() for name, path in left.items()} == {
        "worker": False,
        "rank": False,
        "test": True,
    }


def gone() -> int:
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def note(folder: Path, pid: int, *, namespace: str | None = None, at: float | None = None) -> Path:
    """A scratch folder in which a process has noted itself."""
    place = folder / "0"
    place.mkdir(exist_ok=True)
    line = f"{pid} {linux.read_pid_namespace() if namespace is None else namespace} {at or time.time()}\n"
    with (place / shared_memory.NOTES).open("a") as file:
        file.write(line)
    return place


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """In place of the host's."""
    folder = tmp_path / "shm"
    folder.mkdir()
    return folder


def test_only_segments_of_processes_that_noted_themselves_go(tmp_path: Path, memory: Path) -> None:
    mine, other = gone(), gone()
    path, others = segment(memory, mine), segment(memory, other)
    for name in (f"torch_{mine}", f"torch_{mine}_1_0.txt", f"sem.mp-{mine}", f"torch_{mine}0_1_0"):
        (memory / name).touch()
    (memory / f"torch_{mine}_2_0").symlink_to(others)
    kept = {p.name for p in memory.iterdir()} - {path.name}
    assert shared_memory.remove_leftover_segments(note(tmp_path, mine), memory) == [path.name]
    assert {p.name for p in memory.iterdir()} == kept


@pytest.mark.parametrize("whose", ["of a living process", "older", "of another namespace", "unnoted"])
def test_what_may_be_another_s_stays(tmp_path: Path, memory: Path, whose: str) -> None:
    pid = os.getppid() if whose == "of a living process" else gone()
    path = segment(memory, pid)
    at = time.time() + 60 if whose == "older" else None
    place = note(tmp_path, pid, namespace="pid:[1]" if whose == "of another namespace" else None, at=at)
    if whose == "unnoted":
        (place / shared_memory.NOTES).unlink()
    assert shared_memory.remove_leftover_segments(place, memory) == []
    assert path.exists()


def test_what_a_killed_sweep_s_processes_left_goes_with_the_next_sweep(
    tmp_path: Path, real: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned = tmp_path / "gpubench-killed"
    abandoned.mkdir()
    (abandoned / scratch.LOCK_FILE).touch()
    pid = gone()
    path = real(pid)
    note(abandoned, pid)
    with scratch.open_scratch_folder() as used:  # of a sweep that lives
        other = gone()
        others = real(other)
        note(used, other)
        scratch.remove_abandoned_folders()
        assert others.exists()
    assert not path.exists()
    assert not abandoned.exists()
