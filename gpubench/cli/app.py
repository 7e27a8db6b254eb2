"""All commands under their names, each with its options; imports nothing heavy, so that `--help` answers at once.

What a command does stands in `gpubench.commands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gpubench import __version__
from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.cli import measure, slurm, usage
from gpubench.cli.options import (
    choose_only_form,
    collect_field_values,
    declare_flag,
    declare_repeated_text,
    declare_results_folders,
    declare_text,
    declare_whole_number,
    delegate_to_function,
    make_refusal_of_gone_names,
)
from gpubench.export.formats import DEFAULT_OPTIONS, FORMATS, SHEETS, TRACKERS, FormatOptions
from gpubench.render.forms import FORMS

READ: Mapping[str, Any] = {"cls": usage.ReadingCommand, "rich_help_panel": "Read"}
KEEP: Mapping[str, Any] = {"cls": usage.StrictCommand, "rich_help_panel": "Keep"}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gpubench {__version__}")
        raise typer.Exit


def _print_help_without_command(context: typer.Context) -> None:
    """Without a command, a group prints its help."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _run_root_command(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _print_help_without_command(context)


GROUP: Mapping[str, Any] = {
    "cls": usage.CommandGroup,
    "context_settings": {"help_option_names": ["-h", "--help"]},
    "pretty_exceptions_enable": False,
    "invoke_without_command": True,
}
app = typer.Typer(
    name="gpubench",
    help="Trains real networks over a grid of configurations and leaves a table that can be trusted.",
    callback=_run_root_command,
    **GROUP,
)
data = typer.Typer(
    name="data", help="Image folders: make, resize, list.", callback=_print_help_without_command, **GROUP
)
app.command("sweep", cls=measure.SweepCommand, rich_help_panel="Measure")(measure.sweep)
app.command("slurm", cls=slurm.PassThroughCommand, rich_help_panel="Measure")(slurm.slurm)

# Read: what was measured is told.


@app.command(**READ)
@delegate_to_function("table.table", FORMS)
def table(
    paths: list[Path] = declare_results_folders(),
    columns: str | None = declare_text(
        "--columns", "NAME,-NAME,…", "Add columns of docs/columns.md, or all of table.csv; -NAME removes one."
    ),
    where: list[str] = declare_repeated_text(
        "--where",
        "CONDITION",
        "Show rows such as 'batch_size>=64' or variant=cached,synthetic; again for one more condition.",
    ),
    sort: str | None = declare_text("--sort", "NAME,-NAME,…", "Show rows by columns; -NAME: largest first."),
    edp: bool = declare_flag(
        "--edp", "Of power limits that with the least energy x time, in place of energy."
    ),
    at_most_slower: str | None = declare_text(
        "--at-most-slower", "SHARE", "Only power limits that take so much more time at most: 5%."
    ),
    why: bool = declare_flag("--why", "Every claim with its p-value, and what would settle it."),
    best: bool = declare_flag(
        "--best", "Only the recommended configuration, as a command (--json: as data)."
    ),
) -> None:
    """Print the tables of results folders, and what they answer."""


@app.command(**READ)
def predict(
    results: list[Path] = declare_results_folders(
        "Results folders; none: all that sweeps have written here."
    ),
    job: list[str] = declare_repeated_text(
        "--job", "F=V,F=V,…", "One of several jobs that run together; give it once for each."
    ),
    copies: str | None = declare_text("--copies", "VALUES", "Identical jobs at once: 2,3."),
    pairs: bool = declare_flag("--pairs", "Every pair of the --job's on one GPU."),
    set_: list[str] = declare_repeated_text(
        "--set", "FIELD=VALUES", "Any trial field, for all jobs that don't give it."
    ),
    experiment: Path | None = declare_text("--experiment", "FILE.toml", "Take jobs and fields from a file."),
    bad_images: str | None = declare_text(
        "--bad-images",
        "POLICY",
        "fail (default), or skip: of rows from which images were left out that can't be decoded.",
    ),
    power: bool = declare_flag(
        "--power",
        "Time and energy under power limits between those that were measured (--set power_limit_w=VALUES).",
    ),
    markdown: bool = declare_flag("--markdown", "As Markdown."),
) -> None:
    """Say how much jobs would slow each other down, from stored rows of each alone; runs nothing.

    Exit code 4 where none can be answered. Without any jobs: the groups that ran, and how far predictions were off.
    """
    from gpubench.commands import predict as command
    from gpubench.plan.sweep_options import ExperimentOptions

    fields = collect_field_values({} if copies is None else {"copies": copies}, set_)
    options = ExperimentOptions(fields=fields, jobs=tuple(job), pairs=pairs, bad_images=bad_images)
    answer = command.predict_limits if power else command.predict
    raise typer.Exit(answer(results, options, experiment=experiment, markdown=markdown))


@app.command(**READ)
@delegate_to_function("status.status")
def status(
    folders: list[Path] = declare_results_folders(),
    as_json: bool = declare_flag("--json", "A JSON line for each folder."),
) -> None:
    """Say what is done, running, failed or left, and for how long; disturbs no sweep.

    Exit code 0: complete. 1: finished, some trials failed. 5: a sweep is running.
    75: something is left, and nobody runs it.

    Of several folders the last of these that fits one; 4 where one can't be read.
    """


