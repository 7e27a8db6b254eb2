"""Values of trial fields as people write them, and back: in text as `16,32`, `16:512:x2`, `0+1`, `12GiB`, and in TOML.

Sizes and times that are no fields are read here, too.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.basics.quoted import quote_value
from gpubench.schema.command import NAME
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS, TYPES
from gpubench.schema.validation import InvalidValueError, convert_type_bounds, convert_value

LONGEST_RANGE = 100_000
BATCH_PER_GPU = "batch_per_gpu"
"""A field of plans only: sets batch_size to this times the devices."""

RIVALS: dict[str, tuple[str, ...]] = {name: about.rivals for name, about in ABOUT.items() if about.rivals}
"""Fields of which one says what the other says: giving one takes the other's place."""


def _unwrap_type(annotation: Any) -> type:
    """The plain Python type behind a field's annotation."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrap_type(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return _unwrap_type(next(a for a in typing.get_args(annotation) if a is not type(None)))
    if origin is Literal:
        return str
    return tuple if origin is tuple else annotation


KINDS: dict[str, type] = {name: _unwrap_type(annotation) for name, annotation in TYPES.items()}
"""Every field that an experiment may give -> the plain Python type of its values."""
_CHECKED: Mapping[str, Any] = {name: convert_type_bounds(annotation) for name, annotation in TYPES.items()}
OPTIONAL: frozenset[str] = frozenset(name for name in FIELDS if DEFAULTS[name] is None)


def check_field_name(name: str) -> str:
    """`name` if it is a trial field; otherwise a UsageError that names the nearest."""
    if name not in KINDS:
        raise make_unknown_name_error("field", name, KINDS)
    return name


def check_name_form(name: str) -> str:
    """`name` if it may be a trial field or a placeholder, whatever the command is. Raises UsageError as above."""
    return name if NAME.fullmatch(name) else check_field_name(name)


def _parse_number(kind: type, text: str | int, field: str) -> Any:
    try:
        value = kind(text)
        is_one = math.isfinite(value)
    except (ValueError, OverflowError):  # the second: a whole number that is larger than every float
        is_one = False
    if not is_one:
        raise UsageError(
            f"{field}: {quote_value(text)} is not {'a whole number' if kind is int else 'a number'}"
        )
    return value


def _parse_bool(text: str, field: str) -> bool:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in known:
        raise UsageError(f"{field}: {quote_value(text)} is neither true nor false")
    return known[text.lower()]


_PARSERS: Mapping[type, Callable[[str, str], Any]] = {
    int: lambda text, field: _parse_number(int, text, field),
    float: lambda text, field: _parse_number(float, text, field),
    bool: _parse_bool,
    str: lambda text, _: text,
    tuple: lambda text, field: tuple(_parse_number(int, part, field) for part in text.split("+")),
}


def _check_percent_sign(value: Any, text: str, called: str) -> None:
    """Raises UsageError for 0.6 per cent that was typed without its sign, for it may be meant as a part of 1."""
    if isinstance(value, float) and 0 < value < 1 and not text.endswith("%"):
        raise UsageError(f"{called} {text}: write {100 * value:g}, or {value:g}% where so little is meant")


def parse_field_value(field: str, text: str) -> Any:
    """One value of a trial field; `auto` leaves it to the machine. What is no field is a command's setting: a text.

    Whether a command has such a setting, `check_known_fields` says.
    """
    text = text.strip()
    check_name_form(field)
    if not text:
        raise UsageError(f"{field}: a value is missing")
    if field not in KINDS:
        return text
    if text == "auto" and field in OPTIONAL:
        return None
    if ABOUT[field].unit == "MiB" and not text.isdigit():
        return parse_mebibytes(text, field)
    if ABOUT[field].unit == "s":
        return parse_seconds(text, field)
    if ABOUT[field].unit == "%":
        text = text.removesuffix("%").strip()
    return _PARSERS[KINDS[field]](text, field)


def parse_field_values(field: str, text: str) -> list[Any]:
    """A list of values: comma-separated single values and ranges."""
    ranges = KINDS.get(field) in (int, float) or (field not in KINDS and _RANGE.fullmatch(text.strip()))
    parsed: list[Any] = []
    for item in text.split(","):
        if ranges and ":" in item:
            parsed.extend(parse_range(field, item.strip()))
        else:
            parsed.append(parse_field_value(field, item))
            if field in KINDS and ABOUT[field].unit == "%":
                _check_percent_sign(parsed[-1], item.strip(), field)
    return list(dict.fromkeys(parsed))


def parse_range(field: str, text: str) -> list[Any]:
    """`first:last:step` or `first:last:xfactor`, both ends included where the step meets them."""
    parts = [part.strip() for part in text.split(":")]
    check_name_form(field)
    if field not in KINDS:
        kind: type = int if all(re.fullmatch(r"-?\d+", part) for part in parts[:2]) else float
        return [format_field_value(value) for value in _list_range(kind, field, text, parts)]
    return _list_range(KINDS[field], field, text, parts)


_RANGE = re.compile(r"[-+.\deE]+:[-+.\deE]+:x?[-+.\deE]+")


def _list_range(kind: type, field: str, text: str, parts: Sequence[str]) -> list[Any]:
    geometric = parts[-1].startswith("x")
    wrong = UsageError(
        f"{field}: {quote_value(text)} is no range: write first:last:step with a step above 0 (16:64:16), or "
        "first:last:xfactor with a factor over 1 (16:512:x2)"
    )
    if len(parts) != 3:
        raise wrong
    first, last = (_parse_number(kind, part, field) for part in parts[:2])
    step = _parse_number(float if geometric else kind, parts[2].removeprefix("x"), field)
    if last < first or step <= (1 if geometric else 0) or (geometric and first <= 0):
        raise wrong
    values: list[Any] = []
    value = first
    while value <= last + 1e-9 * abs(last):
        # Twelve digits: 0.1:0.3:0.1 means the same trials as 0.1,0.2,0.3.
        values.append(round(value) if kind is int else float(f"{value:.12g}"))
        value = value * step if geometric else first + step * len(values)
        if len(values) > LONGEST_RANGE:
            raise UsageError(f"{field}: {quote_value(text)} has more than {LONGEST_RANGE:,} values")
    return values


def format_field_value(value: Any) -> str:
    """A value as one would type it, which `parse_field_value` reads back: 0+1, true, auto."""
    if value is None:
        return "auto"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "+".join(format_field_value(v) for v in value)
    return str(value)


def decode_toml_value(name: str, value: Any) -> Any:
    """A TOML value as the trial field wants it; texts as on the command line where a number or a list may be one."""
    check_name_form(name)
    if name not in KINDS:
        if isinstance(value, (dict, list)):
            raise UsageError(f"{name} is a single value, or an axis under [axes]")
        return format_field_value(value)
    about, kind = ABOUT[name], KINDS[name]
    if isinstance(value, str) and (kind is tuple or about.unit in ("MiB", "s") or value == "auto"):
        return parse_field_value(name, value)
    try:
        return convert_value(value, _CHECKED[name])
    except InvalidValueError as error:
        raise UsageError(f"{'.'.join((name, *error.path))} {error.problem}") from None


def decode_toml_axis(name: str, given: list[Any] | str) -> tuple[Any, ...]:
    """The values of an axis: a TOML list, or a text as on the command line, `"16:512:x2"`."""
    if isinstance(given, str):
        return tuple(parse_field_values(name, given))
    if not given:
        raise UsageError(f"axis {name} has no values")
    return tuple(dict.fromkeys(decode_toml_value(name, v) for v in given))


def encode_toml_value(value: Any) -> Any:
    """A value of a trial field as TOML holds it, which `decode_toml_value` reads back."""
    return "auto" if value is None else list(value) if isinstance(value, tuple) else value


def split_assignments(text: str) -> dict[str, str]:
    """`a=1,b=2` as a dict of texts."""
    texts: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"{quote_value(part)} is not FIELD=VALUE")
        field = check_name_form(name.strip().replace("-", "_"))
        if field in texts:
            raise UsageError(f"{field} is given twice in {quote_value(text)}")
        texts[field] = value
    return texts


_UNITS = {"": 1.0, "MIB": 1.0, "M": 1.0, "MB": 1e6 / 2**20, "GIB": 1024.0, "G": 1024.0, "GB": 1e9 / 2**20}


def parse_mebibytes(text: str, called: str = "memory size") -> int:
    """`12GiB`, `12G`, `800MiB`, `16GB`, `12288` as whole MiB."""
    match = re.fullmatch(r"([0-9.]+)\s*([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _UNITS:
        raise UsageError(f"{called}: {quote_value(text)} is not a memory size; write 12GiB or 800MiB")
    size = _parse_number(float, match[1], called) * _UNITS[match[2].upper()]
    if math.isinf(size):
        raise UsageError(f"{called}: {quote_value(text)} is not a number")
    return int(size)


_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_percent(text: str | float, called: str) -> float:
    """`2%` or 2 as a number of per cent, above 0 and at most 100.

    Below 1 it needs its sign: 0.02 may be meant as a part of 1 or as per cent.
    """
    given = str(text).strip()
    bare = given.removesuffix("%").strip()
    share = float(_parse_number(float, bare, called))
    if not 0 < share <= 100:
        raise UsageError(f"{called}: {quote_value(text)} is not a share above 0 and up to 100 %")
    if share < 1 and bare == given:
        quote = "" if isinstance(text, str) else '"'  # a number in a file becomes a text there
        raise UsageError(f"{called} {bare}: write {quote}{100 * share:g}%{quote} or {quote}{share:g}%{quote}")
    return share


def parse_seconds(text: str | float, called: str = "timeout") -> float:
    """`90`, `90s`, `10m`, `2h` as seconds."""
    match = re.fullmatch(r"([0-9.]+)\s*([a-z]*)", str(text).strip())
    if match is None or match[2] not in _SECONDS:
        raise UsageError(f"{called}: {quote_value(text)} is not a time; write 90s, 10m or 2h")
    value = float(_parse_number(float, match[1], called)) * _SECONDS[match[2]]
    if not 0 < value < math.inf:
        raise UsageError(f"{called}: the time must be longer than 0 and have an end, not {quote_value(text)}")
    return value
