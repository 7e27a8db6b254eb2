"""How every command reads its options: none given twice, `-h`, advice for one that is not known, plain help."""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from gpubench.basics.errors import UsageError
from gpubench.basics.quiet_pipe import quiet_pipes
from gpubench.schema.trial_fields import ABOUT

SETTINGS: Mapping[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of the context of all commands."""
LIST_MARKS = ("VALUES", ",…")
"""How the placeholder of an option ends that takes several values at once, with commas between."""

ASSIGNING = ("--set", "--exclude", "--job")
"""Options of which each value begins with the name of a field and an equals sign."""

RESULTS = "RESULTS"
"""The placeholder of an argument that is a results folder."""
TOML = ".toml"
"""How an experiment file ends, and the placeholder of an argument that is one."""


class Command(TyperCommand):
    """A command that refuses what it would have to lose silently: the first of two values of one option."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        asks = bool(set(SETTINGS["help_option_names"]) & set(given))
        if not asks:
            refuse_spaces(self.get_params(ctx), given)
        try:
            if not asks:
                self._refuse_folders(ctx, given)
            rest: list[str] = super().parse_args(ctx, args)  # --help ends here
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # so that the error can say whose help to look at
                error.ctx = ctx  # type: ignore[attr-defined]
            raise
        # The library keeps the last value of an option, but tells of each time that it was given.
        *_, order = self.make_parser(ctx).parse_args(args=list(given))
        refuse_repeated(order, given)
        return rest

    def _refuse_folders(self, ctx: Any, given: Sequence[str]) -> None:
        """Raises UsageError for several results folders, where one is read at a time."""
        one = [p for p in self.get_params(ctx) if p.metavar == RESULTS and p.nargs == 1]
        values, more, _ = self.make_parser(ctx).parse_args(args=list(given))
        if one and more:
            folders = [values[one[0].name], *more]
            others = [word for word in given if word not in (*folders, "--")]
            orders = [f"{ctx.command_path} {shlex.join([folder, *others])}" for folder in folders]
            raise UsageError(
                f"{ctx.info_name} reads one results folder at a time; type {', then '.join(orders)}"
            )


class Reader(Command):
    """A command that only tells: whoever reads the answer may leave, as `head` does once it has its lines."""

    def invoke(self, ctx: Any) -> Any:
        with quiet_pipes():
            return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """A group of commands. Ctrl-C leaves it as an Abort: the library would end without a word."""

    def get_params(self, ctx: Any) -> list[Any]:
        params = _plain(super().get_params(ctx))
        for param in params:
            if param.name == "show_completion":  # whoever needs it has it from docs/usage.md
                param.hidden = True
            if param.name == "install_completion":
                param.help = "Let this shell complete commands, options and values."
        return params

    def make_context(self, *args: Any, **given: Any) -> Any:
        with _aborted_by_ctrl_c():
            return super().make_context(*args, **given)

    def invoke(self, ctx: Any) -> Any:
        with _aborted_by_ctrl_c():
            return super().invoke(ctx)


@contextlib.contextmanager
def _aborted_by_ctrl_c() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Abort from None


def refuse_repeated(order: Sequence[Any], given: Sequence[str]) -> None:
    """Raises UsageError for an option with one value that is there twice. Flags do no harm.

    `order`: the parameters of the command line `given`, each as often as it is there.
    """
    for index, option in enumerate(order):
        if option.param_type_name != "option" or option.is_flag or option.multiple:
            continue
        if option in order[:index]:
            name = max(option.opts, key=len)
            advice = "once is enough"
            if str(option.metavar).endswith(LIST_MARKS):
                advice = f"give all its values at once: {name} {','.join(_values(option.opts, given))}"
            raise UsageError(f"{name} is given twice; {advice}")


def refuse_spaces(params: Sequence[Any], given: Sequence[str]) -> None:
    """Raises UsageError for values of one option with spaces between, of which all but the first would be lost.

    `params`: of a command whose one argument is a TOML file, so that any other word behind a value is one more value;
    other commands are left alone.
    """
    if not any(p.param_type_name == "argument" and str(p.metavar).endswith(TOML) for p in params):
        return
    lists = {name for p in params if str(p.metavar).endswith(LIST_MARKS) for name in p.opts}
    for index, word in enumerate(given):
        name, equals, value = word.partition("=")
        behind = [value, *given[index + 1 :]] if equals else list(given[index + 1 :])
        if name not in lists or not behind:
            continue
        more = list(itertools.takewhile(_is_value, behind[1:]))
        if more and name in ASSIGNING and "=" not in behind[0]:
            example = f"{behind[0]}={','.join(more)}"
            raise UsageError(f"{name} takes FIELD=VALUES with an equals sign between: {name} {example}")
        if more:
            all_of_them = ",".join(value.strip(",") for value in (behind[0], *more))
            raise UsageError(
                f"{more[0]!r} behind {name} {behind[0]} is neither an option nor an experiment file; "
                f"between several values stand commas, no spaces: {name} {all_of_them}"
            )


def _is_value(word: str) -> bool:
    """Whether a word of a command line can be nothing but one more value of the option before it."""
    return not word.startswith("-") and not word.endswith(TOML) and not Path(word).exists()


def _values(names: Sequence[str], given: Sequence[str]) -> Iterator[str]:
    """What stands behind each of the option's names."""
    for index, word in enumerate(given):
        name, equals, value = word.partition("=")
        if name in names:
            yield value if equals else given[index + 1]


def whole(name: str, least: int) -> Callable[[Any], int]:
    """The reader of option `name`, a whole number of at least `least`. It raises UsageError for anything else."""

    def read(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"{name} must be a whole number, not {text!r}") from None
        if number < least:
            raise UsageError(f"{name} must be at least {least}, not {number}")
        return number

    return read


def _plain(params: Sequence[Any]) -> list[Any]:
    """The parameters without `<bool>` behind the flags, and without Python's word for several paths."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument" and param.nargs == -1:
            param.display_type = lambda *_: "<path>"
    return list(params)


def told(error: Any, gone: Mapping[str, str]) -> str:
    """A usage error of the command line library in one line, with advice.

    `gone`: options and commands that there are no longer -> what to do instead.
    """
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "gpubench")
    words = _advice(error, context, gone) or error.format_message().removesuffix(".")
    return f"{words}; see {path} --help"


def _advice(error: Any, context: Any, gone: Mapping[str, str]) -> str | None:
    """What to type in place of a trial field that has no option of its own, and of what is gone."""
    if command := re.match(r"No such command '([^']+)'", error.format_message()):
        return f"{command[0]}; {gone[command[1]]}" if command[1] in gone else None
    option = getattr(error, "option_name", "")
    field = option.lstrip("-").replace("-", "_")
    options = {
        name for param in getattr(getattr(context, "command", None), "params", ()) for name in param.opts
    }
    if field in ABOUT and "--set" in options and f"--{field.replace('_', '-')}" not in options:
        return f"No such option: {option}; {field} is a trial field: write --set {field}=VALUES"
    return f"No such option: {option}; {gone[option]}" if option in gone.keys() - options else None
