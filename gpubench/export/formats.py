"""The formats in which `gpubench export` hands results over. Imports nothing heavy.

A new format is an entry here, and a file with a function that makes the bytes of a file from results folders.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.basics.errors import UnusableError, UsageError, unknown

if TYPE_CHECKING:
    from gpubench.report.reading import Reading


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What was asked of a format besides its name."""

    sheet: str = "table"
    """Which of SHEETS is exported, where a format holds one alone."""
    dialect: str = "plain"
    """Which of DIALECTS a CSV is written in."""


SHEETS: Mapping[str, str] = {
    "table": "the lines of the tables, repeats and rounds merged",
    "trials": "one line a trial, every column",
    "epochs": "one line an epoch",
}
DIALECTS: Mapping[str, str] = {
    "plain": "commas and dots",
    "excel": "as Excel opens it by a double click where it has commas and dots",
    "excel-eu": "semicolons and decimal commas, as Excel opens it in most of Europe",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format. Its function is named `module:function`, for every `--help` reads these entries."""

    function: str
    """Makes the bytes of one file, of all that was read and of what was asked."""
    suffix: str
    """How its files end."""
    help: str
    """What it is, in a few words."""
    is_text: bool = True
    """Whether a person may read it on a terminal: then it goes to stdout where no file is named."""
    sheets: bool = False
    """Whether it holds one of SHEETS alone, and may be asked for another."""
    package: str = ""
    """What it imports that the core install does not bring."""
    extra: str = ""
    """The optional extra of gpubench that brings it."""

    def made(self, readings: Sequence[Reading], asked: Asked) -> bytes:
        """The bytes of the file. Raises UnusableError where a package is missing."""
        if self.package and importlib.util.find_spec(self.package) is None:
            raise UnusableError(
                f"this format needs {self.package}, which is not installed: pip install 'gpubench[{self.extra}]'"
            )
        module, name = self.function.split(":")
        function: Callable[[Sequence[Reading], Asked], bytes] = getattr(importlib.import_module(module), name)
        return function(readings, asked)


FORMATS: Mapping[str, Format] = {
    "csv": Format(
        function="gpubench.export.csv_file:made", suffix=".csv", help="commas between values", sheets=True
    ),
    "md": Format(function="gpubench.export.markdown:made", suffix=".md", help="Markdown"),
    "xlsx": Format(
        function="gpubench.export.xlsx.file:made",
        suffix=".xlsx",
        help="an Excel workbook with every sheet, and charts",
        is_text=False,
        package="xlsxwriter",
        extra="xlsx",
    ),
    "parquet": Format(
        function="gpubench.export.parquet:made",
        suffix=".parquet",
        help="typed columns for pandas, polars, DuckDB",
        is_text=False,
        sheets=True,
        package="pyarrow",
        extra="parquet",
    ),
    "html": Format(
        function="gpubench.export.page.page:made",
        suffix=".html",
        help="one web page with pictures, which needs no network",
        is_text=False,
    ),
}
"""Name -> format, in the order of `--help`."""


def format_of(name: str | None, out: Path | None) -> Format:
    """The format that was asked for by its name, else by how the file ends. Raises UsageError."""
    if name is not None:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
        return FORMATS[name]
    found = [one for one in FORMATS.values() if out is not None and one.suffix == out.suffix.lower()]
    if not found:
        raise UsageError(f"--format: say which one: {', '.join(FORMATS)}")
    return found[0]
