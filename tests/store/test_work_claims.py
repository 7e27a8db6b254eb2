"""Claims: a unit of a round is measured by exactly one, whoever dies, is frozen, or asks at the same moment.

And where listings are old, numbers run out or hearts beat; and what can be known of who holds one.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from gpubench.basics import slurm_job
from gpubench.basics.errors import UnusableError
from gpubench.store import holder as holders
from gpubench.store.holder import (
    MOST_PROCESSES,
    HolderProcess,
    compute_process_start_s,
    parse_holder,
    read_process_start_ticks,
)
from gpubench.store.work_claims import (
    DEAD_S,
    HEARTBEAT_S,
    LARGEST,
    MOST_CLAIMS,
    SILENT_S,
    WorkClaims,
    Worker,
    WorkItem,
    list_claims,
    list_workers,
    read_claim,
)

ITEM = WorkItem("t0123456789a", 1, "NVIDIA H200, 143771 MiB")
NEXT = replace(ITEM, round=2)
GONE = replace(HolderProcess.make_current(), pid=2**22 + 1, began="1")
ELSEWHERE = replace(HolderProcess.make_current(), boot="another boot", host="n2", job="")


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def number_of(claims: WorkClaims) -> int | None:
    return int(claims.name.rpartition(".")[2]) if claims.name else None


def make_claim(
    folder: Path, number: int, owner: HolderProcess, outcome: str = "", item: WorkItem = ITEM
) -> Path:
    """A claim as its owner has left it."""
    path = item.make_claim_path(folder, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(owner)) + "\n" + (f"{outcome}\n" if outcome else ""))
    return path


@pytest.fixture
def stale_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first listing is one of before any claim was made, as an old cache of a network's client shows it."""
    listings: list[Callable[[Path], list[str]]] = [lambda _: []]
    list_now = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: (listings.pop() if listings else list_now)(path))


def open_claims(
    folder: Path, owner: HolderProcess | None = None, clock: Callable[[], float] = time.monotonic
) -> WorkClaims:
    return WorkClaims(folder, say=lambda _: None, owner=owner, clock=clock)


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
    assert open_claims(tmp_path).claim_item(NEXT) == "mine"
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
    first.claim_item(NEXT)  # gives the one before back
    assert (second.claim_item(ITEM), number_of(second)) == ("mine", 2)


@pytest.mark.parametrize("outcome", ["stored", "nothing"])
def test_no_claim_is_made_below_another(outcome: str, tmp_path: Path) -> None:
    """As in a folder that was copied in part."""
    first = open_claims(tmp_path)
    for _ in range(5):
        first.claim_item(NEXT, lambda: False)
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
        mine.claim_item(NEXT)
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
    assert DEAD_S > SILENT_S > 2 * HEARTBEAT_S
    give_back(owner, "stored")  # frozen, and woken
    assert open_claims(tmp_path).claim_item(ITEM) == "theirs"


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


def test_the_journal_has_every_claim_in_order_and_nothing_else(tmp_path: Path) -> None:
    open_claims(tmp_path, GONE).claim_item(ITEM)
    heir = open_claims(tmp_path)
    heir.claim_item(ITEM)
    heir.claim_item(NEXT)
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


# ---- old listings ----


@pytest.mark.usefixtures("stale_listing")
def test_a_claim_that_was_made_below_another_is_given_back(tmp_path: Path) -> None:
    make_claim(tmp_path, 5, ELSEWHERE)
    claims = WorkClaims(tmp_path)
    assert (claims.claim_item(ITEM), claims.name) == ("theirs", "")
    assert read_claim(ITEM.make_claim_path(tmp_path, 1)).outcome == "nothing"
    assert not ITEM.make_claim_path(tmp_path, 6).exists()


@pytest.mark.usefixtures("stale_listing")
def test_only_what_the_highest_claim_has_stored_is_done(tmp_path: Path) -> None:
    make_claim(tmp_path, 1, ELSEWHERE, "stored")
    make_claim(tmp_path, 2, ELSEWHERE)
    assert WorkClaims(tmp_path).claim_item(ITEM) == "theirs"


@pytest.mark.usefixtures("stale_listing")
def test_of_several_dead_owners_the_last_is_told(tmp_path: Path) -> None:
    make_claim(tmp_path, 1, replace(GONE, host="first"))
    make_claim(tmp_path, 2, replace(GONE, host="second"))
    lines: list[str] = []
    claims = WorkClaims(tmp_path, say=lines.append)
    assert (claims.claim_item(ITEM), number_of(claims)) == ("mine", 3)
    assert ["second" in line for line in lines] == [True]


# ---- numbers ----


def test_the_last_number_can_be_claimed(tmp_path: Path) -> None:
    make_claim(tmp_path, MOST_CLAIMS - 1, GONE)
    claims = WorkClaims(tmp_path)
    assert (claims.claim_item(ITEM), number_of(claims)) == ("mine", MOST_CLAIMS)
    make_claim(tmp_path, MOST_CLAIMS, GONE, item=NEXT)
    with pytest.raises(UnusableError):
        claims.claim_item(NEXT)


