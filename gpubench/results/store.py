"""The results folder: write once, read back, rebuild the CSVs. One class owns every path."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics import litter
from gpubench.basics.collector import collector_paused
from gpubench.basics.errors import UnusableError
from gpubench.basics.finite import finite
from gpubench.results.csv_text import csv_text
from gpubench.results.locks import unit_locks
from gpubench.results.locks.folder_lock import FolderLock
from gpubench.results.locks.lock_file import NO_LINKS, for_a_moment
from gpubench.results.locks.unit_locks import UnitLocks
from gpubench.results.stored_record import MOST_ATTEMPTS, DamagedError, KnownParts, NewerError, bytes_of, read
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.record import FINAL, GroupRecord, Record, ending, given
from gpubench.schema.row import Row

SAMPLE_DIGITS = 12
"""Significant digits of samples: running totals and times must stay fine enough to be cut again."""


def write_whole(path: Path, data: str | bytes) -> None:
    """Writes beside `path`, syncs and renames: a reader sees the old file or the new one, never half of one.

    Raises UnusableError where that can't be done, and leaves nothing behind.
    """
    _write(path, data, Path.replace)


def write_new(path: Path, data: str | bytes) -> None:
    """The same of a file that nobody may have written before. Raises UnusableError where somebody has."""

    def link(temporary: Path, path: Path) -> None:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            temporary.replace(path)
        temporary.unlink(missing_ok=True)

    _write(path, data, link)


def _write(path: Path, data: str | bytes, put: Callable[[Path, Path], object]) -> None:
    # Sweeps of several hosts may write the same table at once, and process ids are the same on two of them.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(3)}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        put(temporary, path)
    except (OSError, UnicodeEncodeError) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        why = (
            error.strerror
            if isinstance(error, OSError)
            else "it would hold the name of a file or folder that is no UTF-8; rename that one"
        )
        raise UnusableError(f"{path} can't be written: {why}") from None


Tell = Callable[[str], None]
"""Gets one line on what is wrong with a folder."""


def refuse(line: str) -> None:
    """Takes nothing damaged: raises UnusableError."""
    raise UnusableError(line)


class Results:
    """One results folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: FolderLock | None = None
        self._units: UnitLocks | None = None
        self._read: set[str] = set()
        """Record files that were read, or written, by this one, where it holds the folder together with others."""

    # ---- paths ----

    def part(self, kind: str, unit_id: str, attempt: int, ending: str) -> Path:
        """`records/xx/ID-ATTEMPT.json` and its like. xx: the two characters after the id's letter."""
        return self.folder / part_name(kind, unit_id, attempt, ending)

    def log(self, unit_id: str, attempt: int) -> Path:
        return self.folder / log_name(unit_id, attempt)

    # ---- opening ----

    def create(self) -> None:
        """Makes the folder. Raises UnusableError where it is a file or can't be written."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UnusableError(f"{self.folder} is a file; name a folder for the results with --out")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = self.folder / f".probe-{os.getpid()}"
            probe.touch()
            probe.unlink(missing_ok=True)
        except OSError as error:
            raise UnusableError(f"results folder {self.folder} can't be written: {error.strerror}") from None

    @contextlib.contextmanager
    def locked(
        self,
        *,
        wait: bool = False,
        say: Callable[[str], None] = lambda _: None,
        owner: str = "sweep",
        joins: bool = False,
    ) -> Iterator[None]:
        """Holds the folder for one sweep, or for another `owner`. Raises UnusableError while a sweep writes into it.

        `wait`: waits for that one's end instead. `say`: told what is waited for, and what was taken over. `joins`:
        holds it together with others that join; then `units` says which unit is whose.
        """
        lock = self.folder / ".lock"
        self._lock = FolderLock(lock, say=say, owner=owner, joins=joins)
        self._lock.take(wait=wait)
        self._units = UnitLocks(self.folder, say=say) if joins else None
        try:
            with contextlib.suppress(OSError):  # whether the folder can be used is found out below
                litter.remove_from_results(self.folder, lock, has_company=joins)
                if not joins:
                    unit_locks.remove_all(self.folder)
            yield
        finally:
            self.release()
            self._lock = self._units = None

    def release(self) -> None:
        """Gives the folder up."""
        if self._units is not None:
            self._units.give_back()
        if self._lock is not None:
            self._lock.release()

    def abandon(self) -> None:
        """The same for a process that is about to end at once: it asks after nobody."""
        if self._units is not None:
            self._units.give_back()
        if self._lock is not None:
            self._lock.abandon()

    def leave(self) -> bool:
        """Goes from the others that have joined; whether nobody else works here, so that this one makes the tables."""
        if self._units is not None:
            self._units.give_back()
        return self._lock is None or self._lock.leave()

    def others(self) -> list[str]:
        """Who else works here, as this sweep has joined them: `process 7 on host`."""
        return [] if self._lock is None else self._lock.others()

    @property
    def units(self) -> UnitLocks | None:
        """Which unit is whose, where several sweeps hold the folder together; None else."""
        return self._units

    def beat(self) -> None:
        """Shows that the sweep that holds the folder is alive. Call it often; it acts every half minute."""
        if self._lock is not None:
            self._lock.beat()
        if self._units is not None:
            self._units.beat()

    def check(self) -> None:
        """Raises UnusableError where the folder was removed, or taken over, since this sweep took it."""
        if self._lock is not None:
            self._lock.check()

    # ---- records ----

    def records(self, tell: Tell = refuse, without: Collection[str] = ()) -> list[Record]:
        """Every attempt, in the order in which they began.

        One that can't be used is left out, and `tell` gets one line for its file; by default that is a UnusableError.
        `without`: parts that nobody will ask for; a record may have them or not.
        """
        self._read.clear()
        return self._records(tell, without)

    def newer_records(self, tell: Tell = refuse, beside: Collection[str] | None = None) -> list[Record]:
        """The attempts that others, who have joined, have stored since the folder was last read.

        `beside`: ids of units; no more is read than what lies beside their records.
        """
        if beside is not None:
            self._freshen(beside)
        return self._records(tell, (), beside)

    def _freshen(self, beside: Collection[str]) -> None:
        """Changes the folders of these records: over a network what a host has changed itself is read anew."""
        for inside in {one[1:3] for one in beside}:
            path = self.folder / "records" / inside / f".fresh.{secrets.token_hex(3)}-{os.getpid()}.tmp"
            with contextlib.suppress(OSError):  # then what is known is as old as a cache
                path.touch()
                path.unlink(missing_ok=True)

    def _records(
        self, tell: Tell, without: Collection[str], beside: Collection[str] | None = None
    ) -> list[Record]:
        found, damaged, known = [], [], KnownParts(without=without)
        with collector_paused():
            for path in self._record_files(tell, beside):
                if path in self._read:
                    continue
                if self._units is not None:  # else nobody reads on, and of 100,000 the names take room
                    self._read.add(path)
                try:
                    found += read(path, known)
                except DamagedError as error:
                    damaged.append((path, error))
        for path, damage in damaged:  # only now it is known what there is in their place
            tell(_left_out(Path(path), damage, found))
        return sorted(found, key=in_order)

    def damaged(self, records: Iterable[Record]) -> set[Numbered]:
        """The attempts whose files lie there and are none of these records, which are all that can be read."""
        there = {name for path in self.record_files(lambda _: None) if (name := numbered(path))}
        return there - {(unit_of(record), record.attempt) for record in records}

    def record_files(self, tell: Tell) -> list[Path]:
        """All that is named like a record, links and folders too."""
        return list(map(Path, self._record_files(tell)))

    def _record_files(self, tell: Tell, beside: Collection[str] | None = None) -> list[str]:
        """The same as text: of 100,000, objects take as long to make as the files to open."""
        folder = os.fspath(self.folder / "records")
        return [
            f"{folder}/{inside}/{name}"
            for inside in (_listed(folder, tell) if beside is None else sorted({one[1:3] for one in beside}))
            for name in _listed(f"{folder}/{inside}", tell)
            if name.endswith(".json") and not name.startswith(".")
        ]

    def next_attempt(self, *ids: str) -> int:
        """The number of the next attempt at a unit, counting from 1. `ids`: its own, and those of its jobs."""
        taken = [0]
        for kind in (
            "records",
            "logs",
            "samples",
        ):  # whatever lies there under a number, damaged or not, keeps it
            for one in ids:
                for path in (self.folder / kind / one[1:3]).glob(f"{one}-*"):
                    number = path.stem.rpartition("-")[2]
                    # A larger one is no attempt's: nobody could read a record with the number after it.
                    if number.isdecimal() and int(number) < MOST_ATTEMPTS:
                        taken.append(int(number))
        return max(taken) + 1

    def save(
        self, records: Sequence[Record], samples: Sequence[Iterable[Sequence[Any]]], header: Sequence[str]
    ) -> None:
        """Stores one attempt at a unit: first the samples of each of its jobs, then the file that makes it count."""
        first = records[0]
        unit_path = self.part("records", first.group_id or first.trial_id, first.attempt, "json")
        if unit_path.exists() or unit_path.is_symlink():
            raise UnusableError(f"{unit_path} exists already: two sweeps write into {self.folder}")
        for record, rows in zip(records, samples, strict=True):
            path = self.part("samples", record.trial_id, record.attempt, "csv")
            write_whole(path, csv_text(header, rows, SAMPLE_DIGITS))
        unit: Record | GroupRecord = first
        if first.group_id is not None:
            unit = GroupRecord(group_id=first.group_id, attempt=first.attempt, jobs=list(records))
        stored = finite(unit.model_dump())
        write_new(unit_path, json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
        if self._units is not None:
            self._read.add(os.fspath(unit_path))
        self.check()  # after the record: what has just been measured is kept even where the rest is gone

    # ---- plans ----

    def plan(self, name: str, plan_id: str) -> Path:
        return self.folder / "plans" / f"{name}-{plan_id}.toml"

    @contextlib.contextmanager
    def plans_held(self) -> Iterator[None]:
        """For who reads plans and stores one by them: others that have joined do so at another moment."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with for_a_moment(self.folder / ".plans.lock"):
            yield

    def save_plan(self, name: str, plan_id: str, toml: str) -> None:
        """Keeps a plan as resolved, in place of the same plan as it was stored before."""
        write_whole(self.plan(name, plan_id), toml)

    def plans(self) -> list[Path]:
        """Stored plans, by name. When and in which order they were stored stands in them (`plans.py`)."""
        return sorted((self.folder / "plans").glob("*.toml"))

    def last_start(self) -> str:
        """When the last attempt of any trial began, in local time; empty where there is none. No record is parsed."""
        found = (
            began.decode(errors="replace")
            for path in self.record_files(tell=lambda _: None)
            for began in _STARTED_AT.findall(_bytes(path))
        )
        return max(found, default="")

    # ---- tables ----

    def write_table(self, name: str, text: str) -> None:
        """Writes one of the folder's tables."""
        write_whole(self.folder / name, text)


