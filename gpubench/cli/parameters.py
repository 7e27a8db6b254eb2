"""Options of a command that follow from a registry: one for each field of a trial, one for each form of a table."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from gpubench.cli import options
from gpubench.plan.sweep_options import Declared, Options, RunOptions
from gpubench.render.forms import FORMS
from gpubench.schema.field import Option, order_names
from gpubench.schema.trial_fields import ABOUT

SET = options.declare_text(
    "--set", "FIELD=VALUES", "any trial field, one value or an axis", rich_help_panel=options.TRY
)


class SweepCommand:
    """`gpubench sweep` as the library that reads command lines is to see it: all its options as parameters.

    They stand behind its argument: those of trial fields, each in the order of the fields or behind the one that its
    entry names, `--set`, and those of `Options` and `RunOptions`.
    """

    def __init__(self, run: Callable[[Path | None, Mapping[str, Any]], None], experiment: Any) -> None:
        """`run`: is given the argument, and the value of each parameter, for `read`. `experiment`: the argument,
        as it is declared."""
        declared = {name: about.option for name, about in ABOUT.items() if about.option}
        of_fields = {option.name: _make_field_parameter(name, option) for name, option in declared.items()}
        parameters = of_fields | {"--set": _make_keyword("set_", Annotated[list[str] | None, SET], None)}
        for kind in (Options, RunOptions):
            hints = get_type_hints(kind, include_extras=True)
            for field in dataclasses.fields(kind):
                if option := next(iter(getattr(hints[field.name], "__metadata__", ())), None):
                    parameters[option.names[0]] = _make_parameter(field, hints[field.name], option)
        names = order_names(list(parameters), {option.name: option.behind for option in declared.values()})
        # Later axes vary faster, so this order is that of a plan's trials.
        self._fields = [of_fields[name].name for name in names if name in of_fields]
        self._run = run
        self.__name__, self.__doc__ = run.__name__, run.__doc__
        argument = inspect.Parameter(
            "experiment", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=experiment
        )
        _set_parameters(self, [argument, *(parameters[name] for name in names)])

    def __call__(self, experiment: Path | None, **given: Any) -> None:
        self._run(experiment, given)

    def read(self, given: Mapping[str, Any]) -> tuple[Options, RunOptions]:
        """The options of what was given by parameter. Raises UsageError for a field that is no field."""
        named = {
            name: "true" if given[name] is True else given[name]
            for name in self._fields
            if given[name] not in (None, False)
        }
        fields = options.collect_field_values(named, given["set_"] or ())
        return Options(fields=fields, **_select_values(Options, given)), RunOptions(
            **_select_values(RunOptions, given)
        )


def _make_parameter(field: dataclasses.Field[Any], hint: Any, option: Declared) -> inspect.Parameter:
    """A field of options as a parameter of a command."""
    kind = get_args(hint)[0]
    is_many = kind == tuple[str, ...]
    declared = typer.Option(
        *option.names,
        metavar=option.metavar,
        help=option.help,
        min=option.least,
        autocompletion=options.make_completer(lambda: option.words) if option.words else None,
        rich_help_panel=options.TRY if option.tries else options.RUN,
    )
    return _make_keyword(
        field.name,
        Annotated[list[str] | None if is_many else kind, declared],
        None if is_many else field.default,
    )


def _select_values(kind: type[Options | RunOptions], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the fields of `kind` among those given, lists as tuples."""
    return {
        field.name: tuple(given[field.name] or ()) if field.default == () else given[field.name]
        for field in dataclasses.fields(kind)
        if field.name in given
    }


def _make_field_parameter(name: str, option: Option) -> inspect.Parameter:
    """A field's option as a parameter of a command."""
    if option.is_flag:
        flag = typer.Option(option.name, help=option.help, rich_help_panel=options.RUN)
        return _make_keyword(name, Annotated[bool, flag], False)
    names = functools.partial(options.list_named_values, name)
    typed = options.declare_text(option.name, option.metavar, option.help, names, rich_help_panel=options.TRY)
    return _make_keyword(name, Annotated[str | None, typed], None)


def _make_keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def add_form_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each form that has one; its parameter `form` gets the name of the one given."""
    *parameters, _ = inspect.signature(command, eval_str=True).parameters.values()
    of_forms = [
        _make_keyword(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)
        for name, text in FORMS.items()
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(form=options.choose_form([form.name for form in of_forms if given.pop(form.name)]), **given)

    return _set_parameters(run, [*parameters, *of_forms])


def _set_parameters(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The command, of which the library that reads command lines sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
