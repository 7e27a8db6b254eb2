"""What pydantic finds wrong with a value, and TOML's reader with a text, in plain words."""

from __future__ import annotations

import dataclasses
import datetime
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails
from typing_extensions import is_typeddict

from gpubench.basics.errors import nearest
from gpubench.basics.quoted import shown

_BOUNDS: Mapping[str, str] = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
"""Attribute of a constraint -> how it is said."""
_LONG = 1e15
"""From here on a limit has more digits than anybody counts."""
_OUT_OF_BOUNDS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_NUMBER, _TEXT, _LIST, _TABLE = "a number", "a text in quotes", "a list", "a table"
_WHOLE, _TRUTH = "a whole number", "true or false"
_ARMS: Mapping[Any, str] = {str: _TEXT, float: _NUMBER, list: _LIST, dict: _TABLE}
"""Types that a field may give the choice of, in words."""
_KINDS: Mapping[str, str] = {
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "bool_type": _TRUTH,
    "bool_parsing": _TRUTH,
    "string_type": _TEXT,
    "string_pattern_mismatch": "letters, digits, dots, dashes and underscores, a letter or a digit first",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "dataclass_type": _TABLE,
}
"""pydantic's type of an error -> what the value must be. Its own words are for programmers."""
_LENGTHS: Mapping[str, str] = {
    "too_short": "it has too few parts",
    "too_long": "it has too many parts",
    "string_too_long": "it is too long",
    "missing": "it is missing",
    "missing_argument": "it is missing",
    "unexpected_keyword_argument": "there is no such field",
}
"""pydantic's type of an error about how much there is -> what is said of it."""
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
    said = str(error)
    words = next((words for begins, words in _TOML.items() if re.match(begins, said)), "it is no TOML")
    line = re.search(r"\(at line (\d+), column \d+\)$", said)
    return f"line {line[1]}: {words}" if line else f"its last line: {words}"


