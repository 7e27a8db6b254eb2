"""Text that somebody else wrote (a model's exception, a line of a log, a file's name), as one harmless line."""

from __future__ import annotations

import re

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")
LONGEST = 2000
"""Characters of a reason at most."""
LONGEST_SHOWN = 120
"""Characters of a value in a message; a file's path fits."""


def clean(text: str, longest: int | None = None) -> str:
    """One line without control codes and without what no encoding can say; cut after `longest` characters."""
    # Cut before, too: a pattern over megabytes of an endless line costs seconds.
    plain = ANSI.sub("", text if longest is None else text[: 4 * longest])
    return "".join(sign if sign.isprintable() else " " for sign in plain)[:longest]


def shown(value: object) -> str:
    """A value that somebody wrote, as a message quotes it: in quotes if it is text, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def escaped(text: str) -> str:
    """A file's name as one line of valid text, from which it can be told: what can't be printed is as Python has it."""
    valid = text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in valid)
