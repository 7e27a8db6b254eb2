"""The formats in which `gpubench export` hands results over. Imports nothing heavy: every `--help` reads them.

A new format is an entry here, and a file with a function that makes the bytes of a file from results folders. What is a
form of reports alone (`render/forms.py`) is an entry without a function.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.basics.errors import UnusableError, UsageError, make_unknown_name_error
from gpubench.basics.quoted import quote_value
from gpubench.render.forms import format_reports

if TYPE_CHECKING:
    from gpubench.analyze.folder import Folder


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatOptions:
    """What was asked of a format besides its name."""

    sheet: str = "table"
    """Which of SHEETS is exported, where a format holds one alone."""
    dialect: str = "plain"
    """Which of DIALECTS a CSV is written in."""


DEFAULT_OPTIONS = FormatOptions()
"""Nothing besides."""

SHEETS: Mapping[str, str] = {
    "table": "the lines of the tables, repeats and rounds merged",
    "trials": "one line a trial, every column",
    "epochs": "one line an epoch",
}
TRACKERS = ("mlflow",)
"""Experiment trackers, each a package, to which `--to` hands runs over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format."""

    suffix: str
    """How its files end. No two formats share one."""
    form: str = ""
    """The form of reports whose text it is."""
    function: str = ""
    """Where there is none: `module:function` that makes the bytes of one file, of folders and of options."""
    is_text: bool = True
    """Whether a person may read it on a terminal: then it goes to stdout where no file is named."""
    sheets: bool = False
    """Whether it holds one of SHEETS alone, and may be asked for another."""
    package: str = ""
    """What it imports that the core install does not bring."""

    def write(self, folders: Sequence[Folder], options: FormatOptions) -> bytes:
        """The bytes of the file. Raises UnusableError where a package is missing."""
        if self.form:
            from gpubench.analyze.questions import make_folder_reports  # imports pandas

            return format_reports(self.form, make_folder_reports(folders)).encode(errors="replace")
        check_package_installed("this format", self.package)
        module, name = self.function.split(":")
        content: bytes = getattr(importlib.import_module(module), name)(folders, options)
        return content


def check_package_installed(what: str, package: str) -> None:
    """Raises UnusableError where a package is missing."""
    if package and importlib.util.find_spec(package) is None:
        raise UnusableError(f"{what} needs {package}, which is not installed: pip install {package}")


FORMATS: Mapping[str, Format] = {
    "csv": Format(suffix=".csv", function="gpubench.export.sheets:make_csv", sheets=True),
    "json": Format(suffix=".json", form="json"),
    "md": Format(suffix=".md", form="markdown"),
    "tex": Format(suffix=".tex", form="latex"),
    "xlsx": Format(
        suffix=".xlsx", function="gpubench.export.workbook:make_workbook", is_text=False, package="xlsxwriter"
    ),
    "parquet": Format(
        suffix=".parquet", function="gpubench.export.sheets:make_parquet", is_text=False, sheets=True, package="pyarrow"
    ),
    "html": Format(suffix=".html", function="gpubench.render.page.page:make_page", is_text=False),
}  # fmt: skip
"""Name -> format, in the order of `--help`."""


def find_format(name: str | None, out: Path | None, options: FormatOptions = DEFAULT_OPTIONS) -> Format:
    """The format that was asked for by its name, else by how the file ends, else by what only one of them knows.

    Raises UsageError, for an option that the format does not know, too.
    """
    suffix = out.suffix.lower() if out is not None else ""
    if name is None:
        name = next((known for known, form in FORMATS.items() if form.suffix == suffix), None)
    if name is None and not suffix and options != DEFAULT_OPTIONS:
        name = "csv"
    if name is None:
        why = f"{quote_value(suffix)} is the ending of none; " if suffix else ""
        raise UsageError(f"--format: {why}say which one: {', '.join(FORMATS)}")
    if name not in FORMATS:
        raise make_unknown_name_error("format", name, FORMATS)
    if options.sheet != DEFAULT_OPTIONS.sheet and not FORMATS[name].sheets:
        raise UsageError("--sheet goes with --format csv or parquet alone")
    if options.dialect != DEFAULT_OPTIONS.dialect and name != "csv":
        raise UsageError(f"--{options.dialect} goes with --format csv alone")
    return FORMATS[name]
