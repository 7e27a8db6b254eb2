"""HTML from values. What is not `Markup` already is escaped: names, questions and reasons come from users' files."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What may not stand in HTML, or can't be written in UTF-8."""
VOID = frozenset({"input", "meta", "br"})


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def text(value: str) -> Markup:
    """As HTML that shows exactly this."""
    return value if isinstance(value, Markup) else Markup(html.escape(_NO_TEXT.sub("�", value)))


def element(name: str, *children: str | Iterable[str], **attributes: str | bool | None) -> Markup:
    """One element. Attributes are written with dashes for underscores; True: without a value; None and False: not."""
    said = "".join(
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Markup(f"<{name}{said}>")
    return Markup(f"<{name}{said}>{joined(*children)}</{name}>")


def joined(*children: str | Iterable[str]) -> Markup:
    """One after the other."""
    return Markup(
        "".join(
            text(child) if isinstance(child, str) else "".join(text(one) for one in child)
            for child in children
        )
    )


def sentence(value: str) -> Markup:
    """Text in which no option of a command (`--rounds`) is broken between two lines."""
    if isinstance(value, Markup):
        return value
    parts = re.split(r"(--[a-z][a-z0-9-]*)", value)
    return joined(element("span", part, class_="option") if at % 2 else part for at, part in enumerate(parts))


def data(value: Any) -> Markup:
    """A value for a script to read. No text in it can end the script: an angle bracket is written by its number."""
    written = json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(f'<script type="application/json">{written}</script>')


def inline(script_or_style: str) -> Markup:
    """The text of a file of our own, as it is. Raises ValueError where it would end the element that it stands in."""
    if re.search("</(script|style)|<!--", script_or_style, re.IGNORECASE):
        raise ValueError("it would end its element")
    return Markup(script_or_style)
