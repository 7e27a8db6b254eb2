"""Stored records read back: the one place where what their files say is checked, by the definition of the columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NamedTuple, NotRequired, Union, get_args, get_origin, get_type_hints

import msgspec
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic_core import from_json
from typing_extensions import TypedDict

from gpubench.basics.quoted import clean
from gpubench.basics.regular_file import read_regular
from gpubench.datasets.facts import DataFacts
from gpubench.results.json_check import REFUSED, convert_type, make_decoder
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
    GroupRecord,
    Record,
    ResultColumns,
    Span,
)
from gpubench.schema.trial_fields import FIELDS, TYPES
from gpubench.schema.validation import error_message, first

MOST_ATTEMPTS = 1_000_000
"""Nobody makes more at one unit: a larger number has been damaged."""


MOST_WARNINGS = 1_000
"""Of one record: more are no work of gpubench."""
LARGEST_WARNINGS = 1 << 20
"""Bytes of all of them: to parse more takes seconds."""


MOST_ERRORS = 10_000
"""More are not gone through: each takes a kilobyte."""


FEW = 20
"""What is wrong with one value stands together: of each type that it might have, why it is none."""


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
    try:
        content = from_json(text)
    except ValueError:
        raise DamagedError("is not JSON (half written?)") from None
    try:
        _reader(shape is _GROUP).validate_python(content)
    except ValidationError as error:
        raise _describe_damage(error, shape) from None
    if shape is _GROUP:
        content["jobs"] = list(map(decode_record, content["jobs"]))
        group = GroupRecord.model_validate(content)
        return group.group_id, group.jobs
    record = _make_record(decode_record(content))
    return record.trial_id, [record]


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
    except (*REFUSED, ValueError):  # an error of pydantic's is a ValueError
        return None
    return parts


def _check_text(name: str, text: bytes, known: KnownParts) -> Any:
    """A part that has a text of its own, as one of CheckedParts. Raises what `_check_parts` catches, and DamagedError
    for what would take long to parse."""
    if name == "doubts" and len(text) > LARGEST_WARNINGS:
        raise DamagedError(f"is damaged: doubts must be at most {MOST_WARNINGS:,}")
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
            from_json(text)
        return ABSENT
    times = None if checked is None else times_of_checked(checked)
    if times is None:
        _CHECKS[name].decode(text)
        times = measured_times(from_json(text))
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
    except ValueError:
        return None
    for name in _WORDS:  # alike in most records
        if type(word := values[name]) is str:
            values[name] = sys.intern(word)
    return _make_record({name: part for name, part in values.items() if part is not ABSENT})


def _parse_text(name: str, text: bytes, known: KnownParts) -> Any:
    """The value of a part that has a text of its own, which was checked. Raises ValueError."""
    if name in SHARED:
        return _share(name, text, known).value
    part = from_json(text)
    if name == "epochs":
        return stored_epochs(text, part, known.shapes)
    return StoredWindows(text) if name == "windows" else part


def _share(name: str, text: bytes, known: KnownParts) -> KnownPart:
    """A part that many records share, kept once. Raises ValueError where it is refused."""
    part = known.parts.get((name, text))
    if part is None:
        part = known.parts[name, text] = KnownPart(text, _check_part(name, from_json(text), known))
    return part


def _check_part(name: str, value: Any, known: KnownParts) -> Any:
    """The value of a part, where it may stand there. Raises ValidationError."""
    _part_reader(name).validate_python({"part": value})
    decoded = DECODED[name](value) if name in DECODED else value
    if name != "provenance":
        return decoded
    return {
        column: known.sources.setdefault(tuple(source.items()), source)
        if isinstance(source, dict)
        else source
        for column, source in decoded.items()
    }


def _describe_damage(error: ValidationError, shape: Any) -> DamagedError:
    """What is wrong, in a few words; of a newer version only that, for all else may be new as well."""
    if error.error_count() > MOST_ERRORS:
        return DamagedError(f"is damaged in {error.error_count():,} places")
    errors = error.errors(include_url=False)
    for details in errors:
        if details["loc"][-1:] == ("schema_version",) and details["type"] == "less_than_equal":
            version = str(details["input"])[:20]
            return NewerError(
                f"was written by a newer gpubench (schema_version {version}); update gpubench to read it"
            )
    message = error_message(first(errors[:FEW], shape), shape, table="an object in braces")
    return DamagedError(clean(f"is damaged: {message}", LONGEST))


# ---- what may stand where ----


_ANY_NAMES = ConfigDict(strict=True, extra="ignore")
"""Names of other versions are let through: nobody reads them."""
_OUR_NAMES = ConfigDict(strict=True, extra="forbid")


def _declare_dict(name: str, kinds: Mapping[str, Any], config: ConfigDict = _ANY_NAMES) -> Any:
    """Values by name, for pydantic: a dictionary, which it checks in two thirds of the time that a model takes."""
    return with_config(config)(TypedDict(name, {**kinds}))  # type: ignore[operator]


def _declare_part(name: str, kinds: Mapping[str, Any], needed: Collection[str] = ()) -> Any:
    """Values by name, each absent or null if need be, but for those that are `needed`."""
    return _declare_dict(
        name, {key: kind if key in needed else NotRequired[kind | None] for key, kind in kinds.items()}
    )


def _check_bounds(value: Any) -> Any:
    """Facts of images have no upper bounds of their own, as fields of trials and columns have."""
    if isinstance(value, int) and not abs(value) <= HUGE:
        raise ValueError(f"must be at most {HUGE:g}")
    return value


def _check_warnings(warnings: dict[str, str]) -> dict[str, str]:
    if len(warnings) > MOST_WARNINGS:
        raise ValueError(f"must be at most {MOST_WARNINGS:,}")
    return warnings


def _convert_to_json(kind: Any) -> Any:
    """A type as JSON has it, which knows no tuples."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        return Annotated[kind, Strict(False)]
    if get_origin(kind) is Annotated:
        return Annotated[_convert_to_json(inner[0]), *kind.__metadata__]
    return (
        Union[*(_convert_to_json(member) for member in inner)]
        if get_origin(kind) in (Union, UnionType)
        else kind
    )


