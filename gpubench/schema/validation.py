"""What comes from outside: checked by msgspec, by the types of what it is to become; and in plain words what is wrong.

msgspec is fast, and says what is wrong for programmers. So a value that it refuses is gone through once more, by the
same types, for one line that names the field, the value and what is allowed.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import re
import tomllib
import types
import typing
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from gpubench.basics.errors import suggest_name, unknown
from gpubench.basics.quoted import shown
from gpubench.schema.field import Bounds

T = TypeVar("T")

REFUSED = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What msgspec raises for a text that says something else than its type, or is no JSON."""
_BOUNDS: Mapping[str, str] = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
"""Attribute of a bound -> how it is said."""
_SANE = 1e9
"""From here on a limit is none that people count with: it is named only where a value has broken it."""
_LONG = 1e15
"""From here on a limit has more digits than anybody counts."""
_TABLE = "a table"
_KINDS: Mapping[Any, str] = {
    str: "a text in quotes",
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    dict: _TABLE,
}
"""Types in words."""
_TOML: Mapping[str, str] = {
    r"Expected '=' after a key": "after a name must come = and a value",
    r"Expected '\]": "the name of a table has no ] at its end",
    r"Expected newline": "after a value comes something that does not belong there, or the value is none",
    r"Expected |Unterminated string": "a text has no quote at its end",
    r"Invalid date": "a date or time is none of the calendar",
    r"Invalid hex|Escaped|Unescaped": "a backslash in a text must be written twice",
    r"Invalid initial": "a name must be of letters, digits, dashes and underscores, or stand in quotes",
    r"Invalid statement": "it must read name = value, or [table]",
    r"Invalid value": "a value must be a text in quotes, a number, true, false, a list or a table",
    r"Unclosed array": "a list has no ] at its end",
    r"Unclosed inline": "a table has no } at its end",
    r"Cannot |Duplicate": "a name is given twice",
    r"Illegal character '\\\\n'": "a text has no quote at its end",
    r"Illegal|Found invalid": "it holds a sign that can't stand there",
}
"""How a message of Python's TOML reader begins -> what it means."""


def toml_error_message(error: tomllib.TOMLDecodeError) -> str:
    """`line 3: after a name must come = and a value`."""
    text = str(error)
    words = next((words for begins, words in _TOML.items() if re.match(begins, text)), "it is no TOML")
    line = re.search(r"\(at line (\d+), column \d+\)$", text)
    return f"line {line[1]}: {words}" if line else f"its last line: {words}"


class InvalidValueError(ValueError):
    """A value that its type does not take. The message is one line that names it."""

    def __init__(self, path: Sequence[str], problem: str) -> None:
        """`path`: the keys that lead to the value. `problem`: what is wrong with it."""
        super().__init__(f"{'.'.join(path) or 'it'} {problem}")
        self.path, self.problem = tuple(path), problem

    def named(self, names: Mapping[str, str]) -> str:
        """The message, with what the user calls a field in place of its name."""
        path = [*(names.get(name, name) for name in self.path[:1]), *self.path[1:]]
        return f"{'.'.join(path) or 'it'} {self.problem}"


class UnknownKeyError(InvalidValueError):
    """A name that no field has. The message names the nearest one."""

    def __init__(self, path: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(path, "is no known name")
        self.args = (str(unknown("key", path[-1], known)),)


def convert(value: Any, kind: type[T], table: str = _TABLE) -> T:
    """What a plain value says, as one of this type. Raises InvalidValueError. `table`: what holds values by name."""
    try:
        return msgspec.convert(value, kind, dec_hook=_path)
    except REFUSED as error:
        raise why_wrong(value, kind, table) or InvalidValueError((), f"is refused ({error})") from None


def reader(kind: Any) -> Callable[[Any], Any]:
    """Makes what is of this type, a choice of several perhaps, of plain values. Raises InvalidValueError."""
    return functools.partial(convert, kind=kind)


def plain(value: Any) -> Any:
    """What `convert` makes the same value of again, for JSON to say. A time series may be an array."""
    return msgspec.to_builtins(value, enc_hook=_plain_of_other)


def _plain_of_other(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, array):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} is nothing that JSON can say")


