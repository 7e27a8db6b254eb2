"""What kind of value a column holds, by its definition: text, a whole number, a number, yes or no, a list, a time."""

from __future__ import annotations

from datetime import datetime
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from gpubench.schema.columns import MOMENT, Column

Kind = Literal["text", "whole", "number", "yes or no", "list", "moment"]

_KINDS: dict[type, Kind] = {bool: "yes or no", int: "whole", float: "number", tuple: "list", list: "list"}


def find_column_kind(column: Column) -> Kind:
    """The kind of a column's values. One of which nothing is said holds text."""
    return _find_type_kind(column.holds)


def _find_type_kind(holds: Any) -> Kind:
    origin = get_origin(holds)
    if origin is Annotated:
        base, *extras = get_args(holds)
        return "moment" if MOMENT in extras else _find_type_kind(base)
    if origin in (Union, UnionType):
        return next(_find_type_kind(part) for part in get_args(holds) if part is not type(None))
    return _KINDS.get(origin or holds, "text")


def format_value_text(value: Any) -> str:
    """A value in words: lists as 0+1. What is no Unicode, the name of an odd file say, as \\udcff."""
    words = "+".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return words if words.isascii() else words.encode(errors="backslashreplace").decode()


def parse_moment(value: Any) -> datetime | None:
    """The time that a text tells; None where it tells none that can be read."""
    try:
        parsed = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return parsed.replace(tzinfo=None)
