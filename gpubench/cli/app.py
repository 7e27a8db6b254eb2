"""All commands under their names, and what stands above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from gpubench import __version__
from gpubench.cli import data, keep, measure, read, slurm, usage


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, as the list of commands knows it."""

    run: Callable[..., None]
    kind: type[usage.StrictCommand]
    panel: Literal["Measure", "Read", "Keep"] | None = None


COMMANDS: Mapping[str, CommandEntry] = {
    "sweep": CommandEntry(measure.sweep, usage.StrictCommand, "Measure"),
    "slurm": CommandEntry(slurm.slurm, slurm.PassThroughCommand, "Measure"),
    "table": CommandEntry(read.table, usage.ReadingCommand, "Read"),
    "predict": CommandEntry(read.predict, usage.ReadingCommand, "Read"),
    "status": CommandEntry(read.status, usage.ReadingCommand, "Read"),
    "merge": CommandEntry(keep.merge, usage.StrictCommand, "Keep"),
    "pack": CommandEntry(keep.pack, usage.StrictCommand, "Keep"),
    "unpack": CommandEntry(keep.unpack, usage.StrictCommand, "Keep"),
    "export": CommandEntry(keep.export, usage.ReadingCommand, "Keep"),
    "plot": CommandEntry(read.plot, usage.ReadingCommand, "Read"),
    "compare": CommandEntry(read.compare, usage.ReadingCommand, "Read"),
    "audit": CommandEntry(read.audit, usage.ReadingCommand, "Read"),
    "doctor": CommandEntry(read.doctor, usage.ReadingCommand, "Read"),
}
DATA_COMMANDS: Mapping[str, CommandEntry] = {
    "make": CommandEntry(data.make, usage.StrictCommand),
    "resize": CommandEntry(data.resize, usage.StrictCommand),
    "list": CommandEntry(data.print_known_names, usage.ReadingCommand),
}


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


def _make_command_group(
    name: str, text: str, root: Callable[..., None], commands: Mapping[str, CommandEntry]
) -> typer.Typer:
    group = typer.Typer(
        name=name,
        cls=usage.CommandGroup,
        context_settings=dict(usage.SETTINGS),
        help=text,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    group.callback(invoke_without_command=True)(root)
    for command, entry in commands.items():
        group.command(command, cls=entry.kind, rich_help_panel=entry.panel)(entry.run)
    return group


app = _make_command_group(
    "gpubench",
    "Trains real networks over a grid of configurations and leaves a table that can be trusted.",
    _run_root_command,
    COMMANDS,
)
app.add_typer(
    _make_command_group(
        "data", "Image folders: make, resize, list.", _print_help_without_command, DATA_COMMANDS
    ),
    rich_help_panel="Keep",
)
