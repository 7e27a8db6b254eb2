"""What `gpubench table` does: results folders are read and their tables are printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.basics.collector import collector_paused
from gpubench.basics.encodable import encodable
from gpubench.basics.errors import UnusableError
from gpubench.commands.opened import all_of, readings, warn
from gpubench.report import choice as choices
from gpubench.report import shown as showing
from gpubench.report import terminal
from gpubench.report.forms import FORMS
from gpubench.report.table import COLUMN


@collector_paused()
def table(
    folders: Sequence[Path] = (),
    *,
    form: str | None = None,
    columns: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
) -> int:
    """`gpubench table`. `form`: a name of FORMS. `where`, `sort`: which rows are shown, and in which order."""
    shown = showing.parse(where, sort)
    choice = choices.parse(columns, COLUMN) if columns is not None else choices.SHOW
    found = readings(folders, choice=choice, keep=())
    code = 0 if all_of(folders, found) else UnusableError.exit_code
    tables = [table for one in found for table in one.tables]
    if shown:
        tables = [shown.of(table) for table in tables]
    console = Console(highlight=False)
    if not form:
        terminal.show(tables, console)
        return code
    told = FORMS[form].text(tables)
    if FORMS[form].is_data:
        if form == "csv" and shown:  # which has no place for a sentence
            for one in tables:
                warn(f"{one.title}: {one.heading[-1]}")
        sys.stdout.buffer.write(told.encode(errors="replace"))
    else:
        sys.stdout.write(encodable(told, console.encoding))
    return code
