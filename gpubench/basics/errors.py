"""Every error that gpubench raises on purpose, and the exit code that each ends in.

    GpubenchError
    ├── UsageError         2   what was asked for is wrong or senseless
    ├── UnusableError      4   this machine, the data or the results folder can't be used
    └── ResumableStopError    75  a signal asked to stop, and the same command goes on

The message is one line that says what is wrong and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from gpubench.basics.quoted import LONGEST_SHOWN, quote_value


class GpubenchError(Exception):
    """Base of all errors that end a command with one line on stderr."""

    exit_code = 1


class UsageError(GpubenchError):
    """Wrong usage or a wrong experiment file."""

    exit_code = 2


class UnusableError(GpubenchError):
    """The environment, the data or the results folder can't be used."""

    exit_code = 4


class ResumableStopError(GpubenchError):
    """A signal asked to stop; everything is tidied, and the same command goes on."""

    exit_code = 75


WHERE_LISTED: Mapping[str, str] = {
    "model": "gpubench data list shows them all",
    "column": "docs/columns.md lists them all, and so does the first line of a folder's trials.csv",
}
"""Kinds of names of which there are too many for a message, and where all stand."""


def make_unknown_name_error(kind: str, name: str, valid: Iterable[str], hint: str = "") -> UsageError:
    """A UsageError for a name that isn't one of `valid`: names the nearest, or lists them all."""
    names = sorted(valid)
    near = find_similar_name(name, names)
    if near is not None:
        tail = f"did you mean {near}?"
    elif len(names) <= 40:
        tail = "valid: " + ", ".join(name[:LONGEST_SHOWN] for name in names)
    else:
        tail = f"{len(names)} are known, for example " + ", ".join(names[:5])
    if kind in WHERE_LISTED:
        tail += f"{'' if near else ';'} {WHERE_LISTED[kind]}"
    return UsageError(f"unknown {kind} {quote_value(name)}: {hint or tail}")


def find_similar_name(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `valid` that `name` is nearly; None where none is."""
    return next(
        iter(difflib.get_close_matches(name[:LONGEST_SHOWN], sorted(valid), n=1, cutoff=cutoff)), None
    )
