"""Every error that gpubench raises on purpose, and the exit code that each ends in.

    GpubenchError
    ├── UsageError         2   what was asked for is wrong or senseless
    ├── UnusableError      4   this machine, the data or the results folder can't be used
    └── ResumableError    75  a signal asked to stop, and the same command goes on

The message is one line that says what is wrong and what to do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from gpubench.basics.quoted import LONGEST_SHOWN, shown


class GpubenchError(Exception):
    """Base of all errors that end a command with one line on stderr."""

    exit_code = 1


class UsageError(GpubenchError):
    """Wrong usage or a wrong experiment file."""

    exit_code = 2


class UnusableError(GpubenchError):
    """The environment, the data or the results folder can't be used."""

    exit_code = 4


class ResumableError(GpubenchError):
    """A signal asked to stop; everything is tidied, and the same command goes on."""

    exit_code = 75


ELSEWHERE: Mapping[str, str] = {
    "learningrate": "lr",
    "dtype": "precision",
    "amp": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "dataparallel": "dp",
    "distributeddataparallel": "ddp",
    "fullyshardeddataparallel": "fsdp",
    "latex": "tex",
    "vitbasepatch16": "vit_b_16",
    "vitbasepatch32": "vit_b_32",
    "vitlargepatch16": "vit_l_16",
    "vitlargepatch32": "vit_l_32",
    "vithugepatch14": "vit_h_14",
}
"""What PyTorch, timm and others call a name, in small letters and digits alone -> the name here."""


WHERE_LISTED: Mapping[str, str] = {
    "model": "gpubench data list shows them all",
    "column": "docs/columns.md lists them all, and so does the first line of a folder's trials.csv",
}
"""Kinds of names of which there are too many for a message, and where all stand."""


def unknown(kind: str, name: str, valid: Iterable[str], hint: str = "") -> UsageError:
    """A UsageError for a name that isn't one of `valid`: names the nearest, or lists them all."""
    names = sorted(valid)
    near = suggest_name(name, names)
    if near is not None:
        tail = f"did you mean {near}?"
    elif len(names) <= 40:
        tail = "valid: " + ", ".join(name[:LONGEST_SHOWN] for name in names)
    else:
        tail = f"{len(names)} are known, for example " + ", ".join(names[:5])
    if kind in WHERE_LISTED:
        tail += f"{'' if near else ';'} {WHERE_LISTED[kind]}"
    return UsageError(f"unknown {kind} {shown(name)}: {hint or tail}")


def suggest_name(name: str, valid: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of `valid` that `name` is nearly, or is elsewhere called so; None where none is.

    Of names that are as few slips away, one of the same length: `dpp` is rather `ddp` than `dp`, for a key is sooner
    hit wrongly than once too often.
    """
    short = name[:LONGEST_SHOWN]
    names = sorted(valid)
    by_letters = {_letters(known): known for known in names} | {
        other: known for other, known in ELSEWHERE.items() if known in names
    }
    plain = _letters(short).removesuffix("224")  # timm's names end in the size of the image
    if plain in by_letters:
        return by_letters[plain]
    near = difflib.get_close_matches(short, names, n=5, cutoff=cutoff)
    return min(
        near,
        key=lambda candidate: (_edit_distance(short, candidate), len(candidate) != len(short)),
        default=None,
    )


def _letters(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


def _edit_distance(word: Sequence[str], other: Sequence[str]) -> int:
    """How many letters are to be changed, added or left out to make one word of the other (Levenshtein, 1965)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(word, start=1):
        above, row[0] = row[0], number
        for index, wanted in enumerate(other, start=1):
            above, row[index] = (
                row[index],
                min(row[index] + 1, row[index - 1] + 1, above + (letter != wanted)),
            )
    return row[-1]
