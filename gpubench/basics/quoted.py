"""Text that somebody else wrote (a model's exception, a line of a log, a file's name), as one harmless line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")
HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Signs that show nothing and change how a terminal or a program shows what stands around them."""
LONGEST = 2000
"""Characters of a reason at most."""
LONGEST_SHOWN = 120
"""Characters of a value in a message; a file's path fits."""


def clean_line(text: str, longest: int | None = None) -> str:
    """One line without control codes and without what no encoding can say; cut after `longest` characters."""
    # Cut before, too: a pattern over megabytes of an endless line costs seconds.
    plain = ANSI.sub("", text if longest is None else text[: 4 * longest])
    return "".join(sign if sign.isprintable() else " " for sign in plain)[:longest]


def format_readable_json(
    data: object, indent: int | None = None, default: Callable[[Any], object] | None = None
) -> str:
    """Data as JSON in which all that people can read stands as it is, and hidden signs as escapes: the same data.

    `default`: makes what JSON can't say into what it can, as of `json.dumps`.
    """
    text = json.dumps(data, ensure_ascii=False, indent=indent, default=default)
    return HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def quote_value(value: object) -> str:
    """A value that somebody wrote, as a message quotes it: in quotes if it is text, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def escape_unprintable(text: str) -> str:
    """A file's name as one line of valid text, from which it can be told: what can't be printed is as Python has it."""
    valid = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in valid)
