"""The results folder: write once, read back. One class owns every path."""

from __future__ import annotations

import contextlib
import json
import os
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics import litter
from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UnusableError
from gpubench.basics.finite import replace_non_finite
from gpubench.basics.regular_file import read_regular_file
from gpubench.results.counting import (
    derive_folder_id_from_records,
    find_most_common_folder_id,
    find_unit_id,
    make_start_key,
)
from gpubench.results.csv_text import format_csv
from gpubench.results.file_names import (
    AttemptFile,
    find_linked_subfolder,
    format_attempt_file_path,
    format_log_path,
    parse_file_name,
)
from gpubench.results.packed import ENDINGS, list_packed_paths
from gpubench.results.stored_record import DamagedRecordError, NewerRecordError, read_attempt
from gpubench.results.whole_file import write_new, write_whole
from gpubench.schema.attempt_ids import make_folder_id
from gpubench.schema.codes import encode_record
from gpubench.schema.record import MOST_ATTEMPTS, GroupRecord, Record

SAMPLE_DIGITS = 12
"""Significant digits of samples: running totals and times must stay fine enough to be cut again."""
FOLDER_ID = "records/folder-id"
"""The file that holds a folder's id."""
_FOLDER_ID = re.compile(r"[0-9a-f]{8}")

Tell = Callable[[str], None]
"""Gets one line on what is wrong with a folder."""


def raise_unusable(line: str) -> None:
    """Takes nothing damaged: raises UnusableError."""
    raise UnusableError(line)


