"""Who holds a results folder: by what can be known, by heartbeats, and never by comparing clocks."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damaged import FILES

from gpubench.basics.errors import UnusableError
from gpubench.results.locks.folder_lock import FolderLock
from gpubench.results.locks.lock_file import CONFIRM_S, HEARTBEAT_S, STALE_S
from gpubench.store import holder

ELSEWHERE = {"host": "elsewhere", "boot": "b", "pid_namespace": "pid:[1]", "pid": 1, "began": "7"}


class Time:
    """A clock that only sleeping moves, and what happens on the way."""

    def __init__(self, happens: Callable[[float], object] = float) -> None:
        self.now, self.happens = 1000.0, happens

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.happens(self.now - 1000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".lock"


def held_by(path: Path, holder: dict[str, Any] | str, heard_s_ago: float = 0.0) -> None:
    path.write_text(holder if isinstance(holder, str) else json.dumps(holder))
    then = time.time() - heard_s_ago
    os.utime(path, (then, then))


def lock_of(path: Path, when: Time | None = None) -> tuple[FolderLock, list[str]]:
    said: list[str] = []
    when = when or Time()
    return FolderLock(path, say=said.append, clock=when.clock, sleep=when.sleep), said


def beats(path: Path, every_s: float = HEARTBEAT_S) -> Callable[[float], None]:
    """A holder that lives, whatever its clock says: only the change of its file's time tells."""
    stamp = path.stat().st_mtime

    def happens(now: float) -> None:
        if int(now / every_s):
            os.utime(path, (stamp + int(now / every_s), stamp + int(now / every_s)))

    return happens


def holder_here() -> dict[str, Any]:
    lock = FolderLock(Path("x"), say=print)
    return {name: getattr(lock._own, name) for name in ELSEWHERE}


def test_a_lock_is_whole_or_not_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    lock, _ = lock_of(path)
    with pytest.raises(UnusableError, match="No space left"):
        lock.take()
    assert list(path.parent.iterdir()) == [], "neither an empty lock nor litter"
    monkeypatch.undo()
    lock.take()
    assert json.loads(path.read_text())["pid"] == os.getpid()
    assert [p.name for p in path.parent.iterdir()] == [".lock"]


def test_a_file_system_without_links_has_a_lock_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    lock, _ = lock_of(path)
    lock.take()
    with pytest.raises(UnusableError, match="another sweep writes"):
        lock_of(path)[0].take()
    lock.release()
    assert list(path.parent.iterdir()) == []


def test_a_live_process_of_this_boot_and_namespace_is_refused_at_once(path: Path) -> None:
    lock_of(path)[0].take()
    other, said = lock_of(path, when := Time())
    with pytest.raises(UnusableError, match=f"process {os.getpid()} on .*--wait"):
        other.take()
    assert (said, when.now) == ([], 1000.0)


