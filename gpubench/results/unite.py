"""Several results folders as one: attempts are copied under their ids, which are unique in the world.

A record that has an id is copied byte by byte, and merging again adds nothing. Attempts of earlier versions, which have
numbers alone, get an id that follows from what they hold: the same wherever they are merged. Nothing is written over,
but for a damaged record of which another folder has the same attempt whole.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UnusableError
from gpubench.basics.regular_file import read_regular_file
from gpubench.results.counting import derive_folder_id_from_records
from gpubench.results.file_names import AttemptFile, is_plain_file, parse_file_name
from gpubench.results.packed import ENDINGS, is_file_or_member, list_files_and_members, open_file_or_member
from gpubench.results.plans import unite_plans
from gpubench.results.store import Results
from gpubench.results.whole_file import write_new, write_whole
from gpubench.schema.attempt_ids import FOLDER_SIGNS, hash_content, make_attempt_id
from gpubench.schema.record import RECORD_SCHEMA


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredAttempt:
    """An attempt as it lies in a folder, and its id."""

    path: Path
    file: AttemptFile
    content: bytes
    record: Mapping[str, Any] | None
    """None where it can't be read: it is copied as it is."""
    attempt_id: str

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other attempt: one that an earlier version has merged has another number there."""
        return self.file.unit_id, self.attempt_id[-FOLDER_SIGNS:]

    @property
    def trial_ids(self) -> list[str]:
        """Ids of its jobs, by which samples and logs are named."""
        if self.record is None:
            return [self.file.unit_id]
        return [str(job["trial_id"]) for job in self.record.get("jobs", [self.record])]


@dataclass(kw_only=True, slots=True)
class MergeSummary:
    """What became of the attempts of each source, by its place among them."""

    known: Counter[int] = field(default_factory=Counter)
    """Source -> attempts that lay in the target, or in another source, too."""
    added: Counter[int] = field(default_factory=Counter)


def unite_folders(sources: Sequence[Results], target: Results, tell: Callable[[str], None]) -> MergeSummary:
    """Copies all that is in the sources into the target.

    The record comes last of each attempt: an interrupted merge leaves whole ones, and the next adds the others.
    `tell`: is given a line on each file that is left out.
    """
    folders = [folder for folder in sources if folder.folder.resolve() != target.folder.resolve()]
    for folder in (target, *folders):
        folder.check_no_linked_folders()
    united = MergeSummary()
    first = len(sources) - len(folders)
    with pause_garbage_collector():
        own_records = target.read_records(lambda _: None)
        folder_id = target.ensure_folder_id(own_records)
        known_attempts = {
            attempt.key: attempt for attempt in _list_stored_attempts(target, folder_id, lambda _: None)
        }
        for place, source in enumerate(folders, first):
            records = source.read_records(lambda _: None)
            folder_id = source.folder_id or derive_folder_id_from_records(
                [record for record in records if not record.attempt_id]
            )
            attempts = list(_list_stored_attempts(source, folder_id, tell))
            ids = {
                (trial_id, attempt.file.number): attempt.attempt_id
                for attempt in attempts
                if not attempt.file.folder_id
                for trial_id in attempt.trial_ids
            }
            for attempt in attempts:
                _copy_attempt(attempt, source, target, known_attempts, ids, united, place, tell)
            _copy_unrecorded_traces(source, target, folder_id, attempts)
            # The names of images that were left out, by the fingerprint of their data.
            for path in sorted((source.folder / "left-out").glob("*.txt")):
                copy = target.folder / "left-out" / path.name
                if is_plain_file(path) and not copy.exists():
                    copy_whole(path, copy)
    unite_plans([target, *folders], target, tell)
    return united


# ---- attempts of a folder ----


def _list_stored_attempts(
    folder: Results, folder_id: str, tell: Callable[[str], None]
) -> Iterator[StoredAttempt]:
    """All of a folder, by the names of their files. `tell`: of files that are none, or can't be read."""
    alike: Counter[str] = Counter()
    for path in map(Path, folder.list_record_files(tell)):
        file = parse_file_name(path)
        if file is None:
            tell(f"{path} is left out: no attempt has such a name")
            continue
        try:
            content = read_regular_file(path)
        except OSError as error:
            tell(f"{path} is left out: it can't be read ({error.strerror})")
            continue
        record = _parse_attempt_record(content, file)
        attempt_id = file.attempt_name
        if not file.folder_id:
            unique = hash_content(content if record is None else _dump_without_numbers(record))
            alike[unique] += 1
            if alike[unique] > 1:  # of one folder's attempts that hold the same, each is one of its own
                unique = hash_content(f"{unique} {alike[unique]}")
            attempt_id = make_attempt_id(file.number, folder_id, unique)
        yield StoredAttempt(path=path, file=file, content=content, record=record, attempt_id=attempt_id)


def _parse_attempt_record(content: bytes, file: AttemptFile) -> Mapping[str, Any] | None:
    """A record that says that it is the file's attempt; None for one that is damaged."""
    try:
        record = msgspec.json.decode(content)
        ids = [job["trial_id"] for job in record.get("jobs", [record])]
        is_whole = bool(ids) and all(
            isinstance(trial_id, str) and _UNIT.fullmatch(trial_id) for trial_id in ids
        )
        unit_id = record.get("group_id") or record["trial_id"]
        name = record.get("attempt_id") or str(record.get("attempt", 1))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return record if is_whole and (unit_id, name) == file else None


