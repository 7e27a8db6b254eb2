"""What `gpubench table` does: results folders are read and their tables are printed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from gpubench.basics.collector import collector_paused
from gpubench.basics.encodable import encodable
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands.opened import all_of, readings, warn
from gpubench.plan.values import percent
from gpubench.report import choice as choices
from gpubench.report import shown as showing
from gpubench.report import sources as sources_report
from gpubench.report import terminal
from gpubench.report.forms import FORMS
from gpubench.report.table import COLUMN


@collector_paused()
def table(
    folders: Sequence[Path] = (),
    *,
    form: str | None = None,
    sources: bool = False,
    columns: str | None = None,
    efficiency: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
    by: str | None = None,
) -> int:
    """`gpubench table`. `form`: a name of FORMS. `sources`: where the figures come from, in place of the figures.

    `efficiency`: what several devices are judged by, as typed. `where`, `sort`, `by`: which rows are shown.
    """
    shown = showing.parse(where, sort, by)
    if sources and columns is not None:
        raise UsageError(
            "--sources prints no table, for which --columns would choose the columns; give one of them"
        )
    if sources and shown:
        raise UsageError("--sources tells of all rows; leave --where, --sort and --by out")
    if sources and form and not FORMS[form].sources:
        raise UsageError(f"--{form} is a form of the tables, and --sources prints none; give one of them")
    choice = choices.parse(columns, COLUMN) if columns is not None else choices.SHOW
    if efficiency is not None:
        choice = replace(choice, bound_pct=percent(efficiency, "--efficiency"))
    found = readings(folders, choice=choice, keep=())
    code = 0 if all_of(folders, found) else UnusableError.exit_code
    tables = [table for one in found for table in one.tables]
    if shown:
        tables = [shown.of(table) for table in tables]
    console = Console(highlight=False)
    if not form and not sources:
        terminal.show(tables, console)
        return code
    if not form:
        told = sources_report.text(tables)
    else:
        told = FORMS[form].sources_text(tables) if sources else FORMS[form].text(tables)
    if form and FORMS[form].is_data:
        if form == "csv" and shown:  # which has no place for a sentence
            for one in tables:
                warn(f"{one.title}: {one.heading[-1]}")
        sys.stdout.buffer.write(told.encode(errors="replace"))
    else:
        sys.stdout.write(encodable(told, console.encoding))
    return code
