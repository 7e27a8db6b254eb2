"""Claims: a unit of a round is measured by exactly one, whoever dies, is frozen, or asks at the same moment."""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gpubench.basics.errors import UnusableError
from gpubench.store.holder import HolderProcess
from gpubench.store.work_claims import (
    DEAD_S,
    HEARTBEAT_S,
    MOST_CLAIMS,
    SILENT_S,
    WorkClaims,
    WorkItem,
    list_claims,
    read_claim,
)

ITEM = WorkItem("t0123456789a", 1, "NVIDIA H200, 143771 MiB")
GONE = replace(HolderProcess.make_current(), pid=2**22 + 1, began="1")
ELSEWHERE = replace(HolderProcess.make_current(), boot="another boot", host="n2", job="")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def open_claims(
    folder: Path, owner: HolderProcess | None = None, clock: Callable[[], float] = time.monotonic
) -> WorkClaims:
    return WorkClaims(folder, say=lambda _: None, owner=owner, clock=clock)


def number_of(claims: WorkClaims) -> int | None:
    """The number of the claim that is held; None where none is."""
    return int(claims.name.rpartition(".")[2]) if claims.name else None


def give_back(claims: WorkClaims, outcome: str) -> None:
    if outcome == "stored":
        claims.note_attempt_stored()
    claims.give_back()


def test_a_claim_is_a_file_beside_the_records_with_the_name_of_its_owner(tmp_path: Path) -> None:
    mine = open_claims(tmp_path)
    assert (mine.claim_item(ITEM), number_of(mine)) == ("mine", 1)
    (path,) = (tmp_path / "records" / "01").iterdir()
    assert path == ITEM.make_claim_path(tmp_path, 1)
    assert read_claim(path).owner == HolderProcess.make_current()
    assert mine.claim_item(ITEM) == "mine"
    assert open_claims(tmp_path).claim_item(ITEM) == "theirs"
    assert open_claims(tmp_path).claim_item(replace(ITEM, round=2)) == "mine"
    assert open_claims(tmp_path).claim_item(replace(ITEM, machine="another")) == "mine"


def test_what_was_stored_is_done_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    first, second, third = (open_claims(tmp_path) for _ in range(3))
    first.claim_item(ITEM)
    give_back(first, "stored")
    assert number_of(first) is None
    assert second.claim_item(ITEM) == "done"
    assert (second.claim_item(ITEM, lambda: False), number_of(second)) == ("mine", 2)
    assert third.claim_item(ITEM) == third.claim_item(ITEM, lambda: False) == "theirs"
    give_back(second, "stored")
    assert third.claim_item(ITEM) == "done"
    assert (third.claim_item(ITEM, lambda: False), number_of(third)) == ("mine", 3)


def test_what_was_given_back_with_nothing_stored_is_the_next_one_s(tmp_path: Path) -> None:
    first, second = open_claims(tmp_path), open_claims(tmp_path)
    first.claim_item(ITEM)
    first.claim_item(replace(ITEM, round=2))  # gives the one before back
    assert (second.claim_item(ITEM), number_of(second)) == ("mine", 2)


@pytest.mark.parametrize("outcome", ["stored", "nothing"])
def test_no_claim_is_made_below_another(outcome: str, tmp_path: Path) -> None:
    """As in a folder that was copied in part."""
    first = open_claims(tmp_path)
    for _ in range(5):
        first.claim_item(replace(ITEM, round=2), lambda: False)
        first.claim_item(ITEM, lambda: False)
    assert number_of(first) == 5
    for number in (1, 2, 3, 4):
        ITEM.make_claim_path(tmp_path, number).unlink()
    assert open_claims(tmp_path).claim_item(ITEM) == "theirs"
    give_back(first, outcome)
    second = open_claims(tmp_path)
    expected = ("done", None) if outcome == "stored" else ("mine", 6)
    assert (second.claim_item(ITEM), number_of(second)) == expected


def test_a_folder_that_was_renamed_is_not_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    mine = open_claims(folder)
    mine.claim_item(ITEM)
    folder.rename(tmp_path / "moved")
    with pytest.raises(UnusableError, match=f"^{folder} is not there any more"):
        mine.claim_item(replace(ITEM, round=2))
    assert not folder.exists()


def test_a_claim_that_could_not_be_written_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(UnusableError, match=r"can't be written"):
            open_claims(tmp_path).claim_item(ITEM)
    assert open_claims(tmp_path).claim_item(ITEM) == "mine"


def test_a_dead_owner_is_taken_over_by_the_next_number_and_its_claim_stays(tmp_path: Path) -> None:
    open_claims(tmp_path, GONE).claim_item(ITEM)
    lines: list[str] = []
    heir = WorkClaims(tmp_path, say=lines.append)
    before = ITEM.make_claim_path(tmp_path, 1).read_bytes()
    assert (heir.claim_item(ITEM), number_of(heir)) == ("mine", 2)
    assert ITEM.make_claim_path(tmp_path, 1).read_bytes() == before
    assert [str(GONE) in line for line in lines] == [True]
    assert open_claims(tmp_path).claim_item(ITEM) == "theirs"


