"""Stored records read back: the one place where what their files say is checked, by the definition of the columns."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Meta

from gpubench.basics.quoted import clean
from gpubench.basics.regular_file import read_regular
from gpubench.datasets.facts import DataFacts
from gpubench.results.stored_lines import (
    LineShapes,
    MeasuredTimes,
    StoredWindows,
    TimesAlone,
    make_window,
    measured_times,
    stored_epochs,
    times_of_checked,
)
from gpubench.schema.attempt_ids import folder_of, is_attempt_id
from gpubench.schema.codes import DECODED, decode_record
from gpubench.schema.columns import BY_NAME, EPOCH_COLUMNS, HUGE, NODE_COLUMNS, Amount, Count, Signed
from gpubench.schema.record import (
    RECORD_SCHEMA,
    AskedFields,
    Record,
    ResultColumns,
    Span,
    is_needed,
)
from gpubench.schema.trial_fields import FIELDS, TYPES
from gpubench.schema.validation import REFUSED, InvalidValueError, convert, with_bounds

MOST_ATTEMPTS = 1_000_000
"""Nobody makes more at one unit: a larger number has been damaged."""


MOST_WARNINGS = 1_000
"""Of one record: more are no work of gpubench."""
LARGEST_WARNINGS = 1 << 20
"""Bytes of all of them: to parse more takes seconds."""


LONGEST = 250
"""Signs of a reason: it may quote the file."""


class DamagedError(Exception):
    """A record that can't be used. The message says why, in a few words that follow the file's name."""


class NewerError(DamagedError):
    """One that is whole, and of a later version."""


def read(
    path: Path | str, known: KnownParts | None = None, parts: CheckedParts | None = None
) -> list[Record]:
    """The attempt in a file of the records folder: one record, or one for each job of a group.

    Every value has its column's type and range, and the file has the attempt's name. Raises DamagedError. `known`: what
    was read before of the same folder. `parts`: the file's `check_file`, where somebody has read it already.
    """
    name = os.path.basename(path)  # noqa: PTH119 - a Path takes longer than all of this
    if parts is not None and known is not None and (record := _build_record(parts, known)) is not None:
        return _check_name(name, record.trial_id, [record])
    try:
        text = read_regular(path)
    except OSError as error:
        raise DamagedError(f"can't be read ({error.strerror})") from None
    return parsed(name, text, known)


def check_file(path: Path | str, known: KnownParts) -> CheckedParts | None:
    """The parts of the record in a file, checked; None where it is a group's, or must be read whole.

    It says nothing of what is wrong: `read` does, of the file itself. `known`: as there. Nothing is in them but plain
    values and texts, those that are alike in several records as one object: so they take little time to be handed from
    one process to another.
    """
    if os.path.basename(path).startswith(OF_A_GROUP):  # noqa: PTH119 - likewise
        return None
    try:
        parts = _check_parts(read_regular(path), known)
    except (OSError, DamagedError):
        return None
    return None if parts is None else [part.text if type(part) is KnownPart else part for part in parts]


OF_A_GROUP = "g"
"""How the name of its file begins."""


def parsed(name: str, text: bytes, known: KnownParts | None = None) -> list[Record]:
    """The attempt in the text of a file of that name, likewise."""
    is_group = name.startswith(OF_A_GROUP)
    if known is not None and not is_group and (record := _read_by_parts(text, known)) is not None:
        return _check_name(name, record.trial_id, [record])
    return _check_name(name, *_read_whole(text, _GROUP if is_group else _RECORD))


def _check_name(name: str, unit_id: str, jobs: list[Record]) -> list[Record]:
    """The records of an attempt, where the file is called as it is. Raises DamagedError."""
    first_job = jobs[0]
    if name != (expected := f"{unit_id}-{first_job.attempt_name}.json"):
        raise DamagedError(f"says that it is {clean(expected[:100])}")
    if first_job.attempt_id:
        if not is_attempt_id(first_job.attempt_id, first_job.attempt):
            raise DamagedError("has an id that no attempt has")
        folder_id = folder_of(first_job.attempt_id)
        for job in jobs:
            job.place(folder_id)
    return jobs


def _read_whole(text: bytes, shape: Any) -> tuple[str, list[Record]]:
    """The unit's id, and the records of the attempt. Raises DamagedError."""
    content, is_json = _parse(text)
    jobs: Any = content.get("jobs") if shape is _GROUP and isinstance(content, dict) else [content]
    try:
        convert(_as_checked(content), shape, table="an object in braces")
    except InvalidValueError as error:
        raise _describe_damage(error, [content, *jobs] if isinstance(jobs, list) else [content]) from None
    if not is_json:
        raise DamagedError("is not JSON (half written?)")
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
            raise DamagedError("is not JSON (half written?)") from None