def part_name(kind: str, unit_id: str, attempt: int, ending: str) -> str:
    """Where one lies in a results folder."""
    return f"{kind}/{unit_id[1:3]}/{unit_id}-{attempt}.{ending}"


def log_name(unit_id: str, attempt: int) -> str:
    """Where a log lies in a results folder."""
    return part_name("logs", unit_id, attempt, "log")


Numbered = tuple[str, int]
"""The id of a trial, a job or a group, and the number of an attempt at it."""


def numbered(path: Path) -> Numbered | None:
    """Whose file this is, by its name: `ID-NUMBER.json`; None where no attempt has such a name."""
    own, dash, number = path.stem.rpartition("-")
    if not dash or path.name.startswith(".") or not number.isdecimal():
        return None
    return (own, int(number)) if 0 < int(number) <= MOST_ATTEMPTS else None


def unit_of(record: Record) -> str:
    """The id of what was stored as one: the trial, or the group that it was a job of."""
    return record.group_id or record.trial_id


def _left_out(path: Path, damage: DamagedError, whole: Iterable[Record]) -> str:
    """One line on a record that can't be used: why, what counts in its place, what to do."""
    unit_id, number = numbered(path) or ("", 0)
    what = "group" if unit_id.startswith("g") else "trial"
    statuses: dict[int, list[str]] = {}
    further: set[int] = set()
    for record in whole:
        if unit_of(record) == unit_id:
            statuses.setdefault(record.attempt, []).append(record.status)
            if record.round > 1:
                further.add(record.attempt)
    endings = {attempt: ending(found) for attempt, found in sorted(statuses.items())}
    later = [attempt for attempt in endings if attempt > number]
    is_newer = isinstance(damage, NewerError)
    if later and further.issuperset(later):
        # A further round is no second attempt at what this one measured.
        if any(attempt not in further and endings[attempt] in FINAL for attempt in endings):
            return f"record {path} is left out, and the other rounds of its {what} count: it {damage}"
        remedy = "" if is_newer else "; the sweep that it is of measures it again"
        return (
            f"record {path} is left out: it {damage}; it was the first round of its {what}, without which "
            f"further rounds don't count{remedy}"
        )
    if later:
        anew = [attempt for attempt in later if attempt not in further]
        last = next((n for n in reversed(anew) if endings[n] in FINAL), anew[-1])
        again = "measured again" if endings[last] in FINAL else f"tried again ({endings[last]})"
        fate = (
            ""
            if is_newer
            else "; leave the file there: without it an attempt would seem to have been taken away"
        )
        return f"record {path} is left out: it {damage}; its {what} was {again} as attempt {last}{fate}"
    if endings and endings[max(endings)] in FINAL:
        return f"record {path} is left out, and attempt {max(endings)} at its {what} counts: it {damage}"
    remedy = "" if is_newer else "; the sweep that it is of measures it again"
    return f"record {path} is left out, and its {what} counts as not measured: it {damage}{remedy}"


