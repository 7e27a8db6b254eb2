"""Several that work in one folder: who is there, who is the last, and whom the others take for dead."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError
from gpubench.results.locks.folder_lock import FolderLock, held
from gpubench.results.locks.lock_file import HEARTBEAT_S, STALE_S, LockFile
from gpubench.results.locks.members import Members
from gpubench.store.holder import Holder

ELSEWHERE = Holder(host="n2", boot="another boot", pid_namespace="pid:[1]", pid=1, began="7", joins=True)


class Ticking:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def joined(folder: Path, clock: Ticking | None = None) -> FolderLock:
    lock = FolderLock(folder / ".lock", say=print, joins=True, clock=clock or Ticking())
    lock.take()
    return lock


def alone(folder: Path) -> FolderLock:
    return FolderLock(folder / ".lock", say=print)


def member(folder: Path, holder: Holder, quiet_s: float = 0.0) -> Path:
    path = folder / ".joined" / f"{holder.pid}-abc"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(asdict(holder)))
    os.utime(path, (time.time() - quiet_s,) * 2)
    return path


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_one_that_goes_knows_it_and_nothing_is_left(tmp_path: Path, order: tuple[int, ...]) -> None:
    locks = [joined(tmp_path) for _ in range(3)]
    assert [locks[number].leave() for number in order] == [False, False, True]
    for number in order:
        locks[number].check()  # the last one may have taken the file away
        locks[number].release()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_of_two_that_go_at_once_at_least_one_sees_nobody_else(tmp_path: Path) -> None:
    one, other = Members(tmp_path), Members(tmp_path)
    for members in (one, other):
        members.enter(Holder.here())
    one.leave()
    other.leave()
    assert (one.others(), other.others()) == ([], [])


def test_who_has_left_is_not_told_that_the_folder_is_gone(tmp_path: Path) -> None:
    clock = Ticking()
    first, second = joined(tmp_path, clock), joined(tmp_path)
    assert not first.leave()
    second.release()
    assert not (tmp_path / ".lock").exists()
    clock.now += HEARTBEAT_S + 1
    first.beat()
    first.check()
    first.release()
    assert not (tmp_path / ".lock").exists(), "nor does its heartbeat make the file anew"


def test_one_alone_waits_for_all_of_them(tmp_path: Path) -> None:
    first, second = joined(tmp_path), joined(tmp_path)
    first.release()
    with pytest.raises(UnusableError, match=r"is worked through by a sweep \(process .*\); --join"):
        alone(tmp_path).take()
    second.release()
    alone(tmp_path).take()


def test_those_that_join_do_not_join_one_alone(tmp_path: Path) -> None:
    alone(tmp_path).take()
    with pytest.raises(UnusableError, match="another sweep writes into"):
        joined(tmp_path)
    assert list((tmp_path / ".joined").iterdir()) == [], "who was refused is no member"


def test_where_all_of_them_have_died_one_alone_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    dead = replace(Holder.here(), pid=int(done.stdout), began="1", joins=True)
    (tmp_path / ".lock").write_text(json.dumps(asdict(dead)))
    path = member(tmp_path, ELSEWHERE)
    with pytest.raises(UnusableError):
        alone(tmp_path).take()
    path.unlink()
    member(tmp_path, dead)
    alone(tmp_path).take()


def test_a_silent_member_counts_as_dead_and_comes_back_with_its_next_heartbeat(tmp_path: Path) -> None:
    clock = Ticking()
    silent = joined(tmp_path, clock)
    (own,) = (tmp_path / ".joined").iterdir()
    living = joined(tmp_path)
    own.write_text(json.dumps(asdict(ELSEWHERE)))  # of whom nothing is known but this
    os.utime(own, (time.time() - STALE_S + 10,) * 2)
    assert living.others() == [str(ELSEWHERE)]
    os.utime(own, (time.time() - STALE_S - 1,) * 2)
    assert living.others() == []
    assert not own.exists()
    living.release()
    assert not (tmp_path / ".lock").exists()
    clock.now += HEARTBEAT_S + 1
    silent.beat()
    assert own.exists()
    with pytest.raises(UnusableError):
        alone(tmp_path).take()


def test_status_names_those_that_have_joined(tmp_path: Path) -> None:
    locks = [joined(tmp_path) for _ in range(5)]
    there = held(tmp_path)
    assert there is not None
    assert there.is_alive
    assert there.who == f"5 sweeps ({', '.join([str(Holder.here())] * 3)} and 2 more)"
    for lock in locks:
        lock.release()
    assert held(tmp_path) is None


def test_a_look_at_a_thousand_members_asks_the_file_system_once_for_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    file_time = LockFile.file_time

    def counted(file: LockFile) -> float:
        asked.append(file.path)
        return file_time(file)

    for number in range(20):
        member(tmp_path, replace(ELSEWHERE, pid=number), quiet_s=STALE_S + 10 if number == 7 else 0.0)
    monkeypatch.setattr(LockFile, "file_time", counted)
    assert len(Members(tmp_path).others()) == 19, "one has fallen silent"
    assert len(asked) == 1
    assert len(list((tmp_path / ".joined").iterdir())) == 19