def test_claims_of_rounds_machines_and_other_names_are_counted_apart(tmp_path: Path) -> None:
    for number, item in ((7, NEXT), (8, replace(ITEM, machine="another")), (9, replace(ITEM, unit_id="t01"))):
        make_claim(tmp_path, number, GONE, item=item)
    for ending in ("0", "07", "10000", "5x", "٣"):
        (tmp_path / "records" / "01" / f"{ITEM.name}.{ending}").touch()
    claims = WorkClaims(tmp_path)
    assert (claims.claim_item(ITEM), number_of(claims)) == ("mine", 1)
    assert claims.name == f"{ITEM.name}.1"


def test_a_folder_that_can_not_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "records").touch()
    with pytest.raises(UnusableError, match=f"^{tmp_path} can't be read"):
        WorkClaims(tmp_path).claim_item(ITEM)


def test_a_claim_is_read_up_to_its_largest_size(tmp_path: Path) -> None:
    path = make_claim(tmp_path, 1, GONE)
    path.write_bytes(path.read_bytes() + b"stored".rjust(LARGEST - path.stat().st_size, b" "))
    assert read_claim(path).owner == GONE
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(UnusableError):
        read_claim(path)


def test_a_claim_that_can_not_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    claims = WorkClaims(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(UnusableError, match=f"^{ITEM.make_claim_path(tmp_path, 1)} can't be written"):
            claims.claim_item(ITEM)
    assert (claims.name, claims.claim_item(ITEM)) == ("", "mine")


# ---- giving back ----


def test_an_outcome_belongs_to_the_claim_that_was_held(tmp_path: Path) -> None:
    claims = WorkClaims(tmp_path)
    claims.claim_item(ITEM)
    claims.note_attempt_stored()
    claims.claim_item(NEXT)
    assert read_claim(ITEM.make_claim_path(tmp_path, 1)).outcome == "stored"
    claims.give_back()
    claims.give_back()
    assert read_claim(NEXT.make_claim_path(tmp_path, 1)).outcome == "nothing"
    assert NEXT.make_claim_path(tmp_path, 1).read_bytes().count(b"\n") == 2
    assert claims.name == ""


def test_a_claim_that_is_gone_is_given_back_and_shown_alive_without_an_error(tmp_path: Path) -> None:
    clock = Clock()
    claims = WorkClaims(tmp_path, clock=clock)
    claims.claim_item(ITEM)
    ITEM.make_claim_path(tmp_path, 1).unlink()
    clock.now = HEARTBEAT_S + 1
    claims.touch_heartbeat()
    claims.give_back()
    assert not ITEM.make_claim_path(tmp_path, 1).exists()


# ---- heartbeats ----


def test_a_heart_beats_half_a_minute_after_the_claim_and_after_each_beat(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    claims = WorkClaims(tmp_path, clock=clock)
    claims.touch_heartbeat()
    claims.claim_item(ITEM)
    path = ITEM.make_claim_path(tmp_path, 1)
    beats = []
    for seconds in (30.0, 31.0, 61.0, 62.0):
        os.utime(path, (1, 1))
        clock.now = 1000.0 + seconds
        claims.touch_heartbeat()
        beats.append(path.stat().st_mtime > 1)
    assert beats == [False, True, False, True]


# ---- who is at work ----


def test_who_holds_an_item(tmp_path: Path) -> None:
    clock = Clock()
    claims = WorkClaims(tmp_path, clock=clock)
    assert not claims.is_held_by_other(ITEM)
    claims.claim_item(ITEM)
    assert not claims.is_held_by_other(ITEM)
    assert WorkClaims(tmp_path).is_held_by_other(ITEM)
    make_claim(tmp_path, 1, ELSEWHERE, item=NEXT)
    assert claims.is_held_by_other(NEXT)
    clock.now = DEAD_S - 1
    assert claims.is_held_by_other(NEXT)
    clock.now = DEAD_S
    assert not claims.is_held_by_other(NEXT)
    make_claim(tmp_path, 2, GONE, item=NEXT)
    assert not claims.is_held_by_other(NEXT)
    for outcome in ("stored", "nothing"):
        make_claim(tmp_path, 3, ELSEWHERE, outcome, item=NEXT)
        assert not claims.is_held_by_other(NEXT)


@pytest.mark.parametrize(
    ("fate", "quiet_s", "is_alive"),
    [
        ("alive", 0, True),
        ("alive", 10 * DEAD_S, True),
        ("unknown", DEAD_S - 1, True),
        ("unknown", DEAD_S, False),
        ("dead", 0, False),
    ],
)
def test_who_is_taken_for_alive(fate: holders.Fate, quiet_s: float, is_alive: bool) -> None:
    worker = Worker(who="", unit_id="", fate=fate, quiet_s=quiet_s, began_s=None)
    assert worker.is_alive is is_alive


def test_workers_are_the_others_whose_last_claim_is_open(tmp_path: Path) -> None:
    parent = replace(
        HolderProcess.make_current(), pid=os.getppid(), began=read_process_start_ticks(os.getppid())
    )
    make_claim(tmp_path, 1, parent)
    make_claim(tmp_path, 1, ELSEWHERE, item=NEXT)
    make_claim(tmp_path, 2, ELSEWHERE, "stored", item=NEXT)
    far = make_claim(tmp_path, 1, ELSEWHERE, item=replace(ITEM, round=3))
    make_claim(tmp_path, 1, HolderProcess.make_current(), item=replace(ITEM, round=4))
    make_claim(tmp_path, 1, GONE, item=replace(ITEM, machine="another", round=5))
    os.utime(far, ns=(0, time.time_ns() - 100 * 10**9))
    workers = {worker.fate: worker for worker in list_workers(tmp_path)}
    assert len(list_workers(tmp_path)) == 3
    assert {fate: worker.who for fate, worker in workers.items()} == {
        "alive": str(parent),
        "unknown": f"process {ELSEWHERE.pid} on n2",
        "dead": str(GONE),
    }
    assert workers["unknown"].quiet_s == pytest.approx(100, abs=60)
    assert workers["alive"].began_s is not None
    assert workers["dead"].began_s is workers["unknown"].began_s is None
    assert {worker.unit_id for worker in workers.values()} == {ITEM.unit_id}


def test_a_beat_of_the_future_is_no_silence_below_nothing(tmp_path: Path) -> None:
    path = make_claim(tmp_path, 1, ELSEWHERE)
    os.utime(path, (time.time() + 1000, time.time() + 1000))
    (worker,) = list_workers(tmp_path)
    assert worker.quiet_s == 0.0


def test_a_journal_s_entry_has_the_name_of_its_file(tmp_path: Path) -> None:
    path = make_claim(tmp_path, 12, GONE, "nothing", item=NEXT)
    (entry,) = list_claims(tmp_path)
    assert (entry.name, entry.unit_id, entry.round, entry.number) == (path.name, NEXT.unit_id, 2, 12)


# ---- the process behind a claim ----


def test_of_this_boot_and_namespace_all_is_known() -> None:
    mine = HolderProcess.make_current()
    assert mine.fate == "alive"
    assert (mine.pid, mine.began) == (os.getpid(), read_process_start_ticks(os.getpid()))
    assert replace(mine, began="1").fate == "dead"
    assert GONE.fate == "dead"
    assert replace(GONE, pid_namespace="another").fate == "unknown"
    assert ELSEWHERE.fate == "unknown"


def test_a_process_that_proc_hides_is_there_where_its_kernel_denies_a_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deny(pid: int, sign: int) -> None:
        raise PermissionError if (pid, sign) == (GONE.pid, 0) else ProcessLookupError

    monkeypatch.setattr(os, "kill", deny)
    assert GONE.fate == "unknown"
    assert replace(GONE, pid=GONE.pid + 1).fate == "dead"


def test_where_no_boot_is_known_nothing_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "read_boot_id", lambda: "")
    assert replace(GONE, boot="", job="").fate == "unknown"


@pytest.mark.parametrize(("is_earlier", "fate"), [(True, "dead"), (False, "unknown")])
def test_an_earlier_run_of_this_job_is_over(
    is_earlier: bool, fate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_job, "is_earlier_slurm_run", lambda _: is_earlier)
    assert ELSEWHERE.fate == fate


def test_a_zombie_has_ended_and_a_process_knows_when_it_began() -> None:
    before = time.time()
    if (pid := os.fork()) == 0:
        os._exit(0)
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert read_process_start_ticks(pid) is None
    os.waitpid(pid, 0)
    assert read_process_start_ticks(pid) is None
    seconds = compute_process_start_s(replace(HolderProcess.make_current(), pid=pid, began=ticks))
    assert seconds == pytest.approx(before, abs=5)
    assert (
        compute_process_start_s(replace(HolderProcess.make_current(), began=None))
        is compute_process_start_s(replace(HolderProcess.make_current(), began="x"))
        is None
    )


@pytest.mark.parametrize(
    ("change", "is_possible"),
    [
        ({"pid": 1}, True),
        ({"pid": MOST_PROCESSES - 1}, True),
        ({"pid": MOST_PROCESSES}, False),
        ({"pid": 0}, False),
    ],
)
def test_ids_that_a_kernel_gives(change: dict[str, int | None], is_possible: bool) -> None:
    holder = replace(HolderProcess.make_current(), **change)  # type: ignore[arg-type]
    assert parse_holder(json.dumps(asdict(holder))) == (holder if is_possible else None)
    assert MOST_PROCESSES == 2**31