def test_a_dead_process_is_followed_at_once_and_that_is_said(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    held_by(path, holder_here() | {"pid": int(done.stdout), "began": "1"})
    lock, said = lock_of(path, when := Time())
    lock.take()
    assert "has died" in said[0]
    assert when.now == 1000.0


def test_a_zombie_is_dead(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    began = holder.began(child.pid)
    held_by(path, holder_here() | {"pid": child.pid, "began": began})
    with pytest.raises(UnusableError):
        lock_of(path)[0].take()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    lock_of(path)[0].take()
    child.wait()


def test_a_process_of_another_pid_namespace_is_not_looked_up_by_its_number(path: Path) -> None:
    held_by(path, holder_here() | {"pid_namespace": "pid:[1]", "pid": 1, "began": "1"})
    with pytest.raises(UnusableError, match="another sweep writes"):
        lock_of(path)[0].take()


@pytest.mark.parametrize("ahead_s", [-400.0, 0.0, 400.0])
def test_a_live_holder_whose_clock_differs_keeps_its_folder(path: Path, ahead_s: float) -> None:
    held_by(path, ELSEWHERE, heard_s_ago=-ahead_s)
    lock, _ = lock_of(path, Time(beats(path)))
    with pytest.raises(UnusableError, match="process 1 on elsewhere"):
        lock.take()
    assert json.loads(path.read_text()) == ELSEWHERE


def test_a_holder_that_was_not_heard_of_for_long_is_watched_before_it_counts_as_dead(path: Path) -> None:
    held_by(path, ELSEWHERE, heard_s_ago=STALE_S + 10)
    lock, said = lock_of(path, when := Time())
    lock.take()
    assert when.now - 1000 == pytest.approx(CONFIRM_S, abs=1)
    assert "process 1 on elsewhere holds" in said[0]
    assert f"without a sign of life for {CONFIRM_S:.0f} s" in said[0]
    assert "has shown no sign of life" in said[1]


def test_waiting_ends_when_the_holder_does(path: Path) -> None:
    held_by(path, ELSEWHERE)
    lives = beats(path)

    def happens(now: float) -> None:
        if now < 1000:
            lives(now)
        else:
            path.unlink(missing_ok=True)

    lock, said = lock_of(path, when := Time(happens))
    lock.take(wait=True)
    assert when.now - 1000 == pytest.approx(1000, abs=2), "a live one is waited for, however long"
    assert len(said) == 1


def test_waiting_for_one_that_died_without_a_word_takes_five_minutes(path: Path) -> None:
    held_by(path, ELSEWHERE, heard_s_ago=5)
    lock, _ = lock_of(path, when := Time())
    lock.take(wait=True)
    assert when.now - 1000 == pytest.approx(STALE_S, abs=1)


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', '{"pid": 1}', "\0" * 9])
def test_half_a_lock_is_held_until_it_counts_as_dead(path: Path, text: str) -> None:
    held_by(path, text)
    with pytest.raises(UnusableError, match="another sweep writes"):
        lock_of(path)[0].take()
    held_by(path, text, heard_s_ago=STALE_S + 1)
    lock_of(path)[0].take()


def test_the_heartbeat_moves_not_more_often_than_it_must(path: Path) -> None:
    lock, _ = lock_of(path, when := Time())
    lock.take()
    os.utime(path, (1.0, 1.0))
    lock.beat()
    assert path.stat().st_mtime == 1.0
    when.now += HEARTBEAT_S + 1
    lock.beat()
    assert path.stat().st_mtime > 1.0
    lock.release()
    when.now += HEARTBEAT_S + 1
    lock.beat()  # nothing is held any more
    assert not path.exists()


def test_a_sweep_whose_folder_was_taken_or_removed_ends(path: Path) -> None:
    lock, _ = lock_of(path, when := Time())
    lock.take()
    held_by(path, ELSEWHERE)
    when.now += HEARTBEAT_S + 1
    with pytest.raises(UnusableError, match="process 1 on elsewhere"):
        lock.beat()
    path.unlink()
    when.now += HEARTBEAT_S + 1
    with pytest.raises(UnusableError, match="was removed"):
        lock.beat()


def test_a_lock_that_another_took_over_is_left_alone(path: Path) -> None:
    lock, _ = lock_of(path)
    lock.take()
    held_by(path, ELSEWHERE)
    lock.release()
    assert path.exists()


def test_a_process_in_a_pid_namespace_of_its_own_keeps_its_folder(path: Path) -> None:
    """Two containers of one host: the same host name, the same boot, and ids that say nothing to the other."""
    code = (
        "import sys, pathlib; from gpubench.results.locks.folder_lock import FolderLock\n"
        "FolderLock(pathlib.Path(sys.argv[1]), say=print).take(); print('got', flush=True); sys.stdin.read()"
    )
    contained = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*contained, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a pid namespace")
    holder = subprocess.Popen(
        [*contained, sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "got\n"
        with pytest.raises(UnusableError, match="another sweep writes"):
            lock_of(path)[0].take()
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()


def test_a_lock_that_cannot_be_removed_ends_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    lock, _ = lock_of(path)
    lock.take()
    monkeypatch.setattr(Path, "unlink", read_only)
    lock.release()
    monkeypatch.undo()
    assert path.exists()


@pytest.mark.parametrize("kind", ["fifo", "folder", "dangling-link", "link-to-itself", "link-to-a-device"])
def test_what_is_no_file_in_place_of_a_lock_is_refused_at_once(path: Path, kind: str) -> None:
    FILES[kind](path, "")
    with pytest.raises(UnusableError, match=r"\.lock can't be read: "):
        lock_of(path)[0].take()


@pytest.mark.parametrize("kind", ["deep", "binary", "half"])
def test_a_damaged_lock_counts_as_held(path: Path, kind: str) -> None:
    FILES[kind](path, "[1, 2]")
    with pytest.raises(UnusableError, match="a sweep that left no name"):
        lock_of(path)[0].take()
