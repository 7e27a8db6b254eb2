"""How options are declared, those of a kind alike and those of several commands once; and how trial fields are read."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import typer

from gpubench.basics.errors import UsageError
from gpubench.cli.gone import GONE
from gpubench.schema import catalog
from gpubench.schema.trial_fields import TYPES

TRY, RUN = "What to try (lists and ranges)", "How to run it"
"""The headings of a sweep's options in `--help`."""


def declare_whole_number(
    name: str, help_: str, default: int | None, *short: str, least: int = 0, **more: Any
) -> Any:
    """An option that is a whole number. `more`: what typer's own takes besides, here and below."""
    return typer.Option(default, name, *short, metavar="N", help=help_, min=least, **more)


def declare_flag(name: str, help_: str, **more: Any) -> Any:
    """An option without a value."""
    return typer.Option(False, name, help=help_, **more)


def declare_text(
    name: str, metavar: str, help_: str, names: Callable[[], Iterable[str]] | None = None, *, default: Any = None,
    **more: Any,
) -> Any:  # fmt: skip
    """An option that is text, or several of it. `metavar`: how it looks. `names`: what a shell offers for it."""
    return typer.Option(
        default,
        name,
        metavar=metavar,
        help=help_,
        autocompletion=make_completer(names) if names else None,
        **more,
    )


def declare_repeated_text(name: str, metavar: str, help_: str) -> Any:
    """An option that is given once for each of several texts."""
    return declare_text(name, metavar, help_, default=..., default_factory=list, show_default=False)


def make_refusal_of_gone_names(noun: str) -> Callable[[typer.CallbackParam, str | None], str | None]:
    """Refuses names, with commas between them, that an earlier version had. `noun`: what they name."""

    def check(param: typer.CallbackParam, given: str | None) -> str | None:
        for name in map(str.strip, (given or "").split(",")):
            if gone := GONE.get(f"{param.opts[0]} {name}"):
                raise UsageError(f"No such {noun}: {name}; {gone}")
        return given

    return check


def make_completer(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Completes the last of several values with commas between them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def list_named_values(field: str) -> Sequence[str]:
    """The values of a trial field that have names; of numbers none."""
    named: Mapping[str, Iterable[str]] = {
        "model": catalog.list_model_names(),
        "strategy": catalog.STRATEGIES,
        "variant": catalog.VARIANTS,
        "optimizer": catalog.OPTIMIZERS,
        "data": (catalog.PROCEDURAL, *catalog.NAMED_DATA),
    }
    kind, *_ = typing.get_args(TYPES[field])
    choices = [part for part in (kind, *typing.get_args(kind)) if typing.get_origin(part) is Literal]
    return tuple(named.get(field, typing.get_args(choices[0]) if choices else ()))


def _list_results_folders() -> list[str]:
    return [str(path) for path in sorted(Path(os.environ.get("GPUBENCH_OUT", "results")).glob("*/"))]


def declare_results_folders(help_: str = "Results folders; none: the newest one.", **more: Any) -> Any:
    """The argument of commands that read results folders."""
    several = {"default_factory": list, "show_default": False}
    return typer.Argument(
        autocompletion=make_completer(_list_results_folders),
        metavar="RESULTS",
        help=help_,
        readable=False,
        **(more or several),
    )


def choose_only_form(names: Sequence[str]) -> str | None:
    """The form that was asked for by its option; None for none. Raises UsageError for several."""
    if len(names) > 1:
        raise UsageError(f"--{names[0]} and --{names[1]} are two forms of the same; give one of them")
    return names[0] if names else None


def collect_field_values(named: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """Trial field -> its values as text: those with an option of their own, and what --set gives.

    Whether a name is a field, or a setting of a command, is seen once the command is known. Raises UsageError for a
    field that is given twice.
    """
    fields = dict(named)
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set: {text!r} is not FIELD=VALUES")
        field = name.strip().replace("-", "_")
        if field in fields:
            raise UsageError(f"{field} is given twice; give all its values at once, with commas")
        fields[field] = value
    return fields


def make_keyword_parameter(name: str, annotation: Any, declared: Any) -> inspect.Parameter:
    """A parameter of a command. `declared`: its option or argument."""
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
                given["form"] = choose_only_form([name for name in forms if given.pop(name)])
            works = getattr(importlib.import_module(f"gpubench.commands.{module}"), function)
            raise typer.Exit(works(**given) or 0)

        of_forms = [
            make_keyword_parameter(name, bool, declare_flag(f"--{name}", help_))
            for name, help_ in forms.items()
        ]
        return set_signature(run, [*inspect.signature(command, eval_str=True).parameters.values(), *of_forms])

    return declare


def set_signature(
    command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The command, of which the library that reads command lines sees these parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