_STARTED_AT = re.compile(rb'"started_at": "([^"]*)"')


def _bytes(path: Path) -> bytes:
    """The file; empty where it can't be read: whoever opens the folder is told so."""
    try:
        return bytes_of(path)
    except OSError:
        return b""


def _listed(folder: str, tell: Tell) -> list[str]:
    """The names in a folder, sorted; nothing where it is no folder. `tell`: of one that can't be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are asked for
    except NotADirectoryError:
        return []
    except OSError as error:
        if Path(folder).is_symlink() or not isinstance(error, FileNotFoundError):
            tell(f"{folder} is left out: it can't be read ({error.strerror})")
        return []


def trials_csv(rows: Iterable[Row]) -> str:
    """The text of trials.csv."""
    names = [column.name for column in COLUMNS]
    return csv_text(names, (row.values(names) for row in rows))


def epochs_csv(records: Iterable[Record]) -> str:
    """The text of epochs.csv."""
    return csv_text([column.name for column in EPOCH_COLUMNS], epoch_rows(records))


def epoch_rows(records: Iterable[Record]) -> Iterator[list[Any]]:
    """The values of epochs.csv, a line an epoch."""
    for record in records:
        for epoch in record.epochs:
            own = {"trial_id": record.trial_id, "attempt": record.attempt, "round": record.round}
            values = epoch | own
            yield [values.get(column.name) for column in EPOCH_COLUMNS]


def in_order(record: Record) -> tuple[str, str, int]:
    """Sorts attempts as they began; within one second, always in the same way."""
    return record.started_at, record.trial_id, record.attempt


Run = tuple[str, int, str, str, str]
"""What tells one attempt at a unit from every other one: equal for the jobs of a group."""


def run_of(record: Record) -> Run:
    """The attempt that a record is of.

    A folder into which several machines' results were put may hold several first attempts at one unit, which jobs of
    one array may have begun in the same second: the host tells them apart, and the machine where no host is on record.
    """
    machine = "" if record.group_id else record.machine_key  # jobs of one group may be on unlike devices
    host = str(record.environment.get("host") or "")
    return unit_of(record), record.attempt, record.started_at, host, machine


def by_run(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each attempt together, in the order in which the first of each comes."""
    found: dict[Run, list[Record]] = {}
    for record in records:
        found.setdefault(run_of(record), []).append(record)
    return list(found.values())


