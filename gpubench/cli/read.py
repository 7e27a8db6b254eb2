"""The commands that tell of what was measured."""

from __future__ import annotations

from pathlib import Path

import typer

from gpubench.cli.options import (
    collect_field_values,
    declare_flag,
    declare_repeated_text,
    declare_results_folders,
    declare_text,
    make_refusal_of_gone_names,
)
from gpubench.cli.parameters import delegate_to_function
from gpubench.render.forms import FORMS


@delegate_to_function("table.table", FORMS)
def table(
    paths: list[Path] = declare_results_folders(),
    columns: str | None = declare_text(
        "--columns", "NAME,-NAME,…", "Add columns of docs/columns.md, or all of them; -NAME removes one."
    ),
    where: list[str] = declare_repeated_text(
        "--where",
        "CONDITION",
        "Show rows such as 'batch_size>=64' or variant=cached,synthetic; again for one more condition.",
    ),
    sort: str | None = declare_text("--sort", "NAME,-NAME,…", "Show rows by columns; -NAME: largest first."),
    why: bool = declare_flag("--why", "Every claim with its p-value, and what would settle it."),
    best: bool = declare_flag(
        "--best", "Only the recommended configuration, as a command (--json: as data)."
    ),
) -> None:
    """Print the tables of results folders, and what they answer."""


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
    markdown: bool = declare_flag("--markdown", "As Markdown."),
) -> None:
    """Say how much jobs would slow each other down, from stored rows of each alone; runs nothing.

    Exit code 4 where none can be answered. Without any jobs: the groups that ran, and how far predictions were off.
    """
    from gpubench.commands import predict as command
    from gpubench.plan.sweep_options import ExperimentOptions

    fields = collect_field_values({} if copies is None else {"copies": copies}, set_)
    options = ExperimentOptions(fields=fields, jobs=tuple(job), pairs=pairs, bad_images=bad_images)
    raise typer.Exit(command.predict(results, options, experiment=experiment, markdown=markdown))


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


@delegate_to_function("audit.audit", {"markdown": "As Markdown.", "json": "A JSON line for each rule."})
def audit(
    path: Path | None = declare_results_folders("Results folder; none: the newest one.", default=None),
) -> None:
    """Say how honest a results folder is, rule by rule."""


@delegate_to_function("doctor.doctor")
def doctor(as_json: bool = declare_flag("--json", "As one JSON object.")) -> None:
    """Say what this machine can measure, what it can't, and the remedy; exit 4 where no sweep can run.

    Takes some ten seconds, and tries torch on each visible GPU for a moment.
    """
