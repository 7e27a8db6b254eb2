"""Stored records read back: the one place where what their files say is checked, by the definition of the columns."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Meta

from gpubench.basics.quoted import clean_line
from gpubench.basics.regular_file import read_regular_file
from gpubench.datasets.facts import DataFacts
from gpubench.schema.attempt_ids import is_attempt_id, parse_folder_id
from gpubench.schema.codes import decode_record
from gpubench.schema.columns import BY_NAME, EPOCH_COLUMNS, HUGE, NODE_COLUMNS, Amount, Count, Signed
from gpubench.schema.record import (
    RECORD_SCHEMA,
    AskedFields,
    EpochWindow,
    Record,
    ResultColumns,
    Span,
    is_needed_field,
)
from gpubench.schema.trial_fields import FIELDS, TYPES
from gpubench.schema.validation import REFUSED, InvalidValueError, add_bounds, convert_value

MOST_ATTEMPTS = 1_000_000
"""Nobody makes more at one unit: a larger number has been damaged."""


MOST_WARNINGS = 1_000
"""Of one record: more are no work of gpubench."""


LONGEST = 250
"""Signs of a reason: it may quote the file."""


class DamagedRecordError(Exception):
    """A record that can't be used. The message says why, in a few words that follow the file's name."""


class NewerRecordError(DamagedRecordError):
    """One that is whole, and of a later version."""


def read_attempt(path: Path | str) -> list[Record]:
    """The attempt in a file of the records folder: one record, or one for each job of a group.

    Every value has its column's type and range, and the file has the attempt's name. Raises DamagedError.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a Path takes longer than all of this
    try:
        text = read_regular_file(path)
    except OSError as error:
        raise DamagedRecordError(f"can't be read ({error.strerror})") from None
    return parse_attempt(name, text)


def parse_attempt(name: str, text: bytes) -> list[Record]:
    """The attempt in the text of a file of that name, likewise."""
    unit_id, jobs = _read_whole(text, _GROUP if name.startswith("g") else _RECORD)
    first_job = jobs[0]
    if name != (expected := f"{unit_id}-{first_job.attempt_name}.json"):
        raise DamagedRecordError(f"says that it is {clean_line(expected[:100])}")
    if first_job.attempt_id:
        if not is_attempt_id(first_job.attempt_id, first_job.attempt):
            raise DamagedRecordError("has an id that no attempt has")
        folder_id = parse_folder_id(first_job.attempt_id)
        for job in jobs:
            job.note_folder_id(folder_id)
    return jobs


def _read_whole(text: bytes, shape: Any) -> tuple[str, list[Record]]:
    """The unit's id, and the records of the attempt. Raises DamagedError."""
    content, is_json = _parse(text)
    jobs: Any = content.get("jobs") if shape is _GROUP and isinstance(content, dict) else [content]
    try:
        convert_value(_replace_empty_span(content), shape)
    except InvalidValueError as error:
        raise _describe_damage(error, [content, *jobs] if isinstance(jobs, list) else [content]) from None
    if not is_json:
        raise DamagedRecordError("is not JSON (half written?)")
    if shape is _GROUP:
        _check_group(content)
    records = [_make_record(decode_record(job)) for job in jobs]
    return content["group_id" if shape is _GROUP else "trial_id"], records


def _parse(text: bytes) -> tuple[Any, bool]:
    """What a text says, and whether it is JSON: Python reads NaN, too, so that its place can be told.

    Raises DamagedError.
    """
    try:
        return msgspec.json.decode(text), True
    except REFUSED:
        try:
            return json.loads(text.decode()), False
        except (ValueError, RecursionError):
            raise DamagedRecordError("is not JSON (half written?)") from None


def _replace_empty_span(content: Any) -> Any:
    """A record, or the records of a group, as their types have them: without an empty object for no span."""
    if isinstance(content, dict) and isinstance(content.get("jobs"), list):
        return content | {"jobs": list(map(_replace_empty_span, content["jobs"]))}
    return content | {"span": None} if isinstance(content, dict) and content.get("span") == {} else content


def _make_record(content: dict[str, Any]) -> Record:
    """The record of values that were checked already."""
    values = content | {"trial": AskedFields.wrap_values(content["trial"])}
    if "result" in content:
        values["result"] = ResultColumns.wrap_values(content["result"])
    if content.get("span") is not None:
        span = content["span"]
        values["span"] = Span(launched=span["launched"], finished=span["finished"]) if span else None
    if isinstance(content.get("windows"), list):
        values["windows"] = [
            EpochWindow(epoch=line["epoch"], t0=line["t0"], t1=line["t1"]) for line in content["windows"]
        ]
    return Record.make_checked(values)


def _describe_damage(error: InvalidValueError, parts: Sequence[Any]) -> DamagedRecordError:
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


# ---- what may stand where ----


def _define_part(name: str, kinds: Mapping[str, Any], needed: Collection[str] = ()) -> Any:
    """Values by name, each absent or null if need be, but for those that are `needed`.

    Names of other versions are let through: nobody reads them.
    """
    parts = [(key, kind) if key in needed else (key, kind | None, None) for key, kind in kinds.items()]
    return msgspec.defstruct(name, parts, kw_only=True, gc=False)


