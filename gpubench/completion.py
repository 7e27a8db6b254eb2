"""What a shell is told when it completes a word: values of fields, results folders. Imports nothing heavy."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Literal

from gpubench.schema import catalog
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS, TYPES

ASKED = "_GPUBENCH_COMPLETE"
"""The variable by which the library that reads command lines is asked for words."""
FIELD = "_GPUBENCH_COMPLETE_FIELD"
"""Of which field values are asked for, where the shell has taken the word apart at its equals sign."""
SET_OPTIONS = ("--set", "--field", "--where")
"""Options whose values are FIELD=VALUES."""

Completer = Callable[[str], list[str]]

_NAMED: dict[str, Callable[[], Iterable[str]]] = {
    "model": catalog.models,
    "strategy": lambda: catalog.STRATEGIES,
    "variant": lambda: catalog.VARIANTS,
    "optimizer": lambda: catalog.OPTIMIZERS,
    "data": lambda: ("procedural", *catalog.NAMED_DATA),
}


def values_of(field: str) -> list[str]:
    """The values of a field that have names; of numbers none."""
    if field in _NAMED:
        return list(_NAMED[field]())
    found = list(_literals(TYPES[field]))
    if field in FIELDS and DEFAULTS[field] is None and found:
        found.append("auto")
    return found


def _literals(kind: Any) -> Iterator[str]:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        yield from map(str, inner)
    elif kind is bool:
        yield from ("true", "false")
    elif origin is typing.Annotated:
        yield from _literals(inner[0])
    elif origin in (typing.Union, types.UnionType):
        for one in inner:
            yield from _literals(one)


def listed(names: Iterable[str]) -> Completer:
    """Completes the last of several values with commas between them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in taken]

    return complete


def _columns() -> list[str]:
    """The columns that tables may show."""
    # Takes the checker of values with it, which no --help waits for.
    from gpubench.schema.columns import BY_NAME, DERIVED

    return list(dict.fromkeys([*BY_NAME, *(column.name for column in DERIVED), "repeats"]))


def one_of(names: Iterable[str]) -> Completer:
    """Completes one of these."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def columns(incomplete: str) -> list[str]:
    """Completes the last of several columns of tables, also of one that `-` stands before."""
    before, comma, last = incomplete.rpartition(",")
    minus = "-" if last.startswith("-") else ""
    taken = [one.removeprefix("-") for one in before.split(",")]
    names = [name for name in _columns() if name not in taken and name.startswith(last.removeprefix("-"))]
    return [f"{before}{comma}{minus}{name}" for name in names]


def column(incomplete: str) -> list[str]:
    """Completes a column of tables."""
    return [name for name in _columns() if name.startswith(incomplete)]


def condition(incomplete: str) -> list[str]:
    """Completes a condition on a column: its name, and behind an equals sign values that have names."""
    if "=" in incomplete or os.environ.get(FIELD):
        return assignment(incomplete)
    return [f"{name}=" for name in column(incomplete)]


def of_field(field: str) -> Completer:
    """Completes values of a field."""
    return lambda incomplete: listed(values_of(field))(incomplete)


def assignment(incomplete: str) -> list[str]:
    """Completes FIELD=VALUES."""
    if field := os.environ.get(FIELD):
        return of_field(field)(incomplete) if field in ABOUT else []
    name, equals, value = incomplete.partition("=")
    if not equals:
        fields = [field for field in FIELDS if field.startswith(name)]
        # Of a single word the shell thinks that it is whole, and puts a space behind.
        whole = [f"{fields[0]}={one}" for one in values_of(fields[0])] if len(fields) == 1 else []
        return whole if len(whole) > 1 else [f"{field}=" for field in fields]
    return [f"{name}={one}" for one in of_field(name)(value)] if name in ABOUT else []


def results(incomplete: str) -> list[str]:
    """Completes a folder: those of results first, else whatever lies there."""
    parent, slash, _ = incomplete.rpartition("/")
    folders = _folders(Path(parent + slash or "."), incomplete)
    home = Path(os.environ.get("GPUBENCH_OUT", "results"))
    if "/" in incomplete:
        inside = Path(parent + slash)
        return [one for one in folders if inside != home or _may_hold_records(home / Path(one).name)]
    named = [
        f"{home}/{path.name}"
        for path in _children(home)
        if f"{home}/{path.name}".startswith(incomplete) and _may_hold_records(path)
    ]
    return [*named, *(folder for folder in folders if folder != f"{home}/")]


def _may_hold_records(folder: Path) -> bool:
    """Whether it is one of results, or other folders lie in it; notes beside the results are neither."""
    return (folder / "trials.csv").is_file() or bool(_children(folder))


def experiment(incomplete: str) -> list[str]:
    """Completes an experiment file, or a folder on the way to one."""
    parent, slash, last = incomplete.rpartition("/")
    here = Path(parent + slash or ".")
    try:
        files = sorted(path.name for path in here.iterdir() if path.suffix == ".toml" and path.is_file())
    except OSError:
        files = []
    found = [f"{parent}{slash}{name}" for name in files if name.startswith(last)]
    return [*found, *_folders(here, incomplete)]


def _folders(here: Path, incomplete: str) -> list[str]:
    parent, slash, _ = incomplete.rpartition("/")
    found = (f"{parent}{slash}{path.name}/" for path in _children(here))
    return [one for one in found if one.startswith(incomplete)]


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(
            path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))
        )
    except OSError:
        return []


def put_together(environment: MutableMapping[str, str]) -> None:
    """Puts right how bash takes words apart at equals signs, where it asks for the completion of one.

    `--model = res` becomes `--model res`; of `--set model = res` the field is remembered apart, for bash replaces only
    what stands behind the sign.
    """
    if environment.get(ASKED) != "complete_bash":
        return
    words = environment.get("COMP_WORDS", "").split("\n")
    here = int(environment.get("COMP_CWORD", "0") or 0)
    words += [""] * (here + 1 - len(words))
    before, word = words[:here], words[here]
    if word == "=":  # right behind the sign
        before, word = [*before, "="], ""
    if len(before) < 2 or before[-1] != "=":
        return
    name = before[-2]
    if name.startswith("--"):
        before = before[:-1]
    elif len(before) > 2 and before[-3] in SET_OPTIONS:
        environment[FIELD] = name.replace("-", "_")
        before = before[:-2]
    else:
        return
    environment["COMP_WORDS"] = "\n".join([*before, word])
    environment["COMP_CWORD"] = str(len(before))
