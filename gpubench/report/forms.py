"""The forms in which tables can be had: on request, and as files of a results folder. Imports nothing heavy.

A new form is an entry here, and a file with a function that makes one text of all tables.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.basics.errors import UsageError

if TYPE_CHECKING:
    from gpubench.report.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One way to write tables down. Functions are named `module:function`, for every `--help` reads these entries."""

    tables: str
    """The function that makes one text of all tables."""
    sources: str = ""
    """The function that tells in this form where the figures come from. Empty: they are not told in it."""
    help: str = ""
    """What `--help` says of the option of `gpubench table` that is called as the form is. Empty: it has none."""
    file: str = ""
    """The file of each results folder that holds the tables in this form. Empty: none does."""

    def text(self, tables: Sequence[Table]) -> str:
        """All tables in this form."""
        return _function(self.tables)(tables)

    def sources_text(self, tables: Sequence[Table]) -> str:
        """Where the figures of all tables come from, in this form."""
        return _function(self.sources)(tables)


FORMS: Mapping[str, Form] = {
    "csv": Form(tables="gpubench.report.spreadsheet:text", file="table.csv"),
    "markdown": Form(
        tables="gpubench.report.markdown:text",
        sources="gpubench.report.sources:as_markdown",
        help="As Markdown.",
        file="table.md",
    ),
}
"""Name -> form, in the order of the options and of the files."""


def only_one(names: Sequence[str]) -> str | None:
    """The form that was asked for by its option; None for none. Raises UsageError for several."""
    if len(names) > 1:
        raise UsageError(f"--{names[0]} and --{names[1]} are two forms of the same; give one of them")
    return names[0] if names else None


def _function(target: str) -> Callable[[Sequence[Table]], str]:
    module, name = target.split(":")
    found: Callable[[Sequence[Table]], str] = getattr(importlib.import_module(module), name)
    return found