def _as_checked(content: Any) -> Any:
    """A record, or the records of a group, as their types have them: without an empty object for no span."""
    if isinstance(content, dict) and isinstance(content.get("jobs"), list):
        return content | {"jobs": list(map(_as_checked, content["jobs"]))}
    return content | {"span": None} if isinstance(content, dict) and content.get("span") == {} else content


def _make_record(content: dict[str, Any]) -> Record:
    """The record of values that were checked already."""
    values = content | {"trial": AskedFields.keeping(content["trial"])}
    if "result" in content:
        values["result"] = ResultColumns.keeping(content["result"])
    if content.get("span") is not None:
        span = content["span"]
        values["span"] = Span(launched=span["launched"], finished=span["finished"]) if span else None
    if isinstance(content.get("windows"), list):
        values["windows"] = [make_window(line) for line in content["windows"]]
    return Record.of_checked(values)


# ---- parts that many records share ----


class KnownPart(NamedTuple):
    """A part that many records share."""

    text: bytes
    value: Any
    """What the text says, checked. Nobody changes it."""


@dataclass(frozen=True, slots=True)
class KnownParts:
    """What was read of a folder's records, for those that are read after them.

    Most of a record is what others say in the same words: the machine, the variant, why columns are empty. It is parsed
    and checked once and kept once: of 10,000 records that takes a fifth off the memory (309 against 380 MB).
    """

    parts: dict[tuple[str, bytes], KnownPart] = field(default_factory=dict)
    """By the name and the text of each."""
    sources: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    """Likewise where sampled figures come from, of which counts of samples differ: by their values."""
    shapes: LineShapes = field(default_factory=dict)
    """What lists of epochs are alike in."""
    without: Collection[str] = ()
    """Parts that nobody will ask for, of OWN: they are checked, and not kept. Of epochs their times are."""


SHARED = frozenset(
    {
        "variant_definition",
        "data",
        "resolved",
        "missing",
        "environment",
        "together",
        "doubts",
        "provenance",
    }
)
"""Parts that many records share."""
IDS = ("trial_id", "config_id")
OWN = ("trial", "result", "epochs", "windows", "span", "phases")
"""Those that are a record's own."""


CheckedParts = Sequence[Any]
"""A record's parts in the order of its fields, checked: words and numbers as they are, those that many records share as
KnownPart, others as their texts in bytes, epochs of which only the times are kept as the two tuples of these, and
ABSENT."""
ABSENT = ...
"""Stands for a part that a record lacks, or that nobody will ask for: as plain as words and numbers."""


def _read_by_parts(text: bytes, known: KnownParts) -> Record | None:
    """The record in a text, of which each part is checked by itself; None for one that must be read whole, to be
    refused with a reason if need be.

    Its epochs and their windows are kept in little room until somebody asks for them.
    """
    parts = _check_parts(text, known)
    return None if parts is None else _build_record(parts, known)


def _check_parts(text: bytes, known: KnownParts) -> CheckedParts | None:
    """The parts of the record in a text; None for one that must be read whole."""
    try:
        texts = msgspec.structs.astuple(_TEXTS.decode(text))
        parts: list[Any] = [ABSENT if part is msgspec.UNSET else part for part in texts]
        for place, name in _WITH_TEXTS:
            if parts[place] is not ABSENT:
                parts[place] = _check_text(name, bytes(parts[place]), known)
    except REFUSED:
        return None
    return parts


