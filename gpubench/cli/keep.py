"""The commands that put results elsewhere."""

from __future__ import annotations

from pathlib import Path

import typer

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.cli.options import (
    choose_only_form,
    declare_flag,
    declare_results_folders,
    declare_text,
    make_refusal_of_gone_names,
)
from gpubench.cli.parameters import delegate_to_function
from gpubench.export.formats import DEFAULT_OPTIONS, FORMATS, SHEETS, TRACKERS, FormatOptions


@delegate_to_function("merge.merge_folders")
def merge(
    folders: list[Path] = declare_results_folders(),
    out: Path | None = declare_text("--out", "FOLDER", "Where; of one folder: none writes its tables anew."),
) -> None:
    """Put the records of several results folders into one, and write its tables anew."""


@delegate_to_function("pack.pack")
def pack(folders: list[Path] = declare_results_folders()) -> None:
    """Put samples and logs of results folders into one zip file each; all commands read them there."""


@delegate_to_function("pack.unpack")
def unpack(folders: list[Path] = declare_results_folders()) -> None:
    """Make files again of the samples and logs that `gpubench pack` has packed."""


def export(
    results: list[Path] = declare_results_folders(),
    form: str | None = declare_text(
        "--format", "NAME", f"{', '.join(FORMATS)}; by default as FILE ends.", lambda: FORMATS
    ),
    out: str | None = declare_text("--out", "FILE", "Where it is written; none: stdout for text."),
    to: str | None = declare_text(
        "--to",
        "TRACKER",
        "mlflow: a run for each trial; --out is then a folder, or an MLflow address.",
        lambda: TRACKERS,
        callback=make_refusal_of_gone_names("tracker"),
    ),
    sheet: str = declare_text(
        "--sheet",
        "NAME",
        f"What a CSV holds: {', '.join(SHEETS)}.",
        lambda: SHEETS,
        default=DEFAULT_OPTIONS.sheet,
        show_default=False,
    ),
    excel: bool = declare_flag("--excel", "CSV for Excel where it has commas and decimal dots."),
    excel_eu: bool = declare_flag("--excel-eu", "CSV for Excel where it has semicolons and decimal commas."),
) -> None:
    """Write results in the format of another program, or hand them over to an experiment tracker."""
    from gpubench.commands import export as command

    dialect = choose_only_form(["excel"] * excel + ["excel-eu"] * excel_eu) or DEFAULT_OPTIONS.dialect
    if sheet not in SHEETS:
        raise make_unknown_name_error("sheet", sheet, SHEETS)
    options = FormatOptions(sheet=sheet, dialect=dialect)
    if to is not None:
        given = ["--format"] * (form is not None) + ["--sheet"] * (sheet != DEFAULT_OPTIONS.sheet)
        given += [f"--{dialect}"] * (dialect != DEFAULT_OPTIONS.dialect)
        if given:
            raise UsageError(f"--to hands runs over, and {given[0]} writes a file; give one of them")
        raise typer.Exit(command.export_to_tracker(results, to=to, place=out))
    raise typer.Exit(command.export(results, form=form, out=Path(out) if out else None, options=options))
