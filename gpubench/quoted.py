"""Text that somebody else wrote (a model's exception, a line of a log, a file's name), as one harmless line."""

from __future__ import annotations

import re

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")
LONGEST = 2000
"""Characters of a reason at most."""


def clean(text: str, longest: int | None = None) -> str:
    """One line without control codes and without what no encoding can say; cut after `longest` characters."""
    # Cut before, too: a pattern over megabytes of an endless line costs seconds.
    plain = ANSI.sub("", text if longest is None else text[: 4 * longest])
    return "".join(sign if sign.isprintable() else " " for sign in plain)[:longest]


def escaped(text: str) -> str:
    """A file's name as one line of valid text, from which it can be told: what can't be printed is as Python has it."""
    valid = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in valid)