@pytest.mark.parametrize(
    "owned_by", [ELSEWHERE, HolderProcess.make_current()], ids=["elsewhere", "frozen here"]
)
def test_an_owner_is_dead_when_its_heartbeat_stands_still_by_the_watcher_s_own_clock(
    owned_by: HolderProcess, tmp_path: Path
) -> None:
    owner = open_claims(tmp_path, owned_by)
    owner.claim_item(ITEM)
    path = ITEM.make_claim_path(tmp_path, 1)
    os.utime(path, (1, 1))  # by its own clock it was written half a century ago
    clock = Clock()
    watcher = open_claims(tmp_path, clock=clock)
    assert watcher.claim_item(ITEM) == "theirs"
    clock.now = SILENT_S
    assert watcher.claim_item(ITEM) == "theirs"
    clock.now = SILENT_S + 1
    assert watcher.claim_item(ITEM) == "silent"
    os.utime(path, (2, 2))
    assert watcher.claim_item(ITEM) == "theirs"
    clock.now += DEAD_S - 1
    assert watcher.claim_item(ITEM) == "silent"
    clock.now += 1
    assert (watcher.claim_item(ITEM), number_of(watcher)) == ("mine", 2)
    give_back(owner, "stored")  # frozen, and woken
    assert open_claims(tmp_path).claim_item(ITEM) == "theirs"


def test_a_heartbeat_moves_the_file_s_time_every_half_minute(tmp_path: Path) -> None:
    clock = Clock()
    mine = open_claims(tmp_path, clock=clock)
    mine.claim_item(ITEM)
    path = ITEM.make_claim_path(tmp_path, 1)
    os.utime(path, (1, 1))
    clock.now = HEARTBEAT_S
    mine.touch_heartbeat()
    assert path.stat().st_mtime == 1
    clock.now = HEARTBEAT_S + 1
    mine.touch_heartbeat()
    assert path.stat().st_mtime > 1


GOOD = asdict(HolderProcess.make_current())


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 60_000,
        *(json.dumps(GOOD | change).encode() for change in (
            {"pid": 10**30}, {"pid": -1}, {"pid": "7"}, {"host": 7}, {"began": [1]}, {"job": {}},
        )),
    ],
)  # fmt: skip
def test_a_damaged_claim_is_one_of_whose_owner_nothing_is_known(content: bytes, tmp_path: Path) -> None:
    path = ITEM.make_claim_path(tmp_path, 1)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    clock = Clock()
    watcher = open_claims(tmp_path, clock=clock)
    assert watcher.claim_item(ITEM) == "theirs"
    assert str(read_claim(path)) == "a sweep that left no name"
    clock.now = DEAD_S
    assert (watcher.claim_item(ITEM), number_of(watcher)) == ("mine", 2)


def test_a_link_or_a_folder_in_its_place_is_one_line(tmp_path: Path) -> None:
    path = ITEM.make_claim_path(tmp_path, 1)
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(UnusableError, match=f"^{path} can't be read"):
        open_claims(tmp_path).claim_item(ITEM)
    assert not (tmp_path / "outside").exists()


def test_claims_without_end_are_refused(tmp_path: Path) -> None:
    open_claims(tmp_path, GONE).claim_item(ITEM)
    ITEM.make_claim_path(tmp_path, 1).rename(ITEM.make_claim_path(tmp_path, MOST_CLAIMS))
    with pytest.raises(UnusableError, match="claims of one unit"):
        open_claims(tmp_path).claim_item(ITEM)


def test_the_journal_has_every_claim_in_order_and_nothing_else(tmp_path: Path) -> None:
    open_claims(tmp_path, GONE).claim_item(ITEM)
    heir = open_claims(tmp_path)
    heir.claim_item(ITEM)
    heir.claim_item(replace(ITEM, round=2))
    for name in (
        "t0123456789a-1.json",
        "t0123456789a-r1-m0.1",
        "t0123456789a-r01-m00000000.1",
        "t0123456789a-r1-m00000000.١",
    ):
        (tmp_path / "records" / "01" / name).write_text("{}")
    ITEM.make_claim_path(tmp_path, 9).symlink_to(tmp_path / "nowhere")
    (tmp_path / "records" / "zz").mkdir()
    (tmp_path / "records" / "zz" / ITEM.make_claim_path(tmp_path, 1).name).write_text("{}")
    entries = [
        (entry.round, entry.number, entry.claim.owner, entry.claim.outcome) for entry in list_claims(tmp_path)
    ]
    assert entries == [
        (1, 1, GONE, None),
        (1, 2, HolderProcess.make_current(), "nothing"),
        (2, 1, HolderProcess.make_current(), None),
    ]


# ---- frozen owners ----


def fork(work: Callable[[], None]) -> int:
    if (pid := os.fork()) == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def test_who_was_frozen_and_woken_holds_the_lower_claim(tmp_path: Path) -> None:
    """What it stores names claim 1, and the record of claim 2 counts."""
    reads, writes = os.pipe()

    def work() -> None:
        claims = WorkClaims(
            tmp_path, say=lambda _: None, owner=replace(HolderProcess.make_current(), boot="another boot")
        )
        claims.claim_item(ITEM)
        os.write(writes, b"1")
        time.sleep(0.2)
        claims.touch_heartbeat()
        os.write(writes, str(number_of(claims)).encode())

    pid = fork(work)
    assert os.read(reads, 1) == b"1"
    os.kill(pid, signal.SIGSTOP)
    clock = Clock()
    watcher = open_claims(tmp_path, clock=clock)
    assert watcher.claim_item(ITEM) == "theirs"
    clock.now = DEAD_S
    assert (watcher.claim_item(ITEM), number_of(watcher)) == ("mine", 2)
    os.kill(pid, signal.SIGCONT)
    assert os.read(reads, 1) == b"1"
    os.waitpid(pid, 0)
    assert watcher.claim_item(ITEM) == "mine"
