"""The formats in which `gpubench export` hands results over. Imports nothing heavy.

A new format is an entry here, and a file with a function that makes the bytes of a file from results folders. What is a
form of the tables alone (`report/forms.py`) is an entry without a function.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.report.forms import FORMS, Form

if TYPE_CHECKING:
    from gpubench.report.reading import Kept, Reading
    from gpubench.report.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What was asked of a format besides its name."""

    sheet: str = "table"
    """Which of SHEETS is exported, where a format holds one alone."""
    dialect: str = "plain"
    """Which of DIALECTS a CSV is written in."""


PLAINLY = Asked()
"""Nothing besides."""

SHEETS: Mapping[str, str] = {
    "table": "the lines of the tables, repeats and rounds merged",
    "trials": "one line a trial, every column",
    "epochs": "one line an epoch",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format. Its function is named `module:function`, for every `--help` reads these entries."""

    suffix: str
    """How its files end. No two formats share one."""
    help: str
    """What it is, in a few words."""
    function: str = ""
    """Makes the bytes of one file, of all that was read and of what was asked. Empty: `form` does."""
    form: Form | None = None
    """The form of the tables whose text it is."""
    is_text: bool = True
    """Whether a person may read it on a terminal: then it goes to stdout where no file is named."""
    sheets: bool = False
    """Whether it holds one of SHEETS alone, and may be asked for another."""
    dialects: bool = False
    """Whether it is written in one of DIALECTS."""
    package: str = ""
    """What it imports that the core install does not bring."""
    extra: str = ""
    """The optional extra of gpubench that brings it."""

    looks_at: tuple[Kept, ...] = ()
    """What it reads besides rows and tables. Of one that holds a sheet alone, that is only so of the epochs."""

    def keeps(self, asked: Asked) -> tuple[Kept, ...]:
        """What of the folders is to be kept for it."""
        return () if self.sheets and asked.sheet != "epochs" else self.looks_at

    @classmethod
    def of(cls, form: Form) -> Format:
        """What `gpubench table` prints in this form."""
        return cls(form=form, suffix=form.suffix, help=form.help)

    def made(self, readings: Sequence[Reading], asked: Asked) -> bytes:
        """The bytes of the file. Raises UnusableError where a package is missing."""
        if self.form is not None:
            tables = [with_left_out(one, table) for one in readings for table in one.tables]
            return self.form.text(tables).encode(errors="replace")
        if self.package and importlib.util.find_spec(self.package) is None:
            raise UnusableError(
                f"this format needs {self.package}, which is not installed: pip install 'gpubench[{self.extra}]'"
            )
        module, name = self.function.split(":")
        function: Callable[[Sequence[Reading], Asked], bytes] = getattr(importlib.import_module(module), name)
        return function(readings, asked)


def with_left_out(one: Reading, table: Table) -> Table:
    """The table with a line below for each record, or plan, of its folder that can't be read: a file goes further than
    what was said on stderr."""
    return replace(table, doubts=(*table.doubts, *one.left_out))


FORMATS: Mapping[str, Format] = {
    "csv": Format(
        function="gpubench.export.csv_file:made",
        suffix=".csv",
        help="As CSV.",
        sheets=True,
        dialects=True,
        looks_at=("epochs",),
    ),
    "json": Format.of(FORMS["json"]),
    "md": Format.of(FORMS["markdown"]),
    "tex": Format.of(FORMS["latex"]),
    "xlsx": Format(
        function="gpubench.export.xlsx.file:made",
        suffix=".xlsx",
        help="an Excel workbook with every sheet, and charts",
        is_text=False,
        package="xlsxwriter",
        extra="xlsx",
        looks_at=("epochs",),
    ),
    "parquet": Format(
        function="gpubench.export.parquet:made",
        suffix=".parquet",
        help="typed columns for pandas, polars, DuckDB",
        is_text=False,
        sheets=True,
        package="pyarrow",
        extra="parquet",
        looks_at=("epochs",),
    ),
    "html": Format(
        function="gpubench.export.page.page:made",
        suffix=".html",
        help="one web page with pictures, which needs no network",
        is_text=False,
        looks_at=("records", "plans"),
    ),
}
"""Name -> format, in the order of `--help`."""


def format_of(name: str | None, out: Path | None, asked: Asked = PLAINLY) -> Format:
    """The format that was asked for by its name, else by how the file ends, else by what only one of them knows.

    Raises UsageError, for an `asked` that the format does not know, too.
    """
    found = _named(name, out, asked)
    if asked.sheet != PLAINLY.sheet and not found.sheets:
        raise UsageError(
            f"--sheet goes with --format {' or '.join(n for n, f in FORMATS.items() if f.sheets)} alone"
        )
    if asked.dialect != PLAINLY.dialect and not found.dialects:
        raise UsageError(f"--{asked.dialect} goes with --format csv alone")
    return found


def _named(name: str | None, out: Path | None, asked: Asked) -> Format:
    if name is not None:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
        return FORMATS[name]
    suffix = out.suffix.lower() if out is not None else ""
    for one in FORMATS.values():
        if one.suffix == suffix or (not suffix and one.sheets and asked != PLAINLY):
            return one
    why = f"{shown(suffix)} is the ending of none; " if suffix else ""
    raise UsageError(f"--format: {why}say which one: {', '.join(FORMATS)}")