def error_message(
    error: ErrorDetails,
    model: type[BaseModel],
    table: str = _TABLE,
    typed: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """`until_top1 must be above 0 and below 100, not 200`: one error of a value of `model`, in one line.

    `table`: what holds values by name where the value stands. `typed`: what the user calls a field, where that is not
    its name.
    """
    place, held, choice = _place(model, error["loc"])
    name = ".".join([*(typed.get(one, one) for one in place[:1]), *place[1:]]) or "it"
    given = error["input"]
    if error["type"] == "missing":
        return f"{name} is missing"
    if error["type"] == "extra_forbidden":
        return f"{name} is no known name"
    if error["type"] == "value_error":  # our own words: what is wrong with this value, or with all of it
        own = str(error["ctx"]["error"])
        return f"{name} {own}" if place else own
    if error["type"] == "too_short":
        return f"{name} has too few parts"
    if (
        error["type"] == "list_type"
        and place in (["group"], ["zip"], ["exclude"])
        and isinstance(given, Mapping)
    ):
        return f"[{place[0]}] is one of several: write [[{place[0]}]]"
    kind = error["type"]
    if (
        kind == "float_type" and isinstance(given, int) and not isinstance(given, bool)
    ):  # larger than any float
        limits = " and ".join(_bounds(held))
        kind = "less_than" if "below" in limits or "at most" in limits else "finite_number"
    must = choice or _must(kind, held)
    if must is None:
        return f"{name} does not take {_said(given)}"
    must = must.replace(_TABLE, table)
    # 2.0 is no whole number, and "a whole number, not 2" would say nothing.
    said = shown(given) if kind == "int_type" and isinstance(given, float) else _said(given)
    near = None
    if kind == "literal_error" and isinstance(
        given, str
    ):  # all are listed, so only what is surely meant is named
        near = nearest(given, map(str, _choices(held)), cutoff=1.0)
    advice = f"; did you mean {near}?" if near else ""
    return f"{name} must be {must}" + ("" if isinstance(given, Mapping) else f", not {said}{advice}")


def why_wrong(kind: str, limits: Mapping[str, Any]) -> str:
    """What is wrong with a value, in a few words: `it must be a number`. For errors whose model nobody asks about.

    `kind`: pydantic's type of the error. `limits`: its context, which holds the bound that the value has broken.
    """
    if kind in _LENGTHS:
        return _LENGTHS[kind]
    broken = [f"{words} {_said(limits[name])}" for name, words in _BOUNDS.items() if name in limits]
    must = _KINDS.get(kind) or " and ".join(broken)
    return f"it must be {must}" if must else "it is none of the values that it may have"


def first(errors: Sequence[ErrorDetails], model: type[BaseModel]) -> ErrorDetails:
    """The error to tell of: the first one, or what is wrong deeper inside the same value.

    Where a value may be of several types, pydantic says of each why it isn't that.
    """
    top = _place(model, errors[0]["loc"])[0]
    same = [(place, e) for e in errors if (place := _place(model, e["loc"])[0])[: len(top)] == top]
    return max(same, key=lambda one: len(one[0]))[1]


def _place(model: type[BaseModel], loc: Sequence[int | str]) -> tuple[list[str], Any, str | None]:
    """Where an error lies: its keys, the annotation there or above, and in words what types are the choice there.

    Between the keys pydantic names the one of several types that it tried.
    """
    held: Any = model
    place: list[str] = []
    choice = None
    parts = list(loc)
    while parts:
        arms = [arm for arm in typing.get_args(held) if arm is not type(None)] if _is_union(held) else []
        if len(arms) > 1:
            tried = str(parts.pop(0)).partition("[")[0]
            choice = " or ".join(_ARMS.get(typing.get_origin(arm) or arm, _TABLE) for arm in arms)
            held = next(arm for arm in arms if (typing.get_origin(arm) or arm).__name__ == tried)
            continue
        choice = None
        held = _inside(arms[0] if arms else held, parts[0])
        place.append(str(parts.pop(0)))
    return place, held, choice


def _is_union(held: Any) -> bool:
    return typing.get_origin(held) in (typing.Union, types.UnionType)


def _inside(held: Any, key: int | str) -> Any:
    """The annotation of what lies at `key` of a value that `held` describes."""
    bare = _bare(held)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        field = bare.model_fields.get(str(key))
        return field.rebuild_annotation() if field else Any
    if dataclasses.is_dataclass(bare) or is_typeddict(bare):
        found = typing.get_type_hints(bare, include_extras=True).get(str(key), Any)
        return typing.get_args(found)[0] if typing.get_origin(found) is typing.NotRequired else found
    inner = typing.get_args(bare) or (Any,)
    return inner[-1] if typing.get_origin(bare) is dict else inner[0]


def _bare(held: Any) -> Any:
    """The annotation without the constraints that stand beside it, and without the None that may be in its place."""
    while True:
        arms = [arm for arm in typing.get_args(held) if arm is not type(None)]
        if not (typing.get_origin(held) is typing.Annotated or (_is_union(held) and len(arms) == 1)):
            return held
        held = arms[0]


def _must(kind: str, held: Any) -> str | None:
    """What a value of annotation `held` has to be, where there are plain words for it."""
    if kind in _OUT_OF_BOUNDS:
        return " and ".join(_bounds(held)) or None
    if kind == "literal_error":
        *most, last = (str(value) for value in _choices(held))
        return f"{', '.join(most)} or {last}" if most else last
    return _KINDS.get(kind)


def _bounds(annotation: Any) -> list[str]:
    """The bounds in an annotation, in words: of `Annotated[float, Field(gt=0)] | None` it is `above 0`."""
    found: list[str] = []
    for part in typing.get_args(annotation):
        found += [
            f"{words} {_said(limit) if abs(limit) < _LONG else format(limit, 'g')}"
            for constraint in (part, *getattr(part, "metadata", ()))
            for attribute, words in _BOUNDS.items()
            if (limit := getattr(constraint, attribute, None)) is not None
        ]
        found += _bounds(part)
    return found


def _choices(annotation: Any) -> list[Any]:
    """The values of a `Literal`, wherever in the annotation it stands."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return list(parts)
    return [value for part in parts for value in _choices(part)]


def _said(value: Any) -> str:
    """The value as it was written: 200, not 200.0. A long one is cut."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the time {value}" if isinstance(value, datetime.time) else f"the date {value}"
    return shown(value).removesuffix(".0") if isinstance(value, float) else shown(value)