_NAMES = {
    name: _convert_to_json(TYPES[name]) if name in FIELDS else column.holds
    for name, column in BY_NAME.items()
}
_COLUMNS = _declare_part("_Columns", _NAMES)
_RESOLVED = _declare_part("_Resolved", {**_NAMES, "cpu_ids": list[Count], "gpu_uuids": list[str]})
_DATA = _declare_part(
    "_Data",
    {
        name: Annotated[kind, AfterValidator(_check_bounds)]
        for name, kind in get_type_hints(DataFacts).items()
    },
)
_OF_EPOCHS = {c.name: c.holds for c in EPOCH_COLUMNS[2:-1]}
_NEEDED_OF_EPOCHS = ("epoch", "warmup", "epoch_time_s")
_EPOCH = _declare_part("_Epoch", _OF_EPOCHS, needed=_NEEDED_OF_EPOCHS)
_WHOLE_EPOCH = _declare_part(
    "_Epoch", {**_OF_EPOCHS, "steady_wait_s": Any, "data_wait_s_by_rank": Any}, needed=_NEEDED_OF_EPOCHS
)
"""With what this version stores besides columns."""
_NODE = _declare_part(
    "_Node", {c.name: c.holds for c in NODE_COLUMNS} | {"gpu_uuids": list[str]}, needed=("node", "ranks")
)
_WINDOW = _declare_dict("_Window", {"epoch": Count, "t0": Signed, "t1": Signed})
_SPAN = _declare_dict("_Span", {"launched": Signed, "finished": Signed})
_DEFINITION = _declare_part("_Definition", {"files": str, "cpu": list[Any], "gpu": list[Any]})
_CODED = str | list[str]
_SOURCE = _declare_part(
    "_Source",
    {"source": _CODED, "period_s": Amount, "samples": Count, "gaps": Count, "columns": list[str]},
)
"""Of a column, or of a source with the columns that it tells (`schema/codes.py`)."""
_SOLO = _declare_dict("_Solo", {"trial_id": str, "attempt": Count, "attempt_id": NotRequired[str]})
_RESOURCE = _declare_dict(
    "_Resource",
    {
        "name": str,
        "column": str,
        "unit": str,
        "alone": list[Signed | None],
        "together": list[Signed | None],
        "full_alone": list[bool],
        "full_together": bool,
    },
)
_TOGETHER = _declare_part(
    "_Together",
    {
        "jobs": Count,
        "no_prediction": str,
        "undecidable": str,
        "gain_range": _convert_to_json(tuple[Signed, Signed]),
        "solos": list[_SOLO | None],  # type: ignore[valid-type]
        "resources": list[_RESOURCE],  # type: ignore[valid-type]
    },
)
_Version = Annotated[int, Field(ge=1, le=RECORD_SCHEMA)]
_Attempt = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
_Seconds = dict[str, Signed]
_STORED = {name: info for name, info in Record.model_fields.items() if name != "folder_id"}
"""The fields that may stand in a file."""