class Results:
    """One results folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder_id = ""
        self._descriptor: int | None = None
        """Of the folder, where a sweep writes into it: it shows whether the folder is renamed."""
        self._read: set[str] = set()
        """Record files that were read, or written, by this one."""

    # ---- paths ----

    def make_attempt_file_path(self, kind: str, unit_id: str, attempt_name: str, ending: str) -> Path:
        """`records/xx/UNIT-ATTEMPT.json` and its like. xx: the two characters after the id's letter."""
        return self.folder / format_attempt_file_path(kind, unit_id, attempt_name, ending)

    def make_log_path(self, unit_id: str, attempt_name: str) -> Path:
        return self.folder / format_log_path(unit_id, attempt_name)

    def list_logs(self, trial_id: str) -> list[Path]:
        """The logs of all attempts at a trial, by their names."""
        return sorted((self.folder / "logs" / trial_id[1:3]).glob(f"{trial_id}-*.log"))

    # ---- its id ----

    @property
    def folder_id(self) -> str:
        """Its id; empty where it has none yet: of an earlier version, or new."""
        if not self._folder_id:
            with contextlib.suppress(OSError):
                text = read_regular_file(self.folder / FOLDER_ID, 64).decode("ascii", "replace").strip()
                self._folder_id = text if _FOLDER_ID.fullmatch(text) else ""
        return self._folder_id

    def ensure_folder_id(self, records: Collection[Record]) -> str:
        """Its id, which it gets where it has none. `records`: all that lie in it; those of an earlier version, which
        say of no folder, are this one's. Raises UnusableError where it can't be written."""
        if not self.folder_id:
            path = self.folder / FOLDER_ID
            lying_here = [record for record in records if not record.attempt_id]
            chosen = (
                derive_folder_id_from_records(lying_here)
                if lying_here
                else find_most_common_folder_id(records)
            )
            try:
                write_new(path, (chosen or make_folder_id()) + "\n")
            except UnusableError:
                if path.is_symlink() or (path.exists() and not self.folder_id):
                    raise UnusableError(
                        f"{path} is damaged: it is to hold 8 hexadecimal signs; remove it, and it is made anew"
                    ) from None
                if not self.folder_id:  # else another sweep has written it a moment ago
                    raise
        for record in records:
            if not record.attempt_id:
                record.note_folder_id(self.folder_id)
        return self.folder_id

    # ---- opening ----

    def check_no_linked_folders(self) -> None:
        """Raises UnusableError where a folder in it is a link: it may lead to anybody's files."""
        if (link := find_linked_subfolder(self.folder)) is not None:
            raise UnusableError(
                f"{link} is a link, and gpubench follows none below a results folder: put the folder itself there"
            )

    def create_folder(self) -> None:
        """Makes the folder. Raises UnusableError where it is a file or can't be written, or has links in it."""
        self.check_no_linked_folders()
        if self.folder.exists() and not self.folder.is_dir():
            raise UnusableError(f"{self.folder} is a file; name a folder for the results with --out")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe = litter.make_temporary_path(self.folder / "probe")
            probe.write_text("-")
            now = probe.stat().st_mtime  # by the file system's clock, which need not be this host's
            probe.unlink(missing_ok=True)
            if self._descriptor is None:
                self._descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                weakref.finalize(self, os.close, self._descriptor)
        except OSError as error:
            raise UnusableError(f"results folder {self.folder} can't be written: {error.strerror}") from None
        litter.remove_abandoned_files(self.folder, now)

    def check_not_removed(self) -> None:
        """Raises UnusableError where the folder was removed or renamed since this sweep opened it."""
        if self._descriptor is None or self._is_same_folder():
            return
        raise UnusableError(
            f"{self.folder} was removed or renamed while this sweep wrote into it: what it has measured lies "
            "wherever the folder is now; the same command with --out and its name goes on"
        )

    def _is_same_folder(self) -> bool:
        """Whether the folder that this sweep opened still lies at its path."""
        try:
            now, opened = self.folder.stat(), os.fstat(self._descriptor or 0)
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino)

    def _is_folder_still_linked(self) -> bool:
        """Whether the folder that this sweep opened lies anywhere; a network's file system may say that it is stale."""
        try:
            return os.fstat(self._descriptor or 0).st_nlink > 0
        except OSError:
            return False

    # ---- records ----

    def read_records(self, tell: Tell = raise_unusable) -> list[Record]:
        """Every attempt, in the order in which they began.

        One that can't be used is left out, and `tell` gets one line for its file; by default that is a UnusableError.
        """
        self._read.clear()
        return self.read_records_since_last(tell)

    def read_records_since_last(
        self, tell: Tell = raise_unusable, beside: Collection[str] | None = None
    ) -> list[Record]:
        """The attempts that others have stored since the folder was last read.

        `beside`: ids of units; no more is read than what lies beside their records.
        """
        # Over a network what a host has changed itself is read anew: so the folders of these records are changed.
        for inside in {unit_id[1:3] for unit_id in beside or ()}:
            fresh = litter.make_temporary_path(self.folder / "records" / inside / "fresh")
            with contextlib.suppress(OSError):  # then what is known is as old as a cache
                fresh.touch()
                fresh.unlink(missing_ok=True)
        records: list[Record] = []
        with pause_garbage_collector():
            # What lies at a wrong place is told when all is read, and not each time that something new is looked for.
            tell_places = (lambda _: None) if self._read else tell
            paths = [path for path in self.list_record_files(tell_places, beside) if path not in self._read]
            self._read.update(paths)
            for path in paths:
                try:
                    records += read_attempt(path)
                except NewerRecordError as error:
                    tell(f"record {path} is left out: it {error}")
                except DamagedRecordError as error:
                    anew = "where no other attempt counts, the sweep that it is of measures anew"
                    tell(f"record {path} is left out: it {error}; {anew}")
        if folder_id := self.folder_id:
            for record in records:
                if not record.attempt_id:
                    record.note_folder_id(folder_id)
        return sorted(records, key=make_start_key)

    def find_damaged_attempts(self, records: Iterable[Record]) -> set[AttemptFile]:
        """The attempts whose files lie there and are none of these records, which are all that can be read."""
        files = {
            name for path in self.list_record_files(lambda _: None) if (name := parse_file_name(Path(path)))
        }
        return files - {AttemptFile(find_unit_id(record), record.attempt_name) for record in records}

    def list_record_files(self, tell: Tell, beside: Collection[str] | None = None) -> list[str]:
        """All that is named like a record, links and folders too. As text: of 100,000, objects take as long to make as
        the files to open."""
        folder, paths = os.fspath(self.folder / "records"), []
        beside_in = sorted({unit_id[1:3] for unit_id in beside or ()})
        for inside in _list_folder_names(folder, tell) if beside is None else beside_in:
            for name in _list_folder_names(f"{folder}/{inside}", tell):
                if not name.endswith(".json") or name.startswith("."):
                    continue
                path = f"{folder}/{inside}/{name}"
                if name[1:3] == inside:
                    paths.append(path)
                else:
                    tell(f"{path} is left out: records of its name lie in records/{name[1:3]}")
        return paths

    def find_next_attempt_number(self, *ids: str) -> int:
        """The number of the next attempt at a unit in this folder, counting from 1. `ids`: its own, and those of its
        jobs. Attempts that were measured in other folders count there."""
        loose = (
            path
            for kind in ("records", *ENDINGS)  # whatever lies there, damaged or not, keeps its number
            for unit_id in ids
            for path in (self.folder / kind / unit_id[1:3]).glob(f"{unit_id}-*")
        )
        names = map(parse_file_name, (*loose, *list_packed_paths(self.folder)))
        numbers = (
            name.number
            for name in names
            if name and name.unit_id in ids and name.folder_id in ("", self.folder_id)
        )
        return 1 + max((number for number in numbers if number < MOST_ATTEMPTS), default=0)

    def save(
        self, records: Sequence[Record], samples: Sequence[Iterable[Sequence[Any]]], header: Sequence[str]
    ) -> None:
        """Stores one attempt at a unit: first the samples of each of its jobs, then the file that makes it count."""
        folder, first = self.folder, records[0]
        # What was measured is kept wherever the folder lies now; one that was removed is made anew for it.
        if self._descriptor is not None and not self._is_same_folder() and self._is_folder_still_linked():
            self.folder = Path(f"/proc/self/fd/{self._descriptor}")
        try:
            unit_path = self.make_attempt_file_path(
                "records", find_unit_id(first), first.attempt_name, "json"
            )
            if unit_path.exists() or unit_path.is_symlink():
                raise UnusableError(f"{unit_path} exists already: two sweeps write into {self.folder}")
            for record, rows in zip(records, samples, strict=True):
                path = self.make_attempt_file_path("samples", record.trial_id, record.attempt_name, "csv")
                write_whole(path, format_csv(header, rows, SAMPLE_DIGITS))
            unit: Record | GroupRecord = first
            if first.group_id is not None:
                unit = GroupRecord(
                    group_id=first.group_id,
                    attempt=first.attempt,
                    attempt_id=first.attempt_id,
                    jobs=list(records),
                )
            stored = replace_non_finite(encode_record(unit.to_stored()))
            write_new(unit_path, json.dumps(stored, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
            self._read.add(os.fspath(unit_path))
        finally:
            self.folder = folder
        self.check_not_removed()  # after the record

    # ---- plans ----

    def make_plan_path(self, name: str, plan_id: str) -> Path:
        return self.folder / "plans" / f"{name}-{plan_id}.toml"

    def save_plan(self, name: str, plan_id: str, toml: str) -> None:
        """Keeps a plan as resolved, in place of the same plan as it was stored before."""
        write_whole(self.make_plan_path(name, plan_id), toml)

    def list_plan_paths(self) -> list[Path]:
        """Stored plans, by name. When and in which order they were stored stands in them (`plans.py`)."""
        return sorted((self.folder / "plans").glob("*.toml"))

    def find_last_start(self) -> str:
        """When the last attempt of any trial began, in local time; empty where there is none. No record is parsed."""
        last = ""
        for path in self.list_record_files(tell=lambda _: None):
            with contextlib.suppress(OSError):  # whoever opens the folder is told so
                starts = _STARTED_AT.findall(read_regular_file(path))
                last = max([last, *(start.decode(errors="replace") for start in starts)])
        return last

    # ---- tables ----

    def write_table(self, name: str, text: str) -> None:
        """Writes one of the folder's tables. Raises UnusableError."""
        self.check_not_removed()
        write_whole(self.folder / name, text)


_STARTED_AT = re.compile(rb'"started_at": "([^"]*)"')


def _list_folder_names(folder: str, tell: Tell) -> list[str]:
    """The names in a folder, sorted; nothing where it is no folder. `tell`: of one that can't be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are asked for
    except NotADirectoryError:
        return []
    except OSError as error:
        if Path(folder).is_symlink() or not isinstance(error, FileNotFoundError):
            tell(f"{folder} is left out: it can't be read ({error.strerror})")
        return []
