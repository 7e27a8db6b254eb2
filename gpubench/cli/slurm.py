"""`gpubench slurm`: options of its own, options of sbatch that it passes on, options of the sweep behind `--`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from gpubench.basics.errors import UsageError
from gpubench.cli import usage
from gpubench.cli.measure import list_sweep_option_names, parse_sweep_options
from gpubench.cli.options import declare_flag, declare_text, declare_whole_number

BEHIND = "sweep_words"
"""In the context: what stands behind `--`."""
OF_BOTH = ("--exclude", "--gpus", "--network", "--quiet", "-n", "-q")
"""Options that sbatch and the sweep have both: in front of `--` they are sbatch's."""
PANEL = "What to ask SLURM for"


class PassThroughCommand(usage.StrictCommand):
    """A command that takes options that it does not know, and keeps what stands behind `--` apart."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[BEHIND] = args[at + 1 :]
        ctx.meta["asked"] = list(args)
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args[:at])


def slurm(
    context: typer.Context,
    experiment: list[str] = typer.Argument(
        default_factory=list,
        show_default=False,
        metavar="EXPERIMENT.toml",
        help="Experiment file; none: the built-in one. Options of the sweep stand behind --; other options are "
        "passed on to sbatch (--partition gpu, --gres=gpu:1, --account NAME).",
    ),
    tasks: int = declare_whole_number(
        "--tasks",
        "Jobs of an array that work through the plan together, in one results folder.",
        1,
        least=1,
        rich_help_panel=PANEL,
    ),
    nodes: int = declare_whole_number("--nodes", "Nodes of each.", 1, "-N", least=1, rich_help_panel=PANEL),
    cpus_per_task: int | None = declare_whole_number(
        "--cpus-per-task",
        "CPUs of each, on a node (default: 4 for each GPU).",
        None,
        "-c",
        least=1,
        rich_help_panel=PANEL,
    ),
    time: str | None = typer.Option(
        None,
        "--time",
        "-t",
        metavar="TIME",
        help="Time limit of each, as SLURM writes it: 90 (minutes), 2:00:00 (default: by the plan's estimate).",
        rich_help_panel=PANEL,
    ),
    out: Path | None = declare_text("--out", "FOLDER", "Results folder (default: results/NAME)."),
    submit: bool = declare_flag("--submit", "Submit it."),
) -> None:
    """Print the batch script of a sweep for SLURM, or submit it."""
    from gpubench.commands import slurm as command
    from gpubench.plan.batch_script import parse_time_limit, split_sbatch_arguments, split_sbatch_option

    file, options = split_sbatch_arguments(experiment)
    of_the_sweep = list_sweep_option_names() - set(OF_BOTH)
    for option in options:
        if (name := split_sbatch_option(option)[0]) in of_the_sweep:
            raise UsageError(
                f"{name} is an option of the sweep, and stands behind --: gpubench slurm … -- {option}"
            )
    if time is not None:
        parse_time_limit(time)
    behind = list(context.meta[BEHIND])
    options_behind = behind[: behind.index("--")] if "--" in behind else behind  # then comes a command
    if any(word.split("=")[0] == "--out" for word in options_behind):
        raise UsageError("--out stands before --, for the tables need it, too")
    if measures_nothing := {"-n", "--dry-run"} & set(options_behind):
        raise UsageError(
            f"with {min(measures_nothing)} the job would measure nothing: ask gpubench sweep itself"
        )
    raise typer.Exit(
        command.slurm(
            Path(file) if file else None,
            parse_sweep_options(behind),
            behind,
            out,
            tasks=tasks,
            nodes=nodes,
            cpus_per_task=cpus_per_task,
            time=time,
            sbatch_options=options,
            command_line=f"gpubench slurm {shlex.join(context.meta['asked'])}",
            submit=submit,
        )
    )