Allowance = frozenset[tuple[str | None, tuple[Any, ...]]]
"""What the machine gave the jobs of one attempt of what they left to it."""
Counts = tuple[str, str, int, Allowance]
"""Trial id, machine, round and allowance, of which one attempt counts."""


def newest(records: Iterable[Record], number: int = 1) -> dict[tuple[str, str], Record]:
    """(trial id, machine) -> the attempt that counts: the last final one, else the last one.

    The jobs of a group come from one and the same attempt. `number`: of the round; the first measures all that there
    is to measure of a trial, further ones how long it takes.
    """
    return newest_of_rounds(records).get(number, {})


def newest_of_rounds(records: Iterable[Record]) -> dict[int, dict[tuple[str, str], Record]]:
    """Number of a round -> (trial id, machine) -> the attempt of it that counts, for rounds of which there is one."""
    found: dict[int, dict[tuple[str, str], Record]] = {}
    for jobs in _last_of_each(records, lambda _: frozenset()).values():
        for job in jobs:
            found.setdefault(job.round, {})[job.trial_id, job.machine_key] = job
    return found


def without_first_round(records: Iterable[Record]) -> dict[str, int]:
    """Trial id -> how many attempts of further rounds are stored of it, of trials without any of a first round.

    Such attempts count nowhere: the first round's record was damaged, or taken away.
    """
    rounds: dict[str, list[int]] = {}
    for record in records:
        rounds.setdefault(record.trial_id, []).append(record.round)
    return {trial_id: len(found) for trial_id, found in rounds.items() if 1 not in found}