def _check_text(name: str, text: bytes, known: KnownParts) -> Any:
    """A part that has a text of its own, as one of CheckedParts. Raises what `_check_parts` catches, and DamagedError
    for what would take long to parse."""
    if name == "doubts" and len(text) > LARGEST_WARNINGS:
        raise DamagedError(f"is damaged: doubts must have at most {MOST_WARNINGS:,} parts")
    if name in SHARED:
        return _share(name, text, known)
    if name not in known.without:
        _CHECKS[name].decode(text)
        return text
    # Of what nobody asks for nothing is parsed: of epochs that takes twice as long as to check them.
    try:
        checked = _WHOLE_CHECKS[name].decode(text)
    except REFUSED:
        checked = None
    if name != "epochs":
        if checked is None:
            _CHECKS[name].decode(text)
            msgspec.json.decode(text)
        return ABSENT
    times = None if checked is None else times_of_checked(checked)
    if times is None:
        _CHECKS[name].decode(text)
        times = measured_times(msgspec.json.decode(text))
    return tuple(times)


def _build_record(parts: CheckedParts, known: KnownParts) -> Record | None:
    """The record of these parts; None for one that must be read whole."""
    values = dict(zip(_PART_NAMES, parts, strict=True))
    try:
        for place, name in _WITH_TEXTS:
            part = parts[place]
            kind = type(part)
            if kind is KnownPart:
                values[name] = part.value
            elif kind is bytes:
                values[name] = _parse_text(name, part, known)
            elif kind is tuple:
                values[name] = TimesAlone(MeasuredTimes(*part))
    except (*REFUSED, ValueError):  # deeper in the stack than it was checked, nesting may be too deep
        return None
    for name in _WORDS:  # alike in most records
        if type(word := values[name]) is str:
            values[name] = sys.intern(word)
    return _make_record({name: part for name, part in values.items() if part is not ABSENT})


def _parse_text(name: str, text: bytes, known: KnownParts) -> Any:
    """The value of a part that has a text of its own, which was checked. Raises ValueError."""
    if name in SHARED:
        return _share(name, text, known).value
    part = msgspec.json.decode(text)
    if name == "epochs":
        return stored_epochs(text, part, known.shapes)
    return StoredWindows(text) if name == "windows" else part


def _share(name: str, text: bytes, known: KnownParts) -> KnownPart:
    """A part that many records share, kept once. Raises ValueError where it is refused."""
    part = known.parts.get((name, text))
    if part is None:
        _CHECKS[name].decode(text)
        part = known.parts[name, text] = KnownPart(text, _decoded(name, msgspec.json.decode(text), known))
    return part


def _decoded(name: str, value: Any, known: KnownParts) -> Any:
    """The value of a part, with words in place of codes."""
    decoded = DECODED[name](value) if name in DECODED else value
    if name != "provenance":
        return decoded
    return {column: _share_source(source, known) for column, source in decoded.items()}


def _share_source(source: Any, known: KnownParts) -> Any:
    """A source, kept once; but for one of another version, under whose names there may be lists."""
    try:
        return known.sources.setdefault(tuple(source.items()), source) if isinstance(source, dict) else source
    except TypeError:
        return source


def _describe_damage(error: InvalidValueError, parts: Sequence[Any]) -> DamagedError:
    """What is wrong, in a few words; of a newer version only that, for all else may be new as well.

    `parts`: all that may tell its version.
    """
    for part in parts:
        version = part.get("schema_version") if isinstance(part, dict) else None
        if type(version) is int and version > RECORD_SCHEMA:
            return NewerError(
                f"was written by a newer gpubench (schema_version {str(version)[:20]}); update gpubench to read it"
            )
    return DamagedError(clean(f"is damaged: {error}", LONGEST))


# ---- what may stand where ----


def _part(name: str, kinds: Mapping[str, Any], needed: Collection[str] = (), *, whole: bool = False) -> Any:
    """Values by name, each absent or null if need be, but for those that are `needed`.

    Names of other versions are let through: nobody reads them. `whole`: they are refused. msgspec skips their values,
    so what it lets through without them is JSON throughout, and need not be parsed to know that.
    """
    parts = [(key, kind) if key in needed else (key, kind | None, None) for key, kind in kinds.items()]
    return msgspec.defstruct(name, parts, kw_only=True, gc=False, forbid_unknown_fields=whole)


def _bound_fact(kind: Any) -> Any:
    """A type of facts of images, which have no bounds of their own, as fields of trials and columns have."""
    if kind is int:
        return Annotated[int, Meta(ge=-int(HUGE), le=int(HUGE))]
    return _bound_fact(int) | None if get_args(kind) == (int, type(None)) else kind


