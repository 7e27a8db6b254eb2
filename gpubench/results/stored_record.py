"""Stored records read back: the one place where what their files say is checked, by the types of a record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from gpubench.basics.quoted import clean_line
from gpubench.basics.regular_file import read_regular_file
from gpubench.schema.attempt_ids import is_attempt_id
from gpubench.schema.codes import decode_record
from gpubench.schema.record import RECORD_SCHEMA, GroupRecord, Record
from gpubench.schema.validation import REFUSED, InvalidValueError, convert_value

LONGEST = 250
"""Signs of a reason: it may quote the file."""
CONVERTED = ("windows", "span")
"""Parts that a record has as objects. All others are dicts and lists, which stay as they were written: with what other
versions say in them, and with whole numbers as such."""


class DamagedRecordError(Exception):
    """A record that can't be used. The message says why, in a few words that follow the file's name."""


class NewerRecordError(DamagedRecordError):
    """One that is whole, and of a later version."""


def read_attempt(path: Path | str) -> list[Record]:
    """The attempt in a file of the records folder: one record, or one for each job of a group.

    Every value has its column's type and range, and the file has the attempt's name. Raises DamagedRecordError.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a Path takes longer than all of this
    try:
        text = read_regular_file(path)
    except OSError as error:
        raise DamagedRecordError(f"can't be read ({error.strerror})") from None
    return parse_attempt(name, text)


def parse_attempt(name: str, text: bytes) -> list[Record]:
    """The attempt in the text of a file of that name, likewise."""
    try:
        content = msgspec.json.decode(text)
    except REFUSED:
        raise DamagedRecordError("is not JSON (half written?)") from None
    shape: Any = GroupRecord if name.startswith("g") else Record
    written: Any = content.get("jobs") if shape is GroupRecord and isinstance(content, dict) else [content]
    parts = [part for part in written if isinstance(part, dict)] if isinstance(written, list) else []
    for part in parts:
        if part.get("span") == {}:  # an earlier version did not keep it
            del part["span"]
    try:
        attempt: GroupRecord | Record = convert_value(content, shape)
    except InvalidValueError as error:
        raise _make_damage_error(error, [content, *parts]) from None
    if isinstance(attempt, GroupRecord):
        ids = attempt.group_id, attempt.attempt, attempt.attempt_id
        if any((job.group_id, job.attempt, job.attempt_id) != ids for job in attempt.jobs):
            raise DamagedRecordError("is damaged: its jobs are not all of this attempt at this group")
        if any(job.group is None or job.job is None for job in attempt.jobs):
            raise DamagedRecordError("is damaged: a job has no name")
        unit_id, jobs = attempt.group_id, attempt.jobs
    else:
        unit_id, jobs = attempt.trial_id, [attempt]
    if name != (expected := f"{unit_id}-{jobs[0].attempt_name}.json"):
        raise DamagedRecordError(f"says that it is {clean_line(expected[:100])}")
    if jobs[0].attempt_id and not is_attempt_id(jobs[0].attempt_id, jobs[0].attempt):
        raise DamagedRecordError("has an id that no attempt has")
    for job, part in zip(jobs, parts, strict=True):
        for field, value in decode_record(part).items():
            if isinstance(value, (dict, list)) and field not in CONVERTED:
                structs.force_setattr(job, field, value)
    return jobs


def _make_damage_error(error: InvalidValueError, parts: Sequence[Any]) -> DamagedRecordError:
    """What is wrong, in a few words; of a newer version only that, for all else may be new as well.

    `parts`: all that may tell its version.
    """
    for part in parts:
        version = part.get("schema_version") if isinstance(part, dict) else None
        if type(version) is int and version > RECORD_SCHEMA:
            return NewerRecordError(
                f"was written by a newer gpubench (schema_version {str(version)[:20]}); update gpubench to read it"
            )
    return DamagedRecordError(clean_line(f"is damaged: {error}", LONGEST))
