"""What pydantic finds wrong with a value, in plain words."""

from __future__ import annotations

import datetime
import types
import typing
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from gpubench.quoted import shown

_BOUNDS: Mapping[str, str] = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
"""Attribute of a constraint -> how it is said."""
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
}
"""pydantic's type of an error -> what the value must be. Its own words are for programmers."""


def complaint(
    error: ErrorDetails, model: type[BaseModel], typed: Mapping[str, str] = MappingProxyType({})
) -> str:
    """`until_top1 must be above 0 and below 100, not 200`: one error of a value of `model`, in one line.

    `typed`: what the user calls a field, where that is not its name.
    """
    place, held, choice = _place(model, error["loc"])
    name = ".".join([typed.get(place[0], place[0]), *place[1:]])
    given = error["input"]
    if error["type"] == "missing":
        return f"{name} is missing"
    if (
        error["type"] == "list_type"
        and place in (["group"], ["zip"], ["exclude"])
        and isinstance(given, Mapping)
    ):
        return f"[{place[0]}] is one of several: write [[{place[0]}]]"
    must = choice or _must(error["type"], held)
    if must is None:
        return f"{name} does not take {_said(given)}"
    return f"{name} must be {must}" + ("" if isinstance(given, Mapping) else f", not {_said(given)}")


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
            choice = " or ".join(_ARMS[typing.get_origin(arm) or arm] for arm in arms)
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
        return bare.model_fields[str(key)].rebuild_annotation()
    inner = typing.get_args(bare)
    return inner[-1] if typing.get_origin(bare) is dict else inner[0]


def _bare(held: Any) -> Any:
    """The annotation without the constraints that stand beside it."""
    return typing.get_args(held)[0] if typing.get_origin(held) is typing.Annotated else held


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
            f"{words} {_said(limit)}"
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
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the time {value}" if isinstance(value, datetime.time) else f"the date {value}"
    return shown(value).removesuffix(".0") if isinstance(value, float) else shown(value)
