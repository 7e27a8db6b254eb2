"""How options are declared, those of a kind alike and those of several commands once; and how trial fields are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gpubench import completion, usage
from gpubench.basics.errors import UsageError
from gpubench.render.forms import AnswerForm


def sweep_option(
    name: str, text: str, *, metavar: str | None = "VALUES", completer: completion.Completer | None = None
) -> Any:
    """An option of a sweep that says what is tried."""
    return typer.Option(
        name,
        metavar=metavar,
        help=text,
        autocompletion=completer,
        rich_help_panel="What to try (lists and ranges)",
    )


def how(
    *names: str,
    text: str,
    metavar: str | None = None,
    parser: Callable[[Any], Any] | None = None,
    words: Sequence[str] = (),
) -> Any:
    """An option of a sweep that says how it is run. `words`: all that may be given."""
    return typer.Option(
        *names,
        readable=False,
        metavar=metavar,
        help=text,
        parser=parser,
        autocompletion=completion.listed(words) if words else None,
        rich_help_panel="How to run it",
    )


def count(name: str, text: str, *short: str, least: int = 0, panel: str | None = None) -> Any:
    """An option that is a whole number. `panel`: under which heading `--help` names it."""
    return typer.Option(
        name, *short, metavar="N", help=text, parser=usage.whole(name, least), rich_help_panel=panel
    )


def text(
    name: str, metavar: str, help_: str, completer: completion.Completer | None = None, **more: Any
) -> Any:
    """An option that is text, or several of it. `metavar`: how it looks. `more`: what typer's own takes besides."""
    return typer.Option(name, metavar=metavar, help=help_, autocompletion=completer, **more)


def folders(help_: str) -> Any:
    """The argument of commands that read results folders."""
    return typer.Argument(
        autocompletion=completion.results, metavar=usage.RESULTS, help=help_, readable=False
    )


ResultsFolders = Annotated[list[Path] | None, folders("Results folders; none: the newest one.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="As Markdown.")]
JsonObject = Annotated[bool, typer.Option("--json", help="As one JSON object.")]


def choose_form(names: Sequence[str]) -> str | None:
    """The form that was asked for by its option; None for none. Raises UsageError for several."""
    if len(names) > 1:
        raise UsageError(f"--{names[0]} and --{names[1]} are two forms of the same; give one of them")
    return names[0] if names else None


def choose_answer_form(*, json: bool, markdown: bool) -> AnswerForm:
    """Which of the forms of an answer is asked for. Raises UsageError for two at once."""
    choose_form(["json"] * json + ["markdown"] * markdown)
    return "json" if json else "markdown" if markdown else "text"


def read_fields(named: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """Trial field -> its values as text: those with an option of their own, and what --set gives.

    Raises UsageError for a field that is given twice.
    """
    from gpubench.plan.values import check_field

    fields = dict(named)
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set: {text!r} is not FIELD=VALUES")
        field = check_field(name.strip().replace("-", "_"))
        if field in fields:
            raise UsageError(f"{field} is given twice; give all its values at once, with commas")
        fields[field] = value
    return fields
