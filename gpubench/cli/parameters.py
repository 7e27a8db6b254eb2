"""Options of a command that follow from a registry: one for each field of a trial, one for each form of a table."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from gpubench import completion
from gpubench.cli import options
from gpubench.render.forms import FORMS
from gpubench.schema.field import Option, in_order
from gpubench.schema.trial_fields import ABOUT


def with_field_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each field that has one; its parameter `fields` gets those that were given.

    The options stand behind its argument, each in the order of the fields or behind the one that its entry names.
    Its attribute `taken` takes the fields out of what was given, for who reads a command line and runs nothing.
    """
    declared = {name: about.option for name, about in ABOUT.items() if about.option}
    of_fields = {option.name: _field_parameter(name, option) for name, option in declared.items()}
    signature = inspect.signature(command, eval_str=True)
    first, *own = (one for one in signature.parameters.values() if one.name != "fields")
    parameters = of_fields | {f"--{one.name.strip('_').replace('_', '-')}": one for one in own}
    names = in_order(list(parameters), {option.name: option.behind for option in declared.values()})
    # Later axes vary faster, so this order is that of a plan's trials.
    axes = in_order(
        [name for name in names if name in of_fields],
        {option.name: option.varies_behind for option in declared.values()},
    )

    def taken(given: dict[str, Any]) -> dict[str, str]:
        asked = {name: given.pop(of_fields[name].name) for name in axes}
        return {
            of_fields[name].name: "true" if value is True else value
            for name, value in asked.items()
            if value not in (None, False)
        }

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(fields=taken(given), **given)

    run.taken = taken  # type: ignore[attr-defined]
    return _with_parameters(run, [first, *(parameters[name] for name in names)])


def _field_parameter(name: str, option: Option) -> inspect.Parameter:
    """A field's option as a parameter of a command."""
    kind: Any = bool if option.is_flag else str | None
    default = False if option.is_flag else None
    completer = completion.of_field(name) if completion.values_of(name) else None
    told = options.field(option.name, option.help, metavar=option.metavar, completer=completer)
    if option.is_flag:
        told = options.how(option.name, text=option.help)
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, told]
    )


def with_form_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each form that has one; its parameter `form` gets the name of the one given."""
    *own, _ = inspect.signature(command, eval_str=True).parameters.values()
    of_forms = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=Annotated[bool, typer.Option(f"--{name}", help=form.help)],
        )
        for name, form in FORMS.items()
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(form=options.choose_form([one.name for one in of_forms if given.pop(one.name)]), **given)

    return _with_parameters(run, [*own, *of_forms])


def _with_parameters(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The command, of which the library that reads command lines sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command
