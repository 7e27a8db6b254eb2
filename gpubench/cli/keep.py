"""The commands that put results elsewhere. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.cli.gone import GONE
from gpubench.cli.options import ResultsFolders, choose_form, declare_text
from gpubench.export.formats import DEFAULT_OPTIONS, FORMATS, SHEETS, TRACKERS, FormatOptions


def merge(
    results: ResultsFolders = None,
    out: Annotated[
        Path | None,
        declare_text("--out", "FOLDER", "Where; of one folder: none writes its tables anew."),
    ] = None,
) -> None:
    """Put the records of several results folders into one, and write its tables anew."""
    from gpubench.commands import merge as command

    raise typer.Exit(command.merge_folders(results or (), out=out))


def pack(results: ResultsFolders = None) -> None:
    """Put samples and logs of results folders into one zip file each; all commands read them there."""
    from gpubench.commands import pack as command

    raise typer.Exit(command.pack(results or ()))


def unpack(results: ResultsFolders = None) -> None:
    """Make files again of the samples and logs that `gpubench pack` has packed."""
    from gpubench.commands import pack as command

    raise typer.Exit(command.unpack(results or ()))


def export(
    results: ResultsFolders = None,
    form: Annotated[
        str | None,
        declare_text("--format", "NAME", f"{', '.join(FORMATS)}; by default as FILE ends.", lambda: FORMATS),
    ] = None,
    out: Annotated[
        str | None, declare_text("--out", "FILE", "Where it is written; none: stdout for text.")
    ] = None,
    to: Annotated[
        str | None,
        declare_text(
            "--to",
            "TRACKER",
            "mlflow: a run for each trial; --out is then a folder, or an MLflow address.",
            lambda: TRACKERS,
        ),
    ] = None,
    sheet: Annotated[
        str,
        declare_text(
            "--sheet",
            "NAME",
            f"What a CSV holds: {', '.join(SHEETS)}.",
            lambda: SHEETS,
            show_default=False,
        ),
    ] = DEFAULT_OPTIONS.sheet,
    excel: Annotated[
        bool, typer.Option("--excel", help="CSV for Excel where it has commas and decimal dots.")
    ] = False,
    excel_eu: Annotated[
        bool, typer.Option("--excel-eu", help="CSV for Excel where it has semicolons and decimal commas.")
    ] = False,
) -> None:
    """Write results in the format of another program, or hand them over to an experiment tracker."""
    from gpubench.commands import export as command

    dialect = choose_form(["excel"] * excel + ["excel-eu"] * excel_eu) or DEFAULT_OPTIONS.dialect
    if sheet not in SHEETS:
        raise make_unknown_name_error("sheet", sheet, SHEETS)
    options = FormatOptions(sheet=sheet, dialect=dialect)
    if gone := GONE.get(f"--to {to}"):
        raise UsageError(f"No such tracker: {to}; {gone}")
    if to is not None:
        if form is not None or options != DEFAULT_OPTIONS:
            given = (
                "--format"
                if form is not None
                else "--sheet"
                if sheet != DEFAULT_OPTIONS.sheet
                else f"--{dialect}"
            )
            raise UsageError(f"--to hands runs over, and {given} writes a file; give one of them")
        raise typer.Exit(command.hand_over(results or (), to=to, place=out))
    raise typer.Exit(
        command.export(results or (), form=form, out=Path(out) if out else None, options=options)
    )
