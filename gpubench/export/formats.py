"""The formats in which `gpubench export` hands results over. Imports nothing heavy.

A new format is an entry here, and a file with a function that makes the bytes of a file from results folders. What is a
form of reports alone (`render/forms.py`) is an entry without a function.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.render.forms import FORMS, Form

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One format. Its function is named `module:function`, for every `--help` reads these entries."""

    suffix: str
    """How its files end. No two formats share one."""
    help: str
    """What it is, in a few words."""
    function: str = ""
    """Makes the bytes of one file, of folders and of options. Empty: `form` does."""
    form: Form | None = None
    """The form of reports whose text it is."""
    is_text: bool = True
    """Whether a person may read it on a terminal: then it goes to stdout where no file is named."""
    sheets: bool = False
    """Whether it holds one of SHEETS alone, and may be asked for another."""
    dialects: bool = False
    """Whether it is written in one of DIALECTS."""
    package: str = ""
    """What it imports that the core install does not bring."""

    def write(self, folders: Sequence[Folder], options: FormatOptions) -> bytes:
        """The bytes of the file. Raises UnusableError where a package is missing."""
        if self.form is not None:
            from gpubench.analyze.questions import report_folders  # imports pandas

            return self.form.write(report_folders(folders)).encode(errors="replace")
        if self.package and importlib.util.find_spec(self.package) is None:
            raise UnusableError(
                f"this format needs {self.package}, which is not installed: pip install {self.package}"
            )
        module, name = self.function.split(":")
        function: Callable[[Sequence[Folder], FormatOptions], bytes] = getattr(
            importlib.import_module(module), name
        )
        return function(folders, options)


def write_csv(folders: Sequence[Folder], options: FormatOptions) -> bytes:
    """One sheet, in the dialect that was asked for."""
    from gpubench.export.sheets import SHEETS as MAKERS
    from gpubench.results.csv_text import DIALECTS

    return MAKERS[options.sheet](folders).write_csv(DIALECTS[options.dialect]).encode(errors="replace")


FORMATS: Mapping[str, Format] = {
    "csv": Format(
        function="gpubench.export.formats:write_csv",
        suffix=".csv",
        help="As CSV.",
        sheets=True,
        dialects=True,
    ),
    **{
        name: Format(form=FORMS[form], suffix=FORMS[form].suffix, help=FORMS[form].help)
        for name, form in (("json", "json"), ("md", "markdown"), ("tex", "latex"))
    },
    "xlsx": Format(
        function="gpubench.export.workbook:write",
        suffix=".xlsx",
        help="an Excel workbook: findings with a chart, and every sheet",
        is_text=False,
        package="xlsxwriter",
    ),
    "parquet": Format(
        function="gpubench.export.parquet:write",
        suffix=".parquet",
        help="typed columns for pandas, polars, DuckDB",
        is_text=False,
        sheets=True,
        package="pyarrow",
    ),
    "html": Format(
        function="gpubench.render.page.page:write",
        suffix=".html",
        help="one web page with pictures, which needs no network",
        is_text=False,
    ),
}
"""Name -> format, in the order of `--help`."""


def find_format(name: str | None, out: Path | None, options: FormatOptions = DEFAULT_OPTIONS) -> Format:
    """The format that was asked for by its name, else by how the file ends, else by what only one of them knows.

    Raises UsageError, for an option that the format does not know, too.
    """
    match = _match_format(name, out, options)
    if options.sheet != DEFAULT_OPTIONS.sheet and not match.sheets:
        raise UsageError(
            f"--sheet goes with --format {' or '.join(n for n, f in FORMATS.items() if f.sheets)} alone"
        )
    if options.dialect != DEFAULT_OPTIONS.dialect and not match.dialects:
        raise UsageError(f"--{options.dialect} goes with --format csv alone")
    return match


def _match_format(name: str | None, out: Path | None, options: FormatOptions) -> Format:
    if name is not None:
        if name not in FORMATS:
            raise unknown("format", name, FORMATS)
        return FORMATS[name]
    suffix = out.suffix.lower() if out is not None else ""
    for candidate in FORMATS.values():
        if candidate.suffix == suffix or (not suffix and candidate.sheets and options != DEFAULT_OPTIONS):
            return candidate
    why = f"{shown(suffix)} is the ending of none; " if suffix else ""
    raise UsageError(f"--format: {why}say which one: {', '.join(FORMATS)}")
