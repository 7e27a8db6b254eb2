"""What pydantic finds wrong with a value, in plain words."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

_BOUNDS: Mapping[str, str] = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
"""Attribute of a constraint -> how it is said."""
_OUT_OF_BOUNDS = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})
_KINDS: Mapping[str, str] = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "list_type": "a list",
    "dict_type": "a table",
}
"""pydantic's type of an error -> what the value must be."""


def complaint(error: ErrorDetails, model: type[BaseModel]) -> str:
    """`until_top1 must be above 0 and below 100, not 200`: one error of a value of `model`, in one line."""
    place = [str(part) for part in error["loc"]]
    given = error["input"]
    if (
        error["type"] == "list_type"
        and place in (["group"], ["zip"], ["exclude"])
        and isinstance(given, Mapping)
    ):
        return f"[{place[0]}] is one of several: write [[{place[0]}]]"
    must = _must(error["type"], _field(model, place))
    words = f" must be {must}" if must else f": {error['msg']}"
    return ".".join(place) + words + ("" if isinstance(given, Mapping) else f", not {_said(given)}")


def _field(model: type[BaseModel], place: Sequence[str]) -> FieldInfo:
    """The field that an error lies in, or that holds it."""
    field = model.model_fields[place[0]]
    inner = field.annotation
    if len(place) > 1 and isinstance(inner, type) and issubclass(inner, BaseModel):
        return _field(inner, place[1:])
    return field


def _must(kind: str, field: FieldInfo) -> str | None:
    """What a value of the field has to be, where there are plain words for it."""
    if kind in _OUT_OF_BOUNDS:
        return " and ".join([*_bounds(field.metadata), *_bounds_of(field.annotation)]) or None
    if kind == "literal_error":
        *most, last = (str(value) for value in _choices(field.annotation))
        return f"{', '.join(most)} or {last}" if most else last
    return _KINDS.get(kind)


def _bounds(constraints: Iterable[Any]) -> list[str]:
    return [
        f"{words} {_said(limit)}"
        for constraint in constraints
        for attribute, words in _BOUNDS.items()
        if (limit := getattr(constraint, attribute, None)) is not None
    ]


def _bounds_of(annotation: Any) -> list[str]:
    """The bounds inside an annotation: `Annotated[float, Field(gt=0)] | None`."""
    found: list[str] = []
    for part in typing.get_args(annotation):
        found += _bounds(getattr(part, "metadata", ())) + _bounds_of(part)
    return found


def _choices(annotation: Any) -> list[Any]:
    """The values of a `Literal`, wherever in the annotation it stands."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return list(parts)
    return [value for part in parts for value in _choices(part)]


def _said(value: Any) -> str:
    """The value as it was written: 200, not 200.0."""
    return repr(value).removesuffix(".0") if isinstance(value, float) else repr(value)