def _path(kind: Any, value: Any) -> Any:
    """A path, of its text: msgspec knows no paths."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"{shown(value)} is no {kind.__name__}")


def why_wrong(value: Any, kind: Any, table: str = _TABLE) -> InvalidValueError | None:
    """The first thing that is wrong with a plain value of this type; None where nothing is."""
    try:
        return _problem(value, kind, (), table)
    except RecursionError:
        return InvalidValueError((), "is nested too deeply")


def with_bounds(kind: Any) -> Any:
    """A type with its Bounds as msgspec knows them."""
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is Annotated:
        bounds = [_meta(part) if isinstance(part, Bounds) else part for part in parts[1:]]
        return Annotated[with_bounds(parts[0]), *bounds]
    if _is_union(kind):
        return typing.Union[*map(with_bounds, parts)]
    return tuple.__class_getitem__((with_bounds(parts[0]), ...)) if typing.get_origin(kind) is tuple else kind


def _meta(bounds: Bounds) -> Meta:
    limits: dict[str, Any] = bounds.given()
    return Meta(**limits)


def _problem(value: Any, kind: Any, path: tuple[str, ...], table: str) -> InvalidValueError | None:
    """The first thing that is wrong with the value that lies at `path`."""
    kind, bounds = _bare(kind)
    if kind is Any:
        return None
    if _is_union(kind):
        return _problem_of_union(value, kind, path, table)
    if typing.get_origin(kind) is Literal:
        return _problem_of_choice(value, typing.get_args(kind), path)
    python_type = _python_type(kind)
    if not _is_of(value, python_type):
        if python_type is list and isinstance(value, Mapping) and len(path) == 1 and _holds_tables(kind):
            return InvalidValueError((f"[{path[0]}]",), f"is one of several: write [[{path[0]}]]")
        must = _KINDS[python_type]
        if python_type is float and _is_number(value):  # larger than any float
            must = _broken_bounds(value, bounds) or "a finite number"
        return _must(path, must.replace(_TABLE, table), value)
    if python_type in (int, float):
        broken = _broken_bounds(value, bounds)
        return _must(path, broken, value) if broken else None
    if python_type is str:
        return _problem_of_text(value, bounds, path)
    if python_type is bool:
        return None
    inner = typing.get_args(kind)
    if python_type is tuple and inner[-1] is not ... and len(value) > len(inner):
        return InvalidValueError(path, "has too many parts")
    for bound in bounds:
        if bound.min_length is not None and len(value) < bound.min_length:
            return InvalidValueError(path, "has too few parts")
        if bound.max_length is not None and len(value) > bound.max_length:
            return InvalidValueError(path, f"must have at most {bound.max_length:,} parts")
    for key, item, held in _parts(value, kind):
        if held is _UNKNOWN:
            return UnknownKeyError((*path, key), list(_fields(kind)))
        if item is _MISSING:
            return InvalidValueError((*path, key), "is missing")
        if problem := _problem(item, held, (*path, key), table):
            return problem
    return None


_UNKNOWN, _MISSING = object(), object()


def _parts(value: Any, kind: Any) -> Iterator[tuple[str, Any, Any]]:
    """Key, value and type of all that a list or a table holds, or should hold. A name that isn't known first: what it
    was meant for is then missing, too."""
    inner = typing.get_args(kind)
    if isinstance(value, (list, tuple)):
        fixed = typing.get_origin(kind) is tuple and inner[-1] is not ...
        for number in range(len(inner) if fixed else len(value)):
            item = value[number] if number < len(value) else _MISSING
            yield str(number), item, inner[number] if fixed else (*inner, Any)[0]
        return
    if not _has_fields(kind):
        keys, held = inner or (Any, Any)
        for key, item in value.items():
            yield str(key), key, keys
            yield str(key), item, held
        return
    fields = _fields(kind)
    if (tag := _tag_field(kind)) and tag in value:
        yield tag, value[tag], Literal.__getitem__(kind.__struct_config__.tag)
    if issubclass(kind, msgspec.Struct) and kind.__struct_config__.forbid_unknown_fields:
        known = {*fields, _tag_field(kind)}
        yield from ((str(key), item, _UNKNOWN) for key, item in value.items() if key not in known)
    for name, (held, is_needed) in fields.items():
        if name in value or is_needed:
            yield name, value.get(name, _MISSING), held


def _problem_of_union(value: Any, kind: Any, path: tuple[str, ...], table: str) -> InvalidValueError | None:
    arms = [arm for arm in typing.get_args(kind) if arm is not types.NoneType]
    tags = {arm.__struct_config__.tag: arm for arm in arms if _tag_field(arm)}
    if tags and isinstance(value, Mapping):
        field = _tag_field(next(iter(tags.values())))
        if field not in value:
            return InvalidValueError((*path, field), "is missing")
        if not isinstance(value[field], str) or value[field] not in tags:
            return _problem_of_choice(value[field], list(tags), (*path, field))
        arms = [tags[value[field]]]
    if value is None and types.NoneType in typing.get_args(kind):
        return None
    problems = [_problem(value, arm, path, table) for arm in arms]
    if None in problems:
        return None
    alike = [
        problem
        for arm, problem in zip(arms, problems, strict=True)
        if _is_of(value, _python_type(_bare(arm)[0]))
    ]
    if alike or len(arms) == 1:
        return (alike or problems)[0]
    must = " or ".join(_KINDS[_python_type(_bare(arm)[0])] for arm in arms)
    return _must(path, must.replace(_TABLE, table), value)


def _problem_of_choice(value: Any, choices: Sequence[Any], path: tuple[str, ...]) -> InvalidValueError | None:
    if any(value == choice and type(value) is type(choice) for choice in choices):
        return None
    *most, last = map(str, choices)
    # All are listed, so only what is surely meant is named.
    near = suggest_name(value, map(str, choices), cutoff=1.0) if isinstance(value, str) else None
    return _must(path, f"{', '.join(most)} or {last}" if most else last, value, near)


def _problem_of_text(value: str, bounds: Sequence[Meta], path: tuple[str, ...]) -> InvalidValueError | None:
    for bound in bounds:
        if bound.max_length is not None and len(value) > bound.max_length:
            return InvalidValueError(path, f"must have at most {bound.max_length:,} characters")
        if bound.pattern is not None and not re.search(bound.pattern, value):
            return _must(path, bound.description or f"of the form {bound.pattern}", value)
    return None


def _must(path: tuple[str, ...], must: str, value: Any, near: str | None = None) -> InvalidValueError:
    """`until_top1 must be above 0 and below 100, not 200`."""
    # 2.0 is no whole number, and "a whole number, not 2" would say nothing.
    quoted = shown(value) if must == _KINDS[int] and isinstance(value, float) else _quoted(value)
    advice = f"; did you mean {near}?" if near else ""
    return InvalidValueError(
        path, f"must be {must}" + ("" if isinstance(value, Mapping) else f", not {quoted}{advice}")
    )


def _broken_bounds(value: float, bounds: Sequence[Meta]) -> str:
    """What a number must be that breaks one of its bounds; empty where it keeps them all."""
    limits = [
        (name, limit, _keeps(name, value, limit))
        for bound in bounds
        for name in _BOUNDS
        if (limit := getattr(bound, name)) is not None
    ]
    if all(is_kept for _, _, is_kept in limits):
        return ""
    if not _is_finite(value):
        return "a finite number"
    return " and ".join(
        f"{_BOUNDS[name]} {format(limit, ',').removesuffix('.0') if abs(limit) < _LONG else format(limit, 'g')}"
        for name, limit, is_kept in limits
        if not is_kept or abs(limit) < _SANE
    )


def _keeps(bound: str, value: float, limit: float) -> bool:
    return {"gt": value > limit, "ge": value >= limit, "lt": value < limit, "le": value <= limit}[bound]


def _is_finite(value: float) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_of(value: Any, python_type: type) -> bool:
    """Whether a value is of one of the plain types that _KINDS has."""
    if python_type is dict:
        return isinstance(value, Mapping)
    if python_type in (list, tuple):
        return isinstance(value, (list, tuple))
    if python_type is float:
        return isinstance(value, float) or (_is_number(value) and abs(value) <= _LARGEST_FLOAT)
    return type(value) is python_type


_LARGEST_FLOAT = int(1.7976931348623157e308)


def _python_type(kind: Any) -> type:
    """The plain Python type of what is of this type."""
    origin = typing.get_origin(kind) or kind
    if _has_fields(origin):
        return dict
    named: type = {Path: str, Sequence: list, Collection: list, Mapping: dict}.get(origin, origin)
    return named


def _has_fields(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))


def _holds_tables(kind: Any) -> bool:
    return any(_python_type(_bare(part)[0]) is dict for part in typing.get_args(kind))


def _tag_field(kind: Any) -> str:
    """Under what name a Struct says which one it is; empty for those that don't."""
    return (kind.__struct_config__.tag_field or "") if hasattr(kind, "__struct_config__") else ""


def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Name -> type of each field of a Struct or a dataclass, and whether it must be given."""
    if issubclass(kind, msgspec.Struct):
        return {field.encode_name: (field.type, field.required) for field in msgspec.structs.fields(kind)}
    types_ = typing.get_type_hints(kind, include_extras=True)
    absent = dataclasses.MISSING
    return {
        field.name: (types_[field.name], field.default is absent and field.default_factory is absent)
        for field in dataclasses.fields(kind)
    }


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _bare(kind: Any) -> tuple[Any, list[Meta]]:
    """A type without what is annotated, and its bounds."""
    bounds: list[Meta] = []
    while typing.get_origin(kind) is Annotated:
        bounds += [part for part in kind.__metadata__ if isinstance(part, Meta)]
        kind = typing.get_args(kind)[0]
    return kind, bounds


def _quoted(value: Any) -> str:
    """The value as it was written: 200, not 200.0. A long one is cut."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the time {value}" if isinstance(value, datetime.time) else f"the date {value}"
    return shown(value).removesuffix(".0") if isinstance(value, float) else shown(value)