def _dump_without_numbers(record: Mapping[str, Any]) -> bytes:
    """All that a record of an earlier version holds but for numbers of attempts, which its merging changed."""
    changed = _change_record_values(
        record, lambda job: {"attempt": None} if "attempt" in job else {}, lambda _: {"attempt": None}
    )
    return json.dumps(changed, sort_keys=True).encode()


_Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What gets other values, and which."""
_UNIT = re.compile(r"\w[\w-]*")
"""What an id may be: files are named by it."""


def _change_record_values(
    record: Mapping[str, Any], change_job: _Change, change_solo: _Change
) -> dict[str, Any]:
    """A record, or one of a group with those of its jobs, with other values, also in its names of trials alone."""
    changed = {**record, **change_job(record)}
    if "jobs" in changed:
        changed["jobs"] = [_change_record_values(job, change_job, change_solo) for job in changed["jobs"]]
    together = changed.get("together")
    if isinstance(together, Mapping) and isinstance(together.get("solos"), list):
        solos = [{**s, **change_solo(s)} if isinstance(s, Mapping) else s for s in together["solos"]]
        changed["together"] = {**together, "solos": solos}
    return changed


# ---- copying ----


def _copy_attempt(
    attempt: StoredAttempt,
    source: Results,
    target: Results,
    known_attempts: dict[tuple[str, str], StoredAttempt],
    ids: Mapping[tuple[str, int], str],
    united: MergeSummary,
    place: int,
    tell: Callable[[str], None],
) -> None:
    """Copies an attempt where the target lacks it. `ids`: of the source's attempts that have numbers alone."""
    known = known_attempts.get(attempt.key)
    name = attempt.attempt_id if known is None else known.file.attempt_name
    for trial_id in attempt.trial_ids:
        for kind, ending in ENDINGS.items():
            mine = source.make_attempt_file_path(kind, trial_id, attempt.file.attempt_name, ending)
            copy = target.make_attempt_file_path(kind, trial_id, name, ending)
            if is_file_or_member(mine) and not is_file_or_member(copy):
                copy_whole(mine, copy)
    if known is not None:
        united.known[place] += 1
        if known.record is None and attempt.record is not None:  # that one is damaged
            write_whole(known.path, _add_attempt_ids(attempt, name, ids))
            known_attempts[attempt.key] = attempt
        elif attempt.file.folder_id and known.content != attempt.content and attempt.record is not None:
            tell(f"{attempt.path} is left out: {known.path} holds something else under the same id")
        return
    path = target.make_attempt_file_path("records", attempt.file.unit_id, name, "json")
    if path.exists() or path.is_symlink():
        tell(f"{attempt.path} is left out: {path} is something else; rename that, and merge again")
        return
    write_new(path, _add_attempt_ids(attempt, name, ids))
    file = AttemptFile(attempt.file.unit_id, name)
    known_attempts[attempt.key] = StoredAttempt(
        path=path, file=file, content=attempt.content, record=attempt.record, attempt_id=name
    )
    united.added[place] += 1


def _add_attempt_ids(attempt: StoredAttempt, name: str, ids: Mapping[tuple[str, int], str]) -> bytes:
    """The content of its record's file: as it is, but for one of an earlier version, which gets its id."""
    if attempt.record is None or attempt.file.attempt_name == name:
        return attempt.content

    def add_attempt_id(solo: Mapping[str, Any]) -> Mapping[str, Any]:
        attempt_id = ids.get((str(solo.get("trial_id")), solo.get("attempt")))  # type: ignore[arg-type]
        return {} if attempt_id is None else {"attempt_id": attempt_id}

    with_id = {"schema_version": RECORD_SCHEMA, "attempt": attempt.file.number, "attempt_id": name}
    changed = _change_record_values(attempt.record, lambda _: with_id, add_attempt_id)
    return (json.dumps(changed, indent=1, ensure_ascii=False) + "\n").encode()


def _copy_unrecorded_traces(
    source: Results, target: Results, folder_id: str, attempts: Sequence[StoredAttempt]
) -> None:
    """Logs and samples of attempts that left no record: they show that there was one."""
    known = {(trial_id, attempt.file.attempt_name) for attempt in attempts for trial_id in attempt.trial_ids}
    for kind, ending in ENDINGS.items():
        for path in list_files_and_members(source.folder, kind):
            file = parse_file_name(path)
            if file is None or file in known or not is_file_or_member(path):
                continue
            name = file.attempt_name
            if not file.folder_id:
                name = make_attempt_id(file.number, folder_id, hash_content(f"{file.unit_id} {file.number}"))
            copy = target.make_attempt_file_path(kind, file.unit_id, name, ending)
            if not is_file_or_member(copy):
                copy_whole(path, copy)


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file so that a reader sees all of it or none. Raises UnusableError where that can't be done."""
    try:
        with open_file_or_member(source) as file:
            content = file.read()
    except OSError as error:
        raise UnusableError(f"{source} can't be copied to {target}: {error.strerror}") from None
    write_whole(target, content)