def counting(records: Iterable[Record]) -> dict[Counts, Record]:
    """The attempts that count, for each round and each allowance of CPUs by itself: what a folder shows.

    An attempt under another allowance is one at another configuration. It takes no row away, so that whichever
    allowance the next sweep has, the folder shows all that the sweep shows.
    """
    return _by_what_counts(_last_of_each(records, allowance_of).values())


def as_counting(records: Iterable[Record]) -> dict[Counts, Record]:
    """These attempts, each of which is to count, whatever came before or after it."""
    return _by_what_counts(by_run(records))


def _by_what_counts(attempts: Iterable[Sequence[Record]]) -> dict[Counts, Record]:
    once: dict[Allowance, Allowance] = {}  # kept once: of 100,000 attempts few had another one
    return {
        (job.trial_id, job.machine_key, job.round, allowance): job
        for jobs in attempts
        for own in [allowance_of(jobs)]
        for allowance in [once.setdefault(own, own)]
        for job in jobs
    }


def allowance_of(jobs: Sequence[Record]) -> Allowance:
    """Under which allowance an attempt was made; `jobs`: of a group all of them."""
    return frozenset((job.job, tuple(given(job).values())) for job in jobs)


def _last_of_each(
    records: Iterable[Record], allowed: Callable[[Sequence[Record]], Allowance]
) -> dict[tuple[str, int, tuple[str, ...], Allowance], list[Record]]:
    """The attempt that counts at each unit in each round, on each machine and under each allowance that `allowed` tells
    apart.

    Further rounds add to the first one's attempt that counts. Those that came before it, or of which there is none,
    don't count: the unit was measured anew since.
    """
    chosen: dict[tuple[str, int, tuple[str, ...], Allowance], tuple[str, list[Record]]] = {}
    # Clocks may be set back; numbers only go up.
    for jobs in sorted(by_run(records), key=lambda jobs: jobs[0].attempt):
        unit_id, *_ = run_of(jobs[0])
        key = (unit_id, jobs[0].round, tuple(sorted(job.machine_key for job in jobs)), allowed(jobs))
        status = ending([job.status for job in jobs])
        if key not in chosen or status in FINAL or chosen[key][0] not in FINAL:
            chosen[key] = status, jobs
    first = {
        (unit, *rest): jobs[0].attempt for (unit, number, *rest), (_, jobs) in chosen.items() if number == 1
    }
    return {
        key: jobs
        for key, (_, jobs) in chosen.items()
        if key[1] == 1 or 0 < first.get((key[0], *key[2:]), 0) < jobs[0].attempt
    }
