"""Frozen dataclasses out of plain JSON values, each field checked by its type, and without a library.

The fork server and what it forks read their messages by this: pydantic would cost them an import, memory, and whatever
plugins of pydantic a user has installed.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Check = Callable[[Any], Any]
"""Makes a value of a field's type out of a plain one. Raises MismatchError."""


class MismatchError(ValueError):
    """A value that is none of its type. The message says where it stands."""

    def __init__(self, what: str, *place: str) -> None:
        super().__init__(f"{'.'.join(place)}: {what}" if place else what)
        self.what, self.place = what, place


def reader(*kinds: type[T]) -> Callable[[Any], T]:
    """Reads the one of these dataclasses whose fields a value has. It raises MismatchError where that is none."""
    return _either(kinds)


@functools.cache
def _check(kind: Any) -> Check:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if isinstance(kind, type) and is_dataclass(kind):
        return functools.partial(_dataclass, kind)
    if kind is Path:
        return lambda value: Path(_plain(str, value))
    if kind is float:
        return lambda value: float(value) if type(value) is int else _plain(float, value)
    if kind in (int, str, bool, types.NoneType):
        return functools.partial(_plain, kind)
    if origin is Literal:
        return functools.partial(_one_of, arguments)
    if origin in (Union, types.UnionType):
        return _either(arguments)
    if origin is tuple:
        return functools.partial(_tuple, arguments)
    if origin is dict and arguments[0] is str:
        return functools.partial(_dict, _check(arguments[1]))
    raise TypeError(f"no value of {kind} is read from JSON")


def _plain(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise MismatchError(f"{_shown(value)} is no {kind.__name__}")
    return value


def _one_of(valid: tuple[Any, ...], value: Any) -> Any:
    if not any(value == choice and type(value) is type(choice) for choice in valid):
        raise MismatchError(f"{_shown(value)} is none of {', '.join(map(repr, valid))}")
    return value


def _either(kinds: tuple[Any, ...]) -> Check:
    def check(value: Any) -> Any:
        wrong = []
        for kind in kinds:
            try:
                return _check(kind)(value)
            except MismatchError as error:
                wrong.append(error)
        # What got farthest is the likeliest to have been meant.
        raise max(wrong, key=lambda error: len(error.place))

    return check


def _tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    items = _plain(list, value)
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(items)
    if len(items) != len(kinds):
        raise MismatchError(f"{len(items)} values, not {len(kinds)}")
    return tuple(
        _within(str(place), kind, item) for place, (kind, item) in enumerate(zip(kinds, items, strict=True))
    )


def _dict(check: Check, value: Any) -> dict[str, Any]:
    return {_plain(str, name): check(item) for name, item in _plain(dict, value).items()}


def _dataclass(kind: type, value: Any) -> Any:
    given: Mapping[str, Any] = _plain(dict, value)
    known, needed = _fields(kind)
    if unknown := sorted(set(given) - set(known)):
        raise MismatchError(f"{kind.__name__} has no {', '.join(map(str, unknown))}")
    if lacking := [name for name in needed if name not in given]:
        raise MismatchError(f"{kind.__name__} without {', '.join(lacking)}")
    return kind(**{name: _within(name, known[name], item) for name, item in given.items()})


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Field -> type, and those that have no default."""
    hints = get_type_hints(kind)
    needed = tuple(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)
    return {f.name: hints[f.name] for f in fields(kind)}, needed


def _within(name: str, kind: Any, value: Any) -> Any:
    try:
        return _check(kind)(value)
    except MismatchError as error:
        raise MismatchError(error.what, name, *error.place) from None


def _shown(value: Any) -> str:
    return repr(value)[:60]


def plain(value: Any) -> Any:
    """What JSON makes of a dataclass or a path: `json.JSONEncoder(default=plain)`. Raises TypeError for all else."""
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    raise TypeError(f"{type(value).__name__} is nothing that JSON can say")
