"""Which unit is whose: by what can be known of its holder, and never by comparing clocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gpubench.basics import slurm_job
from gpubench.results.locks import unit_locks
from gpubench.results.locks.lock_file import CONFIRM_S, HEARTBEAT_S, STALE_S
from gpubench.results.locks.unit_locks import Lot, UnitLocks
from gpubench.store.holder import Holder

LOT = Lot("t00aa", 1, "NVIDIA H200, 143771 MiB")
ELSEWHERE = Holder(host="n2", boot="another boot", pid_namespace="pid:[1]", pid=1, began="7")


class Ticking:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def locks(folder: Path) -> tuple[UnitLocks, Ticking, list[str]]:
    clock, said = Ticking(), list[str]()
    return UnitLocks(folder, say=said.append, clock=clock), clock, said


def held_by(folder: Path, holder: Holder, quiet_s: float = 0.0) -> Path:
    path = LOT.path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(holder)))
    beats(path, quiet_s)
    return path


def beats(path: Path, quiet_s: float = 0.0) -> None:
    then = time.time() - quiet_s
    os.utime(path, (then, then))


def dead_here() -> Holder:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    return replace(Holder.here(), pid=int(done.stdout), began="1")


def test_what_one_has_nobody_else_gets_until_it_is_given_back(tmp_path: Path) -> None:
    one, other = locks(tmp_path)[0], locks(tmp_path)[0]
    assert one.take(LOT) == "mine"
    assert other.take(LOT) == "theirs"
    assert other.is_taken(LOT)
    assert not one.is_taken(LOT), "its own"
    one.give_back()
    assert other.take(LOT) == "mine"
    assert one.take(LOT) == "theirs"


def test_taking_another_gives_the_first_back(tmp_path: Path) -> None:
    one, other = locks(tmp_path)[0], locks(tmp_path)[0]
    assert one.take(LOT) == "mine"
    assert one.take(replace(LOT, round=2)) == "mine"
    assert other.take(LOT) == "mine"


def test_another_round_and_another_kind_of_machine_are_other_lots(tmp_path: Path) -> None:
    for lot in (
        LOT,
        replace(LOT, round=2),
        replace(LOT, machine="NVIDIA H100, 81559 MiB"),
        replace(LOT, unit_id="t00ab"),
    ):
        assert locks(tmp_path)[0].take(lot) == "mine"


def test_a_lock_lies_beside_the_records_and_is_none(tmp_path: Path) -> None:
    one = locks(tmp_path)[0]
    one.take(LOT)
    (path,) = (tmp_path / "records" / "00").iterdir()
    assert path.name.startswith(".")
    assert path.suffix == ".lock"
    assert Holder(**json.loads(path.read_text())) == Holder.here()


def test_a_dead_one_of_this_host_is_followed_at_once(tmp_path: Path) -> None:
    held_by(tmp_path, dead_here())
    one, _, said = locks(tmp_path)
    assert one.take(LOT) == "mine"
    assert "has died while it measured" in said[0]


def test_one_of_another_host_is_left_alone_while_its_heart_beats(tmp_path: Path) -> None:
    path = held_by(tmp_path, ELSEWHERE)
    one, clock, said = locks(tmp_path)
    for number in range(1, 30):
        assert one.take(LOT) == "theirs"
        clock.now += HEARTBEAT_S
        beats(path, -number)  # whatever its clock says
    assert said == []


def test_one_of_another_host_that_has_fallen_silent_is_followed(tmp_path: Path) -> None:
    path = held_by(tmp_path, ELSEWHERE)
    one, clock, said = locks(tmp_path)
    assert one.take(LOT) == "theirs"
    os.utime(path, (time.time() - CONFIRM_S - 1,) * 2)
    assert one.take(LOT) == "quiet", "it may have died: whoever has nothing else to do waits"
    clock.now += STALE_S - 1
    assert one.take(LOT) == "quiet"
    clock.now += 1
    assert one.take(LOT) == "mine"
    assert len(said) == 1


def test_a_heartbeat_that_is_old_already_is_looked_at_for_a_minute(tmp_path: Path) -> None:
    path = held_by(tmp_path, ELSEWHERE, STALE_S + 1)
    one, clock, _ = locks(tmp_path)
    assert one.take(LOT) == "quiet"
    clock.now += CONFIRM_S - 1
    beats(path, STALE_S)  # it lives: its clock is behind
    assert one.take(LOT) == "quiet"
    clock.now += CONFIRM_S - 1
    assert one.take(LOT) == "quiet"
    clock.now += 1
    assert one.take(LOT) == "mine"


def test_a_holder_shows_that_it_lives_twice_a_minute(tmp_path: Path) -> None:
    one, clock, _ = locks(tmp_path)
    one.take(LOT)
    path = LOT.path(tmp_path)
    beats(path, 1000)
    clock.now += HEARTBEAT_S
    one.beat()
    assert time.time() - path.stat().st_mtime > 900
    clock.now += 1
    one.beat()
    assert time.time() - path.stat().st_mtime < 60


def test_what_another_has_taken_over_is_not_given_back_by_the_first(tmp_path: Path) -> None:
    one = locks(tmp_path)[0]
    one.take(LOT)
    path = held_by(tmp_path, ELSEWHERE)
    one.give_back()
    assert path.exists()


def test_all_can_be_removed_by_who_is_alone(tmp_path: Path) -> None:
    path = held_by(tmp_path, ELSEWHERE)
    (path.parent / "t00aa-1.json").touch()
    unit_locks.remove_all(tmp_path)
    assert [one.name for one in path.parent.iterdir()] == ["t00aa-1.json"]


def test_whose_slurm_job_is_over_is_followed_at_once_but_not_another_user_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SLURM may hide other users' jobs: that one is not listed says nothing."""
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text("#!/bin/sh\nprintf '7\\n8\\n'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CLUSTER_NAME", "c")
    for job, user, answer in (
        ("c/7.0", os.getuid(), "theirs"),
        ("c/6.0", os.getuid() + 1, "theirs"),
        ("c/6.0", None, "theirs"),
        ("c/6.0", os.getuid(), "mine"),
    ):
        monkeypatch.setattr(slurm_job, "_living", slurm_job.LivingJobs())
        held_by(tmp_path, replace(ELSEWHERE, job=job, user=user))
        assert locks(tmp_path)[0].take(LOT) == answer, (job, user)
