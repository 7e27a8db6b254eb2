"""Rows by hand: what matters of them by name, fields of the trial and columns alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gpubench.schema.row import ATTRIBUTES, KnownImages, Row, replace


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a row. Details may be given as plain dicts and sentences."""
    if unknown := values.keys() - ATTRIBUTES:
        raise TypeError(f"a row has no {', '.join(sorted(unknown))}")
    own = dict(values)
    if isinstance(own.get("images"), Mapping):
        known = {one.name for one in dataclasses.fields(KnownImages)}
        own["images"] = KnownImages(**{name: value for name, value in own["images"].items() if name in known})
    if texts := own.get("doubt_texts"):
        own["doubt_texts"] = {code: (t,) if isinstance(t, str) else t for code, t in texts.items()}
    return own


def row_with(**values: Any) -> Row:
    """A row with these values."""
    return Row(**_told(values))


def changed(row: Row, **values: Any) -> Row:
    """The row with other values of its columns or of its trial's fields."""
    return replace(row, **_told(values))


def everything(row: Row) -> dict[str, Any]:
    """All that a row says, to be compared with another: no two rows are equal by themselves, nor are those before."""
    return {name: getattr(row, name, None) for name in ATTRIBUTES - {"before"}}