_NAMES = {
    name: with_bounds(TYPES[name]) if name in FIELDS else column.holds for name, column in BY_NAME.items()
}
_COLUMNS = _part("_Columns", _NAMES)
_RESOLVED = _part("_Resolved", {**_NAMES, "cpu_ids": list[Count], "gpu_uuids": list[str]})
_DATA = _part("_Data", {name: _bound_fact(kind) for name, kind in get_type_hints(DataFacts).items()})
_OF_EPOCHS = {c.name: c.holds for c in EPOCH_COLUMNS[2:-1]}
_NEEDED_OF_EPOCHS = ("epoch", "warmup", "epoch_time_s")
_EPOCH = _part("_Epoch", _OF_EPOCHS, needed=_NEEDED_OF_EPOCHS)
_WHOLE_EPOCH = _part(
    "_Epoch",
    {**_OF_EPOCHS, "steady_wait_s": Any, "data_wait_s_by_rank": Any},
    needed=_NEEDED_OF_EPOCHS,
    whole=True,
)
"""With what this version stores besides columns."""
_NODE = _part(
    "_Node", {c.name: c.holds for c in NODE_COLUMNS} | {"gpu_uuids": list[str]}, needed=("node", "ranks")
)


class _Shape(msgspec.Struct, kw_only=True, gc=False): ...


class _Window(_Shape):
    epoch: Count
    t0: Signed
    t1: Signed


class _WholeWindow(_Window, forbid_unknown_fields=True): ...


class _Span(_Shape):
    launched: Signed
    finished: Signed


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
    "windows": list[_Window],
    "span": _Span | None,
    "nodes": list[_NODE],  # type: ignore[valid-type]
    "phases": _Seconds,
    "together": _Together,
}
_KINDS = {name: _PARTS.get(name, _HINTS[name]) for name in _STORED}


def _shape(name: str, kinds: Mapping[str, Any], needed: Collection[str]) -> Any:
    """What a whole file may say. A value that is absent may not be null, but for what has nothing else to be."""
    parts = [(key, kind) if key in needed else (key, kind, None) for key, kind in kinds.items()]
    return msgspec.defstruct(name, parts, kw_only=True, gc=False, forbid_unknown_fields=True)


_NEEDED = {name for name, info in _STORED.items() if is_needed(info)}
_RECORD = _shape("_Record", _KINDS, _NEEDED)
"""A record as it may be stored. Only looked at: what is kept is the Record, whose values stay as they were written."""


_OF_GROUP = {"group_id": None, "attempt": 1, "attempt_id": ""}
"""What all jobs of an attempt at a group have in common, and what it is where it is not told."""


def _check_group(group: Mapping[str, Any]) -> None:
    """Raises DamagedError for jobs that are not of one attempt."""
    for job in group["jobs"]:
        if any(job.get(name, absent) != group.get(name, absent) for name, absent in _OF_GROUP.items()):
            raise DamagedError("is damaged: its jobs are not all of this attempt at this group")
        if job.get("group") is None or job.get("job") is None:
            raise DamagedError("is damaged: a job has no name")


_GROUP: Any = _shape(
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

# ---- of texts ----

_CHECKS = {name: msgspec.json.Decoder(kind) for name, kind in _KINDS.items() if name in OWN or name in SHARED}
_WHOLE_CHECKS: dict[str, msgspec.json.Decoder[Any]] = {
    "epochs": msgspec.json.Decoder(list[_WHOLE_EPOCH]),  # type: ignore[valid-type]
    "windows": msgspec.json.Decoder(list[_WholeWindow]),
    "phases": msgspec.json.Decoder(_Seconds),
}
"""Of the parts that somebody may not ask for."""
_PART_NAMES = tuple(_STORED)


def _declare_text(name: str) -> tuple[str, Any] | tuple[str, Any, Any]:
    """A part as it is found in a record's text: itself where it is a word or a number, else its own text."""
    kind = msgspec.Raw if name in _CHECKS else _KINDS[name]
    return (name, kind) if name in _NEEDED else (name, kind | msgspec.UnsetType, msgspec.UNSET)


_TEXTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Texts", map(_declare_text, _PART_NAMES), forbid_unknown_fields=True, kw_only=True, gc=False
    )
)
_WITH_TEXTS = tuple((place, name) for place, name in enumerate(_PART_NAMES) if name in _CHECKS)
"""Place and name of the parts that have texts of their own."""
_WORDS = tuple(name for name in _PART_NAMES if name not in _CHECKS and name not in IDS)
