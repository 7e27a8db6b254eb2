"""All commands under their names, and what stands above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from gpubench import __version__
from gpubench.cli import data, keep, measure, read, slurm, usage


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, as the list of commands knows it."""

    run: Callable[..., None]
    kind: type[usage.Command]
    panel: Literal["Measure", "Read", "Keep"] | None = None


COMMANDS: Mapping[str, Entry] = {
    "sweep": Entry(measure.sweep, usage.Command, "Measure"),
    "slurm": Entry(slurm.slurm, slurm.PassThroughCommand, "Measure"),
    "table": Entry(read.table, usage.Reader, "Read"),
    "predict": Entry(read.predict, usage.Reader, "Read"),
    "status": Entry(read.status, usage.Reader, "Read"),
    "merge": Entry(keep.merge, usage.Command, "Keep"),
    "pack": Entry(keep.pack, usage.Command, "Keep"),
    "unpack": Entry(keep.unpack, usage.Command, "Keep"),
    "export": Entry(keep.export, usage.Reader, "Keep"),
    "plot": Entry(read.plot, usage.Reader, "Read"),
    "compare": Entry(read.compare, usage.Reader, "Read"),
    "audit": Entry(read.audit, usage.Reader, "Read"),
    "doctor": Entry(read.doctor, usage.Reader, "Read"),
}
DATA_COMMANDS: Mapping[str, Entry] = {
    "make": Entry(data.make, usage.Command),
    "resize": Entry(data.resize, usage.Command),
    "list": Entry(data.print_known_names, usage.Reader),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gpubench {__version__}")
        raise typer.Exit


def _print_help(context: typer.Context) -> None:
    """Without a command, a group prints its help."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    _print_help(context)


def _make_group(
    name: str, text: str, root: Callable[..., None], commands: Mapping[str, Entry]
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


app = _make_group(
    "gpubench",
    "Trains real networks over a grid of configurations and leaves a table that can be trusted.",
    _root,
    COMMANDS,
)
app.add_typer(
    _make_group("data", "Image folders: make, resize, list.", _print_help, DATA_COMMANDS),
    rich_help_panel="Keep",
)
