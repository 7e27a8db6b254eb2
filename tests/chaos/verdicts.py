"""The promises that every attack must leave whole. Pure: each says what breaks it, in words, or nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from found import Folder, Found, Start
from kinds import Damage

from gpubench.results.file_names import parse_file_name
from gpubench.results.stored_record import DamagedRecordError, parse_attempt
from gpubench.schema.record import Record

CODES = (0, 1, 4, 75)
"""What a sweep may end with: all well, rows failed, a folder can't be used, stopped."""
TRACEBACK = "Traceback (most recent call last)"


def ended(found: Found) -> str:
    """The sweep ends by itself, whatever was done to it."""
    return "" if found.first.code is not None else f"it had to be killed after {found.first.seconds:.0f} s"


def told(found: Found) -> str:
    """It ends with one of its exit codes, or by the signal that it was sent, and never with a traceback."""
    first = found.first
    if TRACEBACK in first.err:
        return f"a traceback: {first.err.strip().splitlines()[-1][:160]}"
    killed = f"-{found.attack.kind.signal.value}" if not isinstance(found.attack.kind, Damage) else ""
    if first.code is None or first.code in CODES or str(first.code) == killed:
        return ""
    return f"exit code {first.code}"


def whole(found: Found) -> str:
    """Every record can be read, after the attack and at the end."""
    for folder in (found.middle, found.last):
        for path, content in folder.records.items():
            try:
                _records(path, content)
            except DamagedRecordError as error:
                return f"{path} {error}"
    return ""


def kept(found: Found) -> str:
    """What was stored stays as it was, byte by byte."""
    steps = [(found.before, found.middle), (found.middle, found.last)]
    for old, new in steps[1:] if _is_removed(found) else steps:
        for path, content in old.records.items():
            if new.records.get(path) != content:
                return f"{path} {'has changed' if path in new.records else 'is gone'}"
    return ""


def stored(found: Found) -> str:
    """What was said to have been measured is stored; where it is not, the exit code is no success."""
    there = _endings(found.middle)
    lost = [line["trial_id"] for line in rows(found.first) if (line["trial_id"], line["status"]) not in there]
    if lost and (found.first.code == 0 or not _is_removed(found)):
        return f"{', '.join(lost)} told, but not stored; exit code {found.first.code}"
    return ""


def single(found: Found) -> str:
    """Nothing is there twice: no attempt, and no second success of a trial.

    A group counts again where a trial alone that it is compared with was measured later.
    """
    all_ = [record for path, content in found.last.records.items() for record in _records(path, content)]
    attempts = Counter((record.trial_id, record.attempt_name) for record in all_)
    twice = [f"{trial}-{number}" for (trial, number), count in attempts.items() if count > 1]
    well = Counter(record.trial_id for record in all_ if record.status == "ok" and record.group_id is None)
    twice += [f"{trial} (ok {count} times)" for trial, count in well.items() if count > 1]
    return f"twice: {', '.join(twice)}" if twice else ""


def numbered(found: Found) -> str:
    """Attempts are numbered without a gap; one that was killed leaves its log."""
    numbers: dict[str, set[int]] = {}
    for path, content in found.last.records.items():
        for record in _records(path, content):
            numbers.setdefault(record.trial_id, set()).add(record.attempt)
    for log in found.last.logs:
        if name := parse_file_name(Path(log[1:3], f"{log}.log")):
            numbers.setdefault(name.unit_id, set()).add(name.number)
    gaps = [trial for trial, seen in numbers.items() if seen != set(range(1, len(seen) + 1))]
    return f"gaps in the attempts of {', '.join(gaps)}" if gaps and not _is_removed(found) else ""


def gone(found: Found) -> str:
    """No process is left, neither by the attacked sweep nor by the next."""
    return "; ".join([*found.processes, *(f"of the next start: {one}" for one in found.late_processes)])


def clean(found: Found) -> str:
    """No file is left once the next start has ended."""
    return ", ".join(found.files)


def forgotten(found: Found) -> str:
    """No shared memory is left."""
    return ", ".join(found.shared_memory)


def given_back(found: Found) -> str:
    """The driver shows no process, and no more memory in use than before."""
    return ", ".join(found.gpus)


def goes_on(found: Found) -> str:
    """The command of the sweep, given again, starts at once and finishes: exit code 0, every row there and well."""
    second = found.second
    if second.code != 0:
        said = second.err.strip().splitlines()
        how = "did not end" if second.code is None else f"ended with {second.code}"
        return f"the next start {how} after {second.seconds:.0f} s: {said[-1][:160] if said else 'silent'}"
    statuses = Counter(line["status"] for line in rows(second))
    if statuses != {"ok": found.attack.sweep.rows}:
        return f"the next start left {dict(statuses)}, not {found.attack.sweep.rows} ok"
    there = _endings(found.last)
    lost = [line["trial_id"] for line in rows(second) if (line["trial_id"], "ok") not in there]
    return f"the next start told of {', '.join(lost)}, which is not stored" if lost else ""


PROMISES: Mapping[str, Callable[[Found], str]] = {
    promise.__name__: promise
    for promise in (
        ended, told, whole, kept, stored, single, numbered, gone, clean, forgotten, given_back, goes_on,
    )
}  # fmt: skip
_NEED_WHOLE_RECORDS = ("stored", "single", "numbered", "goes_on")


def broken(found: Found) -> dict[str, str]:
    """Promise -> what breaks it."""
    unreadable = whole(found)
    asked = [name for name in PROMISES if not (unreadable and name in _NEED_WHOLE_RECORDS)]
    return {name: why for name in asked if (why := PROMISES[name](found))}


def outcome(found: Found) -> str:
    """How the attacked start ended, in a few words."""
    if not found.struck:
        return "the moment never came"
    code = found.first.code
    if code is None:
        return "hung"
    if TRACEBACK in found.first.err:
        return "broke off with a traceback"
    words = {
        0: "all rows ok",
        1: "went on, some rows failed",
        4: "ended with one line, exit code 4",
        75: "stopped, can go on",
    }
    return words.get(code, f"ended by signal {-code}" if code < 0 else f"exit code {code}")


def rows(start: Start) -> list[dict[str, Any]]:
    """What a start told on stdout. The last line may be half there where it was killed."""
    lines = start.out.split("\n")[:-1]
    return [json.loads(line) for line in lines if line.strip()]


def _records(path: str, content: bytes) -> list[Record]:
    """The records of a file. Raises DamagedRecordError."""
    return parse_attempt(path.rpartition("/")[2], content)


def _endings(folder: Folder) -> set[tuple[str, str]]:
    """(trial, status) of every attempt."""
    return {
        (r.trial_id, r.status) for path, content in folder.records.items() for r in _records(path, content)
    }


def _is_removed(found: Found) -> bool:
    kind = found.attack.kind
    return isinstance(kind, Damage) and kind.fault == "removed"