def _bound_fact(kind: Any) -> Any:
    """A type of facts of images, which have no bounds of their own, as fields of trials and columns have."""
    if kind is int:
        return Annotated[int, Meta(ge=-int(HUGE), le=int(HUGE))]
    return _bound_fact(int) | None if get_args(kind) == (int, type(None)) else kind


_NAMES = {
    name: add_bounds(TYPES[name]) if name in FIELDS else column.holds for name, column in BY_NAME.items()
}
_COLUMNS = _define_part("_Columns", _NAMES)
_RESOLVED = _define_part("_Resolved", {**_NAMES, "cpu_ids": list[Count], "gpu_uuids": list[str]})
_DATA = _define_part("_Data", {name: _bound_fact(kind) for name, kind in get_type_hints(DataFacts).items()})
_EPOCH = _define_part(
    "_Epoch", {c.name: c.holds for c in EPOCH_COLUMNS[2:-1]}, needed=("epoch", "warmup", "epoch_time_s")
)
_NODE = _define_part(
    "_Node", {c.name: c.holds for c in NODE_COLUMNS} | {"gpu_uuids": list[str]}, needed=("node", "ranks")
)


class _Shape(msgspec.Struct, kw_only=True, gc=False): ...


class _Definition(_Shape):
    files: str | None = None
    cpu: list[Any] | None = None
    gpu: list[Any] | None = None


_Coded = str | list[str]


class _Source(_Shape):
    source: _Coded | None = None
    period_s: Amount | None = None
    samples: Count | None = None
    gaps: Count | None = None
    columns: list[str] | None = None
    """Of a source, the columns that it measured (`schema/codes.py`); of a column none."""


class _Solo(_Shape):
    trial_id: str
    attempt: Count
    attempt_id: str = ""


class _Resource(_Shape):
    name: str
    column: str
    unit: str
    alone: list[Signed | None]
    together: list[Signed | None]
    full_alone: list[bool]
    full_together: bool


class _Together(_Shape):
    jobs: Count | None = None
    no_prediction: str | None = None
    undecidable: str | None = None
    gain_range: tuple[Signed, Signed] | None = None
    solos: list[_Solo | None] | None = None
    resources: list[_Resource] | None = None


_Version = Annotated[int, Meta(ge=1, le=RECORD_SCHEMA)]
_Attempt = Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS)]
_Seconds = dict[str, Signed]
_STORED = {info.name: info for info in fields(Record) if info.name != "folder_id"}
"""The fields that may stand in a file."""
_HINTS = get_type_hints(Record)

_PARTS: dict[str, Any] = {
    "schema_version": _Version,
    "attempt": _Attempt,
    "round": _Attempt,
    "trial": _COLUMNS,
    "variant_definition": _Definition,
    "data": _DATA,
    "resolved": _RESOLVED,
    "result": _COLUMNS,
    "environment": _COLUMNS,
    "missing": dict[str, _Coded],
    "doubts": Annotated[dict[str, str], Meta(max_length=MOST_WARNINGS)],
    "provenance": dict[str, str | _Source | None],
    "epochs": list[_EPOCH],  # type: ignore[valid-type]
    "windows": list[EpochWindow],
    "span": Span | None,
    "nodes": list[_NODE],  # type: ignore[valid-type]
    "phases": _Seconds,
    "together": _Together,
}
_KINDS = {name: _PARTS.get(name, _HINTS[name]) for name in _STORED}


def _define_shape(name: str, kinds: Mapping[str, Any], needed: Collection[str]) -> Any:
    """What a whole file may say. A value that is absent may not be null, but for what has nothing else to be."""
    parts = [(key, kind) if key in needed else (key, kind, None) for key, kind in kinds.items()]
    return msgspec.defstruct(name, parts, kw_only=True, gc=False, forbid_unknown_fields=True)


_NEEDED = {name for name, info in _STORED.items() if is_needed_field(info)}
_RECORD = _define_shape("_Record", _KINDS, _NEEDED)
"""A record as it may be stored. Only looked at: what is kept is the Record, whose values stay as they were written."""


_OF_GROUP = {"group_id": None, "attempt": 1, "attempt_id": ""}
"""What all jobs of an attempt at a group have in common, and what it is where it is not told."""


def _check_group(group: Mapping[str, Any]) -> None:
    """Raises DamagedError for jobs that are not of one attempt."""
    for job in group["jobs"]:
        if any(job.get(name, absent) != group.get(name, absent) for name, absent in _OF_GROUP.items()):
            raise DamagedRecordError("is damaged: its jobs are not all of this attempt at this group")
        if job.get("group") is None or job.get("job") is None:
            raise DamagedRecordError("is damaged: a job has no name")


_GROUP: Any = _define_shape(
    "_Group",
    {
        "schema_version": _Version,
        "group_id": str,
        "attempt": _Attempt,
        "attempt_id": str,
        "jobs": Annotated[list[_RECORD], Meta(min_length=1)],  # type: ignore[valid-type]
    },
    needed=("group_id", "attempt", "jobs"),
)
