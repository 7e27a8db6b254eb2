"""The tables that a sweep keeps in its results folder, for whoever opens them later."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analyze.folder import Folder
from gpubench.basics.errors import UnusableError
from gpubench.core.report import Report
from gpubench.export.sheets import SHEETS
from gpubench.render import markdown
from gpubench.results.store import Results


def write_tables(results: Results, folder: Folder, reports: Sequence[Report]) -> None:
    """Write trials.csv, epochs.csv, table.csv and table.md, by rename.

    One that can't be written keeps no other from it; then UnusableError. `reports`: those of the folder's tables.
    """
    texts = {f"{name}.csv": SHEETS[name]([folder]).format_csv() for name in ("trials", "epochs", "table")}
    texts["table.md"] = markdown.format_text(reports)
    errors = []
    for name, text in texts.items():
        try:
            results.write_table(name, text)
        except UnusableError as error:
            errors.append(str(error))
    if errors:
        more = f", nor can {len(errors) - 1} more" if len(errors) > 1 else ""
        raise UnusableError(f"{errors[0]}{more}")
