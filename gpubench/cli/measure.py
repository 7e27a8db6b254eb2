"""`gpubench sweep`, whose options follow from the trial fields and from the classes of its options."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import typer

from gpubench.basics.errors import UsageError
from gpubench.basics.stopping import AT_ONCE, WITHOUT_CTRL_C, unwind_on_signals
from gpubench.cli import options, usage
from gpubench.plan.sweep_options import ExperimentOptions, OptionDeclaration, RunOptions
from gpubench.schema.trial_fields import ABOUT, FieldOption, order_names

NOTHING = "stopped; nothing was measured"


BEHIND = "command_words"
"""In the context: what stands behind `--`."""


class SweepCommand(usage.StrictCommand):
    """A command that keeps what stands behind `--` apart: another command, which no option of ours is read from."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[BEHIND] = None if at == len(args) else tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND…]"]


def sweep(context: typer.Context, experiment: Path | None, **given: Any) -> None:
    """Train over a grid, or run a command of your own, and print the table."""
    with _report_nothing_measured():
        from gpubench.commands import sweep as command

        experiment_options, run_options = _read_options(given, context.meta[BEHIND])
        if run_options.dry_run and run_options.json:
            raise UsageError("--json prints trials that ran, and --dry-run runs none; give one of them")
        raise typer.Exit(command.sweep(experiment, experiment_options, run_options))


@contextlib.contextmanager
def _report_nothing_measured() -> Iterator[None]:
    """For a sweep, which hears signals itself from its first trial on until it has told all."""
    try:
        with unwind_on_signals(
            f"{NOTHING}; to continue, run the same command again", NOTHING, WITHOUT_CTRL_C
        ):
            yield
    except KeyboardInterrupt:
        usage.print_error(NOTHING, after_echo=True)
        raise typer.Exit(AT_ONCE) from None


def _list_option_parameters() -> list[inspect.Parameter]:
    """Options of trial fields, each in the order of the fields or behind the one that its entry names, `--set`, and
    those of `ExperimentOptions` and `RunOptions`."""
    declared = {about.option.name: (name, about.option) for name, about in ABOUT.items() if about.option}
    set_ = options.declare_text(
        "--set", "FIELD=VALUES", "any trial field, one value or an axis", rich_help_panel=options.TRY
    )
    parameters = {option.name: _make_field_parameter(name, option) for name, option in declared.values()}
    parameters["--set"] = options.make_keyword_parameter("set_", list[str] | None, set_)
    for kind in (ExperimentOptions, RunOptions):
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if option := field.metadata.get("declared"):
                parameters[option.names[0]] = _make_option_parameter(field, hints[field.name], option)
    names = order_names(list(parameters), {name: option.behind for name, (_, option) in declared.items()})
    return [parameters[name] for name in names]


def _make_field_parameter(name: str, option: FieldOption) -> inspect.Parameter:
    if option.is_flag:
        flag = options.declare_flag(option.name, option.help, rich_help_panel=options.RUN)
        return options.make_keyword_parameter(name, bool, flag)
    names = functools.partial(options.list_named_values, name)
    typed = options.declare_text(option.name, option.metavar, option.help, names, rich_help_panel=options.TRY)
    return options.make_keyword_parameter(name, str | None, typed)


def _make_option_parameter(
    field: dataclasses.Field[Any], hint: Any, option: OptionDeclaration
) -> inspect.Parameter:
    is_many = hint == tuple[str, ...]
    declared = typer.Option(
        None if is_many else field.default,
        *option.names,
        metavar=option.metavar,
        help=option.help,
        min=option.least,
        autocompletion=options.make_completer(lambda: option.words) if option.words else None,
        rich_help_panel=options.TRY if option.tries else options.RUN,
    )
    return options.make_keyword_parameter(field.name, list[str] | None if is_many else hint, declared)


_OPTION_PARAMETERS = _list_option_parameters()
_ARGUMENT = typer.Argument(None, metavar="EXPERIMENT.toml", help="Experiment file; none: the built-in one.")
_CONTEXT = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
options.set_signature(
    sweep,
    [_CONTEXT, options.make_keyword_parameter("experiment", Path | None, _ARGUMENT), *_OPTION_PARAMETERS],
)


def _read_options(
    given: Mapping[str, Any], command: tuple[str, ...] | None
) -> tuple[ExperimentOptions, RunOptions]:
    """The options of what was given by parameter. `command`: what stands behind `--`; None: there is none."""
    if command == ():
        raise UsageError("a command is missing behind --: write -- python train.py …")
    # Later axes vary faster, so the order of these options is that of a plan's trials.
    names = [
        parameter.name
        for parameter in _OPTION_PARAMETERS
        if parameter.name in ABOUT and ABOUT[parameter.name].option
    ]
    named = {
        name: "true" if given[name] is True else given[name]
        for name in names
        if given[name] not in (None, False)
    }
    fields = options.collect_field_values(named, given["set_"] or ())

    def select_values(kind: type[ExperimentOptions | RunOptions]) -> dict[str, Any]:
        return {
            field.name: tuple(given[field.name] or ()) if field.default == () else given[field.name]
            for field in dataclasses.fields(kind)
            if field.name in given
        }

    return (
        ExperimentOptions(fields=fields, command=command or (), **select_values(ExperimentOptions)),
        RunOptions(**select_values(RunOptions)),
    )


# For `gpubench slurm`, behind whose `--` the options of a sweep stand.


def parse_sweep_options(words: Sequence[str]) -> ExperimentOptions:
    """What these words of a command line ask of an experiment, as `gpubench sweep` reads them. Nothing is run."""
    context = _make_sweep_command().make_context("gpubench sweep", list(words))
    given = context.params
    if given["experiment"] is not None:
        raise UsageError(f"{given['experiment']}: the experiment file stands before --")
    return _read_options(given, context.meta[BEHIND])[0]


def list_sweep_option_names() -> frozenset[str]:
    """All names of options of `gpubench sweep`."""
    return frozenset(
        name for param in _make_sweep_command().params for name in (*param.opts, *param.secondary_opts)
    )


def _make_sweep_command() -> Any:
    alone = typer.Typer()
    alone.command(cls=SweepCommand)(sweep)
    return typer.main.get_command(alone)
