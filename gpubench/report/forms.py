"""The forms in which tables can be had: on request, and as files of a results folder. Imports nothing heavy.

A new form is an entry here, and a file with a function that makes one text of all tables.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpubench.report.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One way to write tables down. Functions are named `module:function`, for every `--help` reads these entries."""

    tables: str
    """The function that makes one text of all tables."""
    suffix: str
    """How files in this form end."""
    help: str
    """What `--help` says of it, where it is an option of `gpubench table` and where it is a format of an export."""
    is_kept: bool = False
    """Whether each results folder holds its tables in this form, in a file `table` with this ending."""
    is_data: bool = False
    """Whether programs read it: then it is UTF-8 everywhere, whatever signs the terminal knows."""

    @property
    def file(self) -> str:
        """The file of each results folder that holds the tables in this form; empty where none does."""
        return f"table{self.suffix}" if self.is_kept else ""

    def text(self, tables: Sequence[Table]) -> str:
        """All tables in this form."""
        return _function(self.tables)(tables)


FORMS: Mapping[str, Form] = {
    "csv": Form(
        tables="gpubench.report.spreadsheet:text", suffix=".csv", help="As CSV.", is_kept=True, is_data=True
    ),
    "markdown": Form(
        tables="gpubench.report.markdown:text",
        suffix=".md",
        help="As Markdown.",
        is_kept=True,
    ),
}
"""Name -> form, in the order of the options and of the files. Each is an option of `gpubench table`."""


def _function(target: str) -> Callable[[Sequence[Table]], str]:
    module, name = target.split(":")
    found: Callable[[Sequence[Table]], str] = getattr(importlib.import_module(module), name)
    return found
