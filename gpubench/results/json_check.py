"""What a text of JSON may say, checked by msgspec: in a tenth of the time that pydantic takes, and without a reason.

The types are pydantic's (`stored_record.py`): there is one definition of what may stand in a record. What msgspec
refuses is read again by pydantic, which says why. So it may refuse more than pydantic does, and must not let through
more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

import msgspec
from pydantic import FailFast, Strict
from pydantic.fields import FieldInfo
from typing_extensions import is_typeddict

from gpubench.schema.field import About, Bounds

REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised for a text that says something else, or is none."""

_BOUNDS = {"gt": "gt", "ge": "ge", "lt": "lt", "le": "le", "most": "le"}
"""How bounds are called: here, or where pydantic is told of them (`schema/field.py`) -> in msgspec."""
_NO_BOUNDS = (str, About, Strict, FailFast)
"""What an annotation may tell besides. Where pydantic takes a list for a tuple, msgspec takes fewer."""


def make_decoder(kind: Any, *, whole: bool = False) -> msgspec.json.Decoder[Any]:
    """Decodes texts that say a value of this type, which pydantic checks strictly. What it gives is of little use: a
    whole number may have become another one. Raises TypeError for types of which msgspec may let through more.

    `whole`: refuses names of other versions, too, whose values it would skip: what it lets through is JSON throughout,
    and need not be parsed to know that.
    """
    return msgspec.json.Decoder(convert_type(kind, whole=whole))


def convert_type(kind: Any, *, whole: bool = False) -> Any:
    """The type for msgspec of what pydantic checks strictly as this type. `whole`: without names of other versions."""
    convert = functools.partial(convert_type, whole=whole)
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        fields = [_field(name, hint, convert) for name, hint in kind.__annotations__.items()]
        # No dictionary: ten epochs are checked in half of the time.
        return msgspec.defstruct(kind.__name__, fields, kw_only=True, gc=False, forbid_unknown_fields=whole)
    if origin is Annotated:
        bounds = dict(bound for annotation in inner[1:] for bound in _bounds(annotation))
        base = convert(inner[0])
        return Annotated[base, msgspec.Meta(**bounds)] if bounds else base
    if origin in (Union, UnionType):
        return Union[tuple(map(convert, inner))]  # noqa: UP007 - of so many
    if origin in (list, tuple) and inner[1:] in ((), (...,)):  # JSON knows no tuples
        return list.__class_getitem__(convert(inner[0]))
    if origin is dict:
        return dict.__class_getitem__((inner[0], convert(inner[1])))
    if origin is Literal or kind in (str, int, float, bool, NoneType, Any):
        return kind
    raise TypeError(f"msgspec can't check {kind}")


def _field(name: str, kind: Any, convert: Callable[[Any], Any]) -> tuple[str, Any] | tuple[str, Any, None]:
    """One of the values by name. `convert`: gives the type for msgspec."""
    if get_origin(kind) is NotRequired:
        return name, convert(get_args(kind)[0]), None
    return name, convert(kind)


def _bounds(annotation: object) -> Iterator[tuple[str, Any]]:
    """The bounds in what an annotation tells besides its type. Raises TypeError for what may be more than bounds."""
    if not isinstance(annotation, (FieldInfo, Bounds, *_NO_BOUNDS)):
        raise TypeError(f"msgspec can't check {annotation}")
    for constraint in annotation.metadata if isinstance(annotation, FieldInfo) else (annotation,):
        limits = [
            (msgspec_name, limit)
            for name, msgspec_name in _BOUNDS.items()
            if (limit := getattr(constraint, name, None)) is not None
        ]
        if isinstance(annotation, FieldInfo) and not limits:
            raise TypeError(f"msgspec can't check {constraint}")
        yield from limits
