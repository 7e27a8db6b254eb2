"""What comes from outside: checked by msgspec, by the types of what it is to become; and in plain words what is wrong.

msgspec says what is wrong for programmers, and where. Of its words and the value there is made one line that names the
field, the value and what is allowed.
"""

from __future__ import annotations

import functools
import re
import typing
from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.basics.quoted import LONGEST_SHOWN, clean_line, quote_value
from gpubench.schema.trial_fields import Bounds

T = TypeVar("T")

REFUSED = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What msgspec raises for a text that says something else than its type, or is no JSON."""
_KINDS: Mapping[str, str] = {
    "str": "a text in quotes",
    "float": "a number",
    "int": "a whole number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
"""What msgspec calls a type, in words."""
_LENGTHS: Mapping[str | None, str] = {None: "", ">=": "at least ", "<=": "at most "}
_BOUNDS: Mapping[str, str] = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}


class InvalidValueError(UsageError, ValueError):
    """A value that its type does not take. The message is one line that names it."""

    def __init__(self, path: Sequence[str], problem: str, message: str = "") -> None:
        """`path`: the keys that lead to the value. `problem`: what is wrong with it. `message`: both, where that says
        more."""
        super().__init__(message or f"{'.'.join(path) or 'it'} {problem}")
        self.path, self.problem = tuple(path), problem


def convert_value(value: Any, kind: type[T]) -> T:
    """What a plain value says, as one of this type. Raises InvalidValueError."""
    try:
        return msgspec.convert(value, kind, dec_hook=_decode_path)
    except REFUSED as error:
        raise _translate_error(error, value, kind) from None


def make_converter(kind: Any) -> Callable[[Any], Any]:
    """Makes what is of this type, a choice of several perhaps, of plain values. Raises InvalidValueError."""
    return functools.partial(convert_value, kind=kind)


def convert_to_plain(value: Any) -> Any:
    """What `convert_value` makes the same value of again, for JSON to say. A time series may be an array."""
    return msgspec.to_builtins(value, enc_hook=_convert_path_or_array)


def _convert_path_or_array(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, array):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} is nothing that JSON can say")


def _decode_path(kind: Any, value: Any) -> Any:
    """A path, of its text: msgspec knows no paths."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"{quote_value(value)} is no {kind.__name__}")


def convert_type_bounds(kind: Any) -> Any:
    """A type with its Bounds as msgspec knows them."""
    parts = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is Annotated:
        bounds = [
            Meta(**typing.cast(Any, p.collect_given())) if isinstance(p, Bounds) else p for p in parts[1:]
        ]
        return Annotated[convert_type_bounds(parts[0]), *bounds]
    if type(None) in parts:
        return typing.Union[*map(convert_type_bounds, parts)]
    return tuple.__class_getitem__((convert_type_bounds(parts[0]), ...)) if origin is tuple else kind


_describe_type = functools.cache(inspect.type_info)


def _translate_error(error: Exception, value: Any, kind: Any) -> InvalidValueError:
    """msgspec's error in words of ours."""
    if isinstance(error, RecursionError):
        return InvalidValueError((), "is nested too deeply")
    what, _, where = str(error).rpartition(" - at ") if " - at `" in str(error) else (str(error), "", "")
    path = ["".join(key).replace("...", "*") for key in re.findall(r"\.([^.\[\]`]+)|\[([^\]]*)\]", where)]
    held = _describe_type(kind)
    for key in path:
        value, held = _get_nested_value(value, key), _find_nested_type(held, key)
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return InvalidValueError((*path, missing[1]), "is missing")
    if extra := re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL):
        known = [field.encode_name for arm in _list_union_types(held) for field in getattr(arm, "fields", ())]
        return InvalidValueError(
            (*path, extra[1]),
            "is no known name",
            str(make_unknown_name_error("key", extra[1], known)) if known else "",
        )
    found = "" if value is ... or "of length" in what else f", not {_quote_found_value(value)}"
    return InvalidValueError(path, _describe_allowed(what, held) + found)


def _describe_allowed(what: str, held: Any) -> str:
    if types := re.fullmatch(r"Expected `([a-z |]+)`, got `.*`", what):
        names = [name for name in types[1].split(" | ") if name != "null"]
        return f"must be {' or '.join(_KINDS.get(name, name) for name in names)}"
    if bound := re.fullmatch(r"Expected `(?:int|float)` (\S+) (\S+)", what):
        limit = float(bound[2])
        return f"must be {_BOUNDS[bound[1]]} {f'{limit:,.16g}' if abs(limit) < 1e15 else f'{limit:g}'}"
    if length := re.fullmatch(r"Expected `(\w+)` of length (?:(\S+) )?(\d+).*", what):
        parts = "letters" if length[1] == "str" else "parts"
        return f"must have {_LENGTHS[length[2]]}{int(length[3]):,} {parts}"
    if what == "Number out of range":
        return "must be a number that a computer holds"
    if what.startswith("Invalid enum value"):
        choices = [str(choice) for arm in _list_union_types(held) for choice in getattr(arm, "values", ())]
        if choices:
            return f"must be {' or '.join(filter(None, (', '.join(choices[:-1]), choices[-1])))}"
    return f"is refused: {clean_line(what.replace('`', ''), LONGEST_SHOWN)}"


def _quote_found_value(value: Any) -> str:
    """The value as it was written; of a list or a table only that it is one."""
    if isinstance(value, (list, tuple, Mapping)):
        return _KINDS["object" if isinstance(value, Mapping) else "array"]
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return quote_value(value) if isinstance(value, (str, int, float)) else quote_value(str(value))


def _get_nested_value(value: Any, key: str) -> Any:
    """What lies under a key of a table or at a place of a list; `...` where that is not known."""
    if isinstance(value, Mapping):
        return value.get(key, ...)
    return value[int(key)] if isinstance(value, (list, tuple)) and key.isdecimal() else ...


def _list_union_types(held: Any) -> Sequence[Any]:
    """The types that a value may be of, those of unions in unions, too."""
    return [arm for part in getattr(held, "types", ()) for arm in _list_union_types(part)] or (held,)


def _find_nested_type(held: Any, key: str) -> Any:
    """The type of what lies under a key, as msgspec describes it; None where that is not known."""
    for arm in _list_union_types(held):
        for field in getattr(arm, "fields", ()):
            if field.encode_name == key:
                return getattr(field.type, "type", field.type)
        if (inner := getattr(arm, "value_type", None) or getattr(arm, "item_type", None)) is not None:
            return inner
    return None
