"""What `gpubench table` does: a results folder is read and its tables are printed."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from gpubench.basics.errors import UsageError
from gpubench.commands.opened import opened, warn
from gpubench.report import choice as choices
from gpubench.report import sources as sources_report
from gpubench.report import terminal
from gpubench.report.contents import contents
from gpubench.report.forms import FORMS
from gpubench.report.table import COLUMN
from gpubench.results import kept_noise


def table(
    folder: Path | None,
    *,
    form: str | None = None,
    sources: bool = False,
    columns: str | None = None,
    train_images: int | None = None,
) -> int:
    """`gpubench table`. `form`: a name of FORMS. `sources`: where the figures come from, in place of the figures.

    `train_images`: of how many an epoch is told, in place of those that were trained on.
    """
    if sources and columns is not None:
        raise UsageError(
            "--sources prints no table, for which --columns would choose the columns; give one of them"
        )
    if sources and form and not FORMS[form].sources:
        raise UsageError(f"--{form} is a form of the tables, and --sources prints none; give one of them")
    choice = choices.parse(columns, COLUMN) if columns is not None else choices.SHOW
    results, records = opened(folder)
    found = contents(results, records, choice=choice, noise=kept_noise.read(warn), train_images=train_images)
    for problem in found.problems:
        warn(problem)
    console = Console(highlight=False)
    if not form and not sources:
        terminal.show(found.tables, console)
        return 0
    if not form:
        told = sources_report.text(found.tables)
    else:
        told = FORMS[form].sources_text(found.tables) if sources else FORMS[form].text(found.tables)
    sys.stdout.write(terminal.encodable(told, console.encoding))
    return 0
