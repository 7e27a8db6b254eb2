"""Which sweep measures a unit in a round: files that are made once, and that nobody else changes, renames or removes.

A claim is the file `records/xx/UNIT-rROUND-MACHINE.K`, beside the records that it is for. It is made with O_EXCL, which
a file system decides for all hosts at once; a network's client reads the folder anew in which it has just made a file.
Its first line names its owner, its time of change is the owner's heartbeat, and a second line says what came of it. A
claim whose owner has died, has been silent too long, or has given it back with nothing stored, is taken over by making
K + 1, and so is one that is to be tried again. Claims are therefore a journal: of a unit and a round the record with
the highest claim counts, whoever stores one later for a lower claim, and no check has to be in time.

Whether a heartbeat moves is judged by the watcher's own clock, since it first saw it as it is: clocks of two hosts are
never compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import msgspec

from gpubench.basics.errors import UnusableError
from gpubench.basics.regular_file import read_regular_file
from gpubench.store.holder import Fate, HolderProcess, compute_process_start_s, parse_holder

HEARTBEAT_S = 30.0
"""How often an owner shows that it is alive."""
SILENT_S = 2 * HEARTBEAT_S + 5
"""An owner of whom nothing else is known, and whose heartbeat stood still for so long, may have died."""
DEAD_S = 300.0
"""One whose heartbeat stood still for so long has."""
MOST_CLAIMS = 1_000
"""Claims of one unit and round: more are no work of gpubench."""
LARGEST = 1 << 16
"""Bytes of a claim."""
Outcome = Literal["stored", "nothing"]
"""What came of a claim: an attempt that is stored, or nothing that anybody could read."""

Answer = Literal["mine", "theirs", "silent", "done"]
"""Whose a work item is. `silent`: somebody's who has not been heard of for a while, and may have died. `done`: its last
owner has stored an attempt at it."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """What is claimed as one: a unit, or units that stay on one machine, in one round, for one kind of machine."""

    unit_id: str
    """Of the first of them."""
    round: int
    machine: str
    """Kind of machine, and what it gives of what trials leave to it (CPUs, loaders): another one measures the plan for
    itself."""

    @property
    def name(self) -> str:
        """How the files of its claims are called, without their numbers."""
        return f"{self.unit_id}-r{self.round}-m{hashlib.sha256(self.machine.encode()).hexdigest()[:8]}"

    def make_claim_path(self, folder: Path, number: int) -> Path:
        """The file of a claim in a results folder."""
        return folder / "records" / self.unit_id[1:3] / f"{self.name}.{number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkClaim:
    """A claim as somebody found it."""

    owner: HolderProcess | None
    """None where the file names none: it is just being made, of another version, or damaged."""
    outcome: Outcome | None
    """None while its owner is at it, or where it died over it."""
    beat_ns: int

    @property
    def fate(self) -> Fate:
        return self.owner.fate if self.owner else "unknown"

    def __str__(self) -> str:
        return str(self.owner) if self.owner else "a sweep that left no name"


class WorkClaims:
    """The claims of one sweep in one folder: one at a time. `say`: is given a line on each that is taken over."""

    def __init__(
        self,
        folder: Path,
        *,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        owner: HolderProcess | None = None,
    ) -> None:
        self._folder = folder
        self.say = say
        self._clock = clock
        self._owner = owner or HolderProcess.make_current()
        self._held: tuple[WorkItem, int] | None = None
        self._outcome: Outcome = "nothing"
        self._last_beat = 0.0
        self._watched: dict[Path, tuple[int, float]] = {}
        """Of claims of owners that are not known to be dead: their heartbeat, and since when it stands still here."""

    @property
    def name(self) -> str:
        """The name of the claim that is held, by which its records name it; empty where none is."""
        return f"{self._held[0].name}.{self._held[1]}" if self._held else ""

    def claim_item(self, item: WorkItem, is_stored: Callable[[], bool] = lambda: True) -> Answer:
        """Claims a work item, and gives back what was claimed before.

        `is_stored`: whether what its last owner stored is there and counts; else it is to be tried again. Raises
        UnusableError where the folder can't be written or read.
        """
        if self._held and self._held[0] == item:
            return "mine"
        self.give_back()
        number = self._find_highest_number(item)
        while number <= MOST_CLAIMS:
            path = item.make_claim_path(self._folder, number)
            if self._create_claim(path):
                self._held, self._outcome, self._last_beat = (item, number), "nothing", self._clock()
                if (highest := self._find_highest_number(item)) == number:
                    return "mine"
                self.give_back()  # of a folder that was copied in part, or seen through an old cache
                number = highest
                continue
            claim = read_claim(path)
            if claim.outcome == "stored" and number == self._find_highest_number(item) and is_stored():
                return "done"
            if claim.outcome is None:
                if (state := self._find_owner_state(path, claim)) != "dead":
                    return state
                if number == self._find_highest_number(item):
                    self.say(f"{claim} has died while it measured; this sweep measures it in its place")
            number += 1
        raise UnusableError(
            f"{item.make_claim_path(self._folder, 1)}: more than {MOST_CLAIMS:,} claims of one unit and round"
        )

    def note_attempt_stored(self) -> None:
        """Notes that an attempt was stored for the claim that is held."""
        self._outcome = "stored"

    def give_back(self) -> None:
        """Says what came of the claim that is held, if one is."""
        if self._held is None:
            return
        path, self._held = self._held[0].make_claim_path(self._folder, self._held[1]), None
        with contextlib.suppress(OSError):  # then it is a dead owner's, which others find
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.write(descriptor, f"{self._outcome}\n".encode())
            finally:
                os.close(descriptor)

    def touch_heartbeat(self) -> None:
        """Shows that this sweep is still at it. Call it often; it acts every half minute."""
        if self._held is None or self._clock() - self._last_beat <= HEARTBEAT_S:
            return
        self._last_beat = self._clock()
        with contextlib.suppress(OSError):  # a file system that stumbles is asked again with the next one
            os.utime(self._held[0].make_claim_path(self._folder, self._held[1]), follow_symlinks=False)

    def is_held_by_other(self, item: WorkItem) -> bool:
        """Whether somebody else has claimed it who may be at it."""
        if self._held and self._held[0] == item:
            return False
        path = item.make_claim_path(self._folder, self._find_highest_number(item))
        try:
            claim = read_claim(path)
        except UnusableError:  # there is none
            return False
        return claim.outcome is None and self._find_owner_state(path, claim) != "dead"

    def _find_highest_number(self, item: WorkItem) -> int:
        """The highest number of a claim at it; 1 where there is none."""
        start = f"{item.name}."
        try:
            names = os.listdir(item.make_claim_path(self._folder, 1).parent)  # noqa: PTH208 - names are asked for
        except FileNotFoundError:
            return 1
        except OSError as error:
            raise UnusableError(f"{self._folder} can't be read: {error.strerror}") from None
        ends = (name.removeprefix(start) for name in names if name.startswith(start))
        return max((int(end) for end in ends if _NUMBER.fullmatch(end)), default=1)

    def _create_claim(self, path: Path) -> bool:
        """Whether the claim could be made: False where there is one. The results folder itself is never made anew."""
        try:
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise UnusableError(
                f"{self._folder} is not there any more: it was removed or renamed while this sweep wrote into it"
            ) from None
        except OSError as error:
            raise UnusableError(f"{path} can't be written: {error.strerror}") from None
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(asdict(self._owner)) + b"\n")
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()  # made just now by this call, and no record names it
            raise UnusableError(f"{path} can't be written: {error.strerror}") from None
        return True

    def _find_owner_state(self, path: Path, claim: WorkClaim) -> Literal["theirs", "silent", "dead"]:
        """What is known of the owner of a claim that was not given back."""
        if claim.fate == "dead":
            return "dead"
        now = self._clock()
        beat_ns, since = self._watched.get(path, (None, now))
        if beat_ns != claim.beat_ns:
            self._watched[path], since = (claim.beat_ns, now), now
        silence_s = now - since
        # One that lives and shows nothing is frozen: what it stores once it is woken names a lower claim.
        return "dead" if silence_s >= DEAD_S else "silent" if silence_s > SILENT_S else "theirs"


def read_claim(path: Path) -> WorkClaim:
    """A claim that is there. Raises UnusableError where it can't be read."""
    try:
        text = read_regular_file(path, LARGEST)
        beat_ns = path.lstat().st_mtime_ns
    except OSError as error:
        raise UnusableError(f"{path} can't be read: {error.strerror}") from None
    first, _, rest = text.partition(b"\n")
    last = rest.rstrip(b"\n")
    outcome: Outcome | None = "stored" if last == b"stored" else "nothing" if last == b"nothing" else None
    return WorkClaim(owner=parse_holder(first), outcome=outcome, beat_ns=beat_ns)