_PARTS: dict[str, Any] = {
    "schema_version": _Version,
    "attempt": _Attempt,
    "round": _Attempt,
    "trial": _COLUMNS,
    "variant_definition": _DEFINITION,
    "data": _DATA,
    "resolved": _RESOLVED,
    "result": _COLUMNS,
    "environment": _COLUMNS,
    "missing": dict[str, _CODED],
    "doubts": Annotated[dict[str, str], AfterValidator(_check_warnings)],
    "provenance": dict[str, str | _SOURCE | None],  # type: ignore[valid-type]
    "epochs": Annotated[list[_EPOCH], FailFast()],  # type: ignore[valid-type]
    "windows": Annotated[list[_WINDOW], FailFast()],  # type: ignore[valid-type]
    "span": Annotated[_SPAN | None, BeforeValidator(lambda span: None if span == {} else span)],
    "nodes": list[_NODE],  # type: ignore[valid-type]
    "phases": _Seconds,
    "together": _TOGETHER,
}
_RECORD = _declare_dict(
    "_Record",
    {
        name: kind if info.is_required() else NotRequired[kind]
        for name, info in _STORED.items()
        for kind in [_PARTS.get(name, info.annotation)]
    },
    _OUR_NAMES,
)
"""A record as it may be stored. Only looked at: what is told is the Record, whose values stay as they were written."""


_OF_GROUP = {"group_id": None, "attempt": 1, "attempt_id": ""}
"""What all jobs of an attempt at a group have in common, and what it is where it is not told."""


def _check_group(group: dict[str, Any]) -> dict[str, Any]:
    for job in group["jobs"]:
        if any(job.get(name, absent) != group.get(name, absent) for name, absent in _OF_GROUP.items()):
            raise ValueError("its jobs are not all of this attempt at this group")
        if job.get("group") is None or job.get("job") is None:
            raise ValueError("a job has no name")
    return group


_JOBS = Annotated[list[_RECORD], Field(min_length=1), FailFast()]  # type: ignore[valid-type]
_GROUP: Any = Annotated[
    _declare_dict(
        "_Group",
        {
            "schema_version": NotRequired[_Version],
            "group_id": str,
            "attempt": _Attempt,
            "attempt_id": NotRequired[str],
            "jobs": _JOBS,
        },
        _OUR_NAMES,
    ),
    AfterValidator(_check_group),
]


@cache
def _reader(is_group: bool) -> TypeAdapter[Any]:
    """What checks a whole file. Made when it is asked for, as it takes 20 ms."""
    return TypeAdapter(_GROUP if is_group else _RECORD)


@cache
def _part_reader(name: str) -> TypeAdapter[Any]:
    """What checks a part that records share."""
    return TypeAdapter(
        _declare_dict("_Part", {"part": _PARTS.get(name, Record.model_fields[name].annotation)})
    )


# ---- the same for msgspec ----

_CHECKS = {
    name: make_decoder(kind) for name, kind in (_PARTS | {"span": _SPAN | None}).items() if name in OWN
}
_WHOLE_CHECKS = {
    "epochs": make_decoder(list[_WHOLE_EPOCH], whole=True),  # type: ignore[valid-type]
    **{name: make_decoder(_PARTS[name], whole=True) for name in ("windows", "phases")},
}
"""Of the parts that somebody may not ask for."""
_PART_NAMES = tuple(_STORED)


def _declare_text(name: str) -> tuple[str, Any] | tuple[str, Any, Any]:
    """A part as it is found in a record's text: itself where it is a word or a number, else its own text."""
    info = Record.model_fields[name]
    of_parts = name in SHARED or name in _CHECKS
    kind = msgspec.Raw if of_parts else convert_type(_PARTS.get(name, info.annotation))
    return (name, kind) if info.is_required() else (name, kind | msgspec.UnsetType, msgspec.UNSET)


_TEXTS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    msgspec.defstruct(
        "_Texts", map(_declare_text, _PART_NAMES), forbid_unknown_fields=True, kw_only=True, gc=False
    )
)
_WITH_TEXTS = tuple(
    (place, name) for place, name in enumerate(_PART_NAMES) if name in SHARED or name in _CHECKS
)
"""Place and name of the parts that have texts of their own."""
_WORDS = tuple(name for name in _PART_NAMES if name not in SHARED and name not in _CHECKS and name not in IDS)
