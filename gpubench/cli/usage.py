"""How every command reads its options: none given twice, advice for one that is not known, plain help, plain errors."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gpubench.basics.errors import UsageError
from gpubench.basics.quiet_pipe import outlive_output_readers
from gpubench.cli.gone import GONE
from gpubench.schema.trial_fields import ABOUT


class StrictCommand(TyperCommand):
    """A command that refuses what it would have to lose silently: the first of two values of one option."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _simplify_help(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        rest: list[str] = super().parse_args(ctx, args)  # --help ends here
        # The library keeps the last value of an option, but tells of each time that it was given.
        *_, order = self.make_parser(ctx).parse_args(args=given)
        refuse_repeated_options(order)
        return rest


class ReadingCommand(StrictCommand):
    """A command that only tells: whoever reads the answer may leave, as `head` does once it has its lines."""

    def invoke(self, ctx: Any) -> Any:
        with outlive_output_readers():
            return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """A group of commands. Ctrl-C leaves it as an Abort: the library would end without a word."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _simplify_help(super().get_params(ctx))

    def make_context(self, *args: Any, **given: Any) -> Any:
        with _abort_on_ctrl_c():
            return super().make_context(*args, **given)

    def invoke(self, ctx: Any) -> Any:
        with _abort_on_ctrl_c():
            return super().invoke(ctx)


def _simplify_help(params: Sequence[Any]) -> list[Any]:
    """The parameters without `<bool>` behind the flags, and without Python's word for several paths."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument" and param.nargs == -1:
            param.display_type = lambda *_: "<path>"
    return list(params)


@contextlib.contextmanager
def _abort_on_ctrl_c() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Abort from None


def refuse_repeated_options(order: Sequence[Any]) -> None:
    """Raises UsageError for an option with one value that is there twice. Flags do no harm.

    `order`: the parameters of a command line, each as often as it is there.
    """
    for index, option in enumerate(order):
        takes_value = option.param_type_name == "option" and not (option.is_flag or option.multiple)
        if takes_value and option in order[:index]:
            raise UsageError(
                f"{max(option.opts, key=len)} is given twice: once is enough, with commas between several values"
            )


def format_usage_error(error: Any) -> str:
    """A usage error of the command line library in one line, with advice."""
    words = error.format_message().removesuffix(".")
    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", None) or ""
    if command := re.match(r"No such command '([^']+)'", words):
        option = command[1]
    if words.startswith("Got unexpected extra argument") and context and context.command.name == "sweep":
        words += "; a command of your own stands behind --, as in gpubench sweep -- python train.py"
    field = option.lstrip("-").replace("-", "_")
    names = {name for param in context.command.params for name in param.opts} if context else set()
    if option in GONE.keys() - names:
        words = f"{command[0] if command else f'No such option: {option}'}; {GONE[option]}"
    elif field in ABOUT and "--set" in names and f"--{field.replace('_', '-')}" not in names:
        words = f"No such option: {option}; {field} is a trial field: write --set {field}=VALUES"
    return f"{words}; see {getattr(context, 'command_path', 'gpubench')} --help"


def print_error(text: str, *, after_echo: bool = False) -> None:
    """One line on stderr. `after_echo`: a terminal has just shown `^C`, and not begun a new line."""
    with contextlib.suppress(OSError):  # nobody may be there to read it; the exit code tells as well
        if after_echo and sys.stderr.isatty():
            print(file=sys.stderr)
        print(f"gpubench: {' '.join(text.split())}", file=sys.stderr, flush=True)