_NAME = re.compile(r"(\w+)-r([1-9][0-9]{0,5})-m([0-9a-f]{8})\.([1-9][0-9]{0,3})", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """Who has claimed something in a folder and has not given it back."""

    who: str
    """`process 7 on host`."""
    unit_id: str
    fate: Fate
    quiet_s: float
    """Seconds since it was last heard of, by this host's clock."""
    began_s: float | None
    """When its process began, in seconds of the epoch; None where this host can't know."""

    @property
    def is_alive(self) -> bool:
        """Whether it is taken for alive: of another host's, if its heart has beaten of late."""
        return self.fate == "alive" or (self.fate == "unknown" and self.quiet_s < DEAD_S)


def list_workers(folder: Path) -> list[Worker]:
    """Who is at work in a folder, or has died over it, but for this process. Writes nothing."""
    last = {(entry.unit_id, entry.round, entry.machine): entry for entry in list_claims(folder)}
    me, workers = HolderProcess.make_current(), []
    for entry in last.values():
        claim, fate = entry.claim, entry.claim.fate
        if claim.outcome is None and claim.owner != me:
            workers.append(
                Worker(
                    who=str(claim),
                    unit_id=entry.unit_id,
                    fate=fate,
                    quiet_s=max(0.0, time.time() - claim.beat_ns / 1e9),
                    began_s=compute_process_start_s(claim.owner) if claim.owner and fate == "alive" else None,
                )
            )
    return workers


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimEntry:
    """A claim that was made in a folder, whatever came of it."""

    unit_id: str
    round: int
    machine: str
    """Digest of the kind of machine."""
    number: int
    claim: WorkClaim

    @property
    def name(self) -> str:
        """The name of its file, by which records name it."""
        return f"{self.unit_id}-r{self.round}-m{self.machine}.{self.number}"


def list_claims(folder: Path) -> Iterator[ClaimEntry]:
    """All claims of a results folder that can be read, by unit, round, machine and number. What has no claim's name or
    place is none."""
    entries = []
    for path in (folder / "records").glob("*/*-r*-*.*"):
        match = _NAME.fullmatch(path.name)
        if match is not None and path.parent.name == match[1][1:3]:
            entries.append((match[1], int(match[2]), match[3], int(match[4]), path))
    for unit_id, number_of_round, machine, number, path in sorted(entries):
        try:
            claim = read_claim(path)
        except UnusableError:
            continue
        yield ClaimEntry(unit_id=unit_id, round=number_of_round, machine=machine, number=number, claim=claim)
