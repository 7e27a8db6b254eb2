"""The commands that tell of what was measured. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.basics.errors import UsageError
from gpubench.cli.gone import GONE
from gpubench.cli.options import (
    JsonObject,
    Markdown,
    ResultsFolders,
    choose_answer_form,
    collect_field_values,
    declare_results_folders,
    declare_text,
)
from gpubench.cli.parameters import add_form_options


@add_form_options
def table(
    results: ResultsFolders = None,
    columns: Annotated[
        str | None,
        declare_text(
            "--columns",
            "NAME,-NAME,…",
            "Add columns of docs/columns.md, or all of them; -NAME removes one.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        declare_text(
            "--where",
            "CONDITION",
            "Show rows such as 'batch_size>=64' or variant=cached,synthetic; again for one more condition.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        declare_text("--sort", "NAME,-NAME,…", "Show rows by columns; -NAME: largest first."),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Every claim with its p-value, and what would settle it.")
    ] = False,
    best: Annotated[
        bool,
        typer.Option("--best", help="Only the recommended configuration, as a command (--json: as data)."),
    ] = False,
    *,
    form: str | None,
) -> None:
    """Print the tables of results folders, and what they answer."""
    from gpubench.commands import table as command

    raise typer.Exit(
        command.table(
            results or (),
            form=form,
            columns=columns,
            where=where or (),
            sort=sort,
            why=why,
            best=best,
        )
    )


def predict(
    results: Annotated[
        list[Path] | None,
        declare_results_folders("Results folders; none: all that sweeps have written here."),
    ] = None,
    job: Annotated[
        list[str] | None,
        declare_text("--job", "F=V,F=V,…", "One of several jobs that run together; give it once for each."),
    ] = None,
    copies: Annotated[str | None, declare_text("--copies", "VALUES", "Identical jobs at once: 2,3.")] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Every pair of the --job's on one GPU.")] = False,
    set_: Annotated[
        list[str] | None,
        declare_text("--set", "FIELD=VALUES", "Any trial field, for all jobs that don't give it."),
    ] = None,
    experiment: Annotated[
        Path | None,
        declare_text("--experiment", "FILE.toml", "Take jobs and fields from a file."),
    ] = None,
    bad_images: Annotated[
        str | None,
        declare_text(
            "--bad-images",
            "POLICY",
            "fail (default), or skip: of rows from which images were left out that can't be decoded.",
        ),
    ] = None,
    markdown: Markdown = False,
) -> None:
    """Say how much jobs would slow each other down, from stored rows of each alone; runs nothing.

    Exit code 4 where none can be answered. Without any jobs: the groups that ran, and how far predictions were off.
    """
    from gpubench.commands import predict as command
    from gpubench.plan.sweep_options import Options

    fields = collect_field_values({} if copies is None else {"copies": copies}, set_ or ())
    options = Options(fields=fields, jobs=tuple(job or ()), pairs=pairs, bad_images=bad_images)
    raise typer.Exit(command.predict(results or (), options, experiment=experiment, markdown=markdown))


def status(
    results: ResultsFolders = None,
    json_: Annotated[bool, typer.Option("--json", help="A JSON line for each folder.")] = False,
) -> None:
    """Say what is done, running, failed or left, and for how long; disturbs no sweep.

    Exit code 0: complete. 1: finished, some trials failed. 5: a sweep is running.
    75: something is left, and nobody runs it.

    Of several folders the last of these that fits one; 4 where one can't be read.
    """
    from gpubench.commands import status as command

    raise typer.Exit(command.status(results or (), as_json=json_))


def plot(
    results: ResultsFolders = None,
    out: Annotated[
        Path | None,
        declare_text("--out", "FOLDER", "Where they are written; none: RESULTS/plots."),
    ] = None,
    form: Annotated[
        str | None,
        declare_text("--format", "svg,png,pdf", "Default: svg.", lambda: ("svg", "png", "pdf")),
    ] = None,
    only: Annotated[
        str | None,
        declare_text("--only", "NAME,…", "These pictures of docs/plots.md; none: all there are."),
    ] = None,
    trial: Annotated[
        str | None,
        declare_text("--trial", "ID", "What was sampled of this trial; the id's start will do."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="For a column of a paper: narrow, without title and footnote.")
    ] = False,
) -> None:
    """Draw pictures of what was found: growth, devices, ways, together, target, energy, a trial."""
    from gpubench.commands import plot as command

    for name in [] if only is None else only.split(","):
        if gone := GONE.get(f"--only {name.strip()}"):
            raise UsageError(f"No such picture: {name.strip()}; {gone}")
    raise typer.Exit(
        command.plot(results or (), out=out, formats=form, only=only, trial_id=trial, is_paper=paper)
    )


def compare(
    results: Annotated[
        list[Path] | None,
        declare_results_folders("Two results folders, A and B; with --field one."),
    ] = None,
    field: Annotated[
        str | None,
        declare_text(
            "--field",
            "FIELD=V,V",
            "Two values of a field in one folder: precision=fp32,bf16.",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        declare_text(
            "--figures",
            "NAME,…",
            "Only these: time,memory,cpu,energy,top1.",
            lambda: ("time", "memory", "cpu", "energy", "top1"),
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        declare_text(
            "--threshold",
            "SHARE",
            "Exit 3 where B is sure to take more time, memory or energy by more than this: 5%.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 also where that is not excluded.")] = False,
    sort: Annotated[
        str | None,
        declare_text("--sort", "NAME", "By a figure, the worst first, or by a field."),
    ] = None,
    markdown: Markdown = False,
    json_: JsonObject = False,
) -> None:
    """Set B beside A: faster, slower, the same or unknown, for each trial that both have."""
    from gpubench.commands import compare as command

    form = choose_answer_form(json=json_, markdown=markdown)
    raise typer.Exit(
        command.compare(
            results or (),
            field=field,
            figures=figures,
            threshold=threshold,
            strict=strict,
            sort=sort,
            form=form,
        )
    )


def audit(
    results: Annotated[
        Path | None,
        declare_results_folders("Results folder; none: the newest one."),
    ] = None,
    markdown: Markdown = False,
    json_: Annotated[bool, typer.Option("--json", help="A JSON line for each rule.")] = False,
) -> None:
    """Say how honest a results folder is, rule by rule."""
    from gpubench.commands import audit as audit_command

    form = choose_answer_form(json=json_, markdown=markdown)
    raise typer.Exit(audit_command.audit(results, form=form))


def doctor(json_: JsonObject = False) -> None:
    """Say what this machine can measure, what it can't, and the remedy; exit 4 where no sweep can run.

    Takes some ten seconds, and tries torch on each visible GPU for a moment.
    """
    from gpubench.commands import doctor as command

    raise typer.Exit(command.doctor(as_json=json_))
