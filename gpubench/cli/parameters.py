"""Commands as the library that reads command lines is to see them: with options that follow from a registry."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

import typer

from gpubench.cli import options
from gpubench.plan.sweep_options import ExperimentOptions, OptionDeclaration, RunOptions
from gpubench.schema.trial_fields import ABOUT, FieldOption, order_names


class SweepCommand:
    """`gpubench sweep` as the library that reads command lines is to see it: all its options as parameters.

    They stand behind its argument: those of trial fields, each in the order of the fields or behind the one that its
    entry names, `--set`, and those of `ExperimentOptions` and `RunOptions`.
    """

    def __init__(self, run: Callable[[Path | None, Mapping[str, Any]], None]) -> None:
        """`run`: is given the argument, and the value of each parameter, for `read`."""
        declared = {name: about.option for name, about in ABOUT.items() if about.option}
        of_fields = {option.name: _make_field_parameter(name, option) for name, option in declared.items()}
        set_ = options.declare_text(
            "--set", "FIELD=VALUES", "any trial field, one value or an axis", rich_help_panel=options.TRY
        )
        parameters = of_fields | {"--set": _make_keyword_parameter("set_", list[str] | None, set_)}
        for kind in (ExperimentOptions, RunOptions):
            hints = get_type_hints(kind)
            for field in dataclasses.fields(kind):
                if option := field.metadata.get("declared"):
                    parameters[option.names[0]] = _make_option_parameter(field, hints[field.name], option)
        names = order_names(list(parameters), {option.name: option.behind for option in declared.values()})
        # Later axes vary faster, so this order is that of a plan's trials.
        self._fields = [of_fields[name].name for name in names if name in of_fields]
        self._run = run
        self.__name__, self.__doc__ = run.__name__, run.__doc__
        help_ = "Experiment file; none: the built-in one."
        argument = typer.Argument(None, metavar="EXPERIMENT.toml", help=help_)
        experiment = _make_keyword_parameter("experiment", Path | None, argument)
        _set_signature(self, [experiment, *(parameters[name] for name in names)])

    def __call__(self, experiment: Path | None, **given: Any) -> None:
        self._run(experiment, given)

    def read(self, given: Mapping[str, Any]) -> tuple[ExperimentOptions, RunOptions]:
        """The options of what was given by parameter. Raises UsageError for a field that is no field."""
        named = {
            name: "true" if given[name] is True else given[name]
            for name in self._fields
            if given[name] not in (None, False)
        }
        fields = options.collect_field_values(named, given["set_"] or ())
        return ExperimentOptions(fields=fields, **_select_field_values(ExperimentOptions, given)), RunOptions(
            **_select_field_values(RunOptions, given)
        )


def _make_option_parameter(
    field: dataclasses.Field[Any], hint: Any, option: OptionDeclaration
) -> inspect.Parameter:
    """A field of options as a parameter of a command."""
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
    return _make_keyword_parameter(field.name, list[str] | None if is_many else hint, declared)


def _select_field_values(
    kind: type[ExperimentOptions | RunOptions], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The values of the fields of `kind` among those given, lists as tuples."""
    return {
        field.name: tuple(given[field.name] or ()) if field.default == () else given[field.name]
        for field in dataclasses.fields(kind)
        if field.name in given
    }


def _make_field_parameter(name: str, option: FieldOption) -> inspect.Parameter:
    """A field's option as a parameter of a command."""
    if option.is_flag:
        return _make_keyword_parameter(
            name, bool, options.declare_flag(option.name, option.help, rich_help_panel=options.RUN)
        )
    names = functools.partial(options.list_named_values, name)
    typed = options.declare_text(option.name, option.metavar, option.help, names, rich_help_panel=options.TRY)
    return _make_keyword_parameter(name, str | None, typed)


def _make_keyword_parameter(name: str, annotation: Any, declared: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=annotation)


def delegate_to_function(
    place: str, forms: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Any]:
    """A command that hands all its parameters to a function of `gpubench.commands`, `table.table`, for an exit code.

    That is imported once the command runs, so that `--help` answers at once. `forms`: those that have an option each,
    and their help: the function gets, as `form`, the name of the one that was given.
    """
    module, function = place.split(".")

    def declare(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            if forms:
                given["form"] = options.choose_only_form([name for name in forms if given.pop(name)])
            works = getattr(importlib.import_module(f"gpubench.commands.{module}"), function)
            raise typer.Exit(works(**given) or 0)

        of_forms = [
            _make_keyword_parameter(name, bool, options.declare_flag(f"--{name}", help_))
            for name, help_ in forms.items()
        ]
        return _set_signature(
            run, [*inspect.signature(command, eval_str=True).parameters.values(), *of_forms]
        )

    return declare


def _set_signature(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The command, of which the library that reads command lines sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