@app.command(**READ)
@delegate_to_function("plot.plot")
def plot(
    folders: list[Path] = declare_results_folders(),
    out: Path | None = declare_text("--out", "FOLDER", "Where they are written; none: RESULTS/plots."),
    formats: str | None = declare_text(
        "--format", "svg,png,pdf", "Default: svg.", lambda: ("svg", "png", "pdf")
    ),
    only: str | None = declare_text(
        "--only",
        "NAME,…",
        "These pictures of docs/plots.md; none: all there are.",
        callback=make_refusal_of_gone_names("picture"),
    ),
    trial_id: str | None = declare_text(
        "--trial", "ID", "What was sampled of this trial; the id's start will do."
    ),
    is_paper: bool = declare_flag("--paper", "For a column of a paper: narrow, without title and footnote."),
) -> None:
    """Draw pictures of what was found: growth, devices, ways, together, target, energy, a trial."""


@app.command(**READ)
@delegate_to_function("compare.compare", {"markdown": "As Markdown.", "json": "As one JSON object."})
def compare(
    folders: list[Path] = declare_results_folders("Two results folders, A and B; with --field one."),
    field: str | None = declare_text(
        "--field", "FIELD=V,V", "Two values of a field in one folder: precision=fp32,bf16."
    ),
    figures: str | None = declare_text(
        "--figures",
        "NAME,…",
        "Only these: time,memory,cpu,energy,top1.",
        lambda: ("time", "memory", "cpu", "energy", "top1"),
    ),
    threshold: str | None = declare_text(
        "--threshold",
        "SHARE",
        "Exit 3 where B is sure to take more time, memory or energy by more than this: 5%.",
    ),
    strict: bool = declare_flag("--strict", "Exit 3 also where that is not excluded."),
    sort: str | None = declare_text("--sort", "NAME", "By a figure, the worst first, or by a field."),
) -> None:
    """Set B beside A: faster, slower, the same or unknown, for each trial that both have."""


@app.command(**READ)
@delegate_to_function("audit.audit", {"markdown": "As Markdown.", "json": "A JSON line for each rule."})
def audit(
    path: Path | None = declare_results_folders("Results folder; none: the newest one.", default=None),
) -> None:
    """Say how honest a results folder is, rule by rule."""


@app.command(**READ)
@delegate_to_function("doctor.doctor")
def doctor(as_json: bool = declare_flag("--json", "As one JSON object.")) -> None:
    """Say what this machine can measure, what it can't, and the remedy; exit 4 where no sweep can run.

    Takes some ten seconds, and tries torch on each visible GPU for a moment.
    """


# Keep: results go elsewhere.


@app.command(**KEEP)
@delegate_to_function("merge.merge_folders")
def merge(
    folders: list[Path] = declare_results_folders(),
    out: Path | None = declare_text("--out", "FOLDER", "Where; of one folder: none writes its tables anew."),
) -> None:
    """Put the records of several results folders into one, and write its tables anew."""


@app.command(**KEEP)
@delegate_to_function("pack.pack")
def pack(folders: list[Path] = declare_results_folders()) -> None:
    """Put samples and logs of results folders into one zip file each; all commands read them there."""


@app.command(**KEEP)
@delegate_to_function("pack.unpack")
def unpack(folders: list[Path] = declare_results_folders()) -> None:
    """Make files again of the samples and logs that `gpubench pack` has packed."""


@app.command(cls=usage.ReadingCommand, rich_help_panel="Keep")
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
    if out and out.endswith("/"):  # a path forgets it
        raise UsageError(f"--out {out} is a folder: name a file in it")
    raise typer.Exit(command.export(results, form=form, out=Path(out) if out else None, options=options))


# Folders of images.


@data.command(cls=usage.StrictCommand)
@delegate_to_function("data.make")
def make(
    folder: Path | None = typer.Argument(
        None, metavar="FOLDER", help="Where; none: the place where sweeps look."
    ),
    images: int = declare_whole_number("--images", "Training images, 1 or more.", 10_240, least=1),
    val_images: int | None = declare_whole_number(
        "--val-images", "Validation images, 1 or more; none: a tenth as many, 64 at least.", None, least=1
    ),
    classes: int = declare_whole_number("--classes", "Classes, 1 or more.", 16, least=1),
    seed: int = declare_whole_number("--seed", "Seed of every image, 0 or more.", 0),
) -> None:
    """Build the procedural JPEG images."""


@data.command(cls=usage.StrictCommand)
@delegate_to_function("data.resize")
def resize(
    source: Path = typer.Argument(metavar="SRC", help="Image folder."),
    target: Path = typer.Argument(metavar="DST", help="New folder."),
    size: int = declare_whole_number(
        "--size", "Side of the square copies in pixels, 8 or more.", 224, least=8
    ),
    bad: str = declare_text(
        "--bad-images", "POLICY", "fail, or skip: leave images out that can't be decoded.", default="fail"
    ),
) -> None:
    """Make the pre-resized copy of an image folder."""


@data.command("list", cls=usage.ReadingCommand)
@delegate_to_function("data.print_known_names")
def print_known_names() -> None:
    """List the variants, data sets and models known by name."""


app.add_typer(data, rich_help_panel="Keep")
