"""`gpubench sweep`. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from gpubench.basics.errors import UsageError
from gpubench.basics.stopping import AT_ONCE, WITHOUT_CTRL_C, unwind_on_signals
from gpubench.cli import usage
from gpubench.cli.errors import print_error
from gpubench.cli.parameters import SweepCommand
from gpubench.plan.sweep_options import ExperimentOptions

NOTHING = "stopped; nothing was measured"


def _run_sweep_command(experiment: Path | None, given: Mapping[str, Any]) -> None:
    """Train over a grid and print the table."""
    with _report_nothing_measured():
        from gpubench.commands import sweep as command

        options, run_options = sweep.read(given)
        if run_options.dry_run and run_options.json:
            raise UsageError("--json prints trials that ran, and --dry-run runs none; give one of them")
        raise typer.Exit(command.sweep(experiment, options, run_options))


sweep = SweepCommand(_run_sweep_command)


def parse_sweep_options(words: Sequence[str]) -> ExperimentOptions:
    """What these words of a command line ask of an experiment, as `gpubench sweep` reads them. Nothing is run."""
    given = _make_sweep_command().make_context("gpubench sweep", list(words)).params
    if given["experiment"] is not None:
        raise UsageError(f"{given['experiment']}: the experiment file stands before --")
    options, _ = sweep.read(given)
    return options


def list_sweep_option_names() -> frozenset[str]:
    """All names of options of `gpubench sweep`."""
    return frozenset(
        name for param in _make_sweep_command().params for name in (*param.opts, *param.secondary_opts)
    )


def _make_sweep_command() -> Any:
    alone = typer.Typer()
    alone.command(cls=usage.StrictCommand)(sweep)
    return typer.main.get_command(alone)


@contextlib.contextmanager
def _report_nothing_measured() -> Iterator[None]:
    """For a sweep, which hears signals itself from its first trial on until it has told all."""
    try:
        with unwind_on_signals(
            f"{NOTHING}; to continue, run the same command again", NOTHING, WITHOUT_CTRL_C
        ):
            yield
    except KeyboardInterrupt:
        print_error(NOTHING, after_echo=True)
        raise typer.Exit(AT_ONCE) from None
