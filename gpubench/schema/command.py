"""A user's command as text: its words, its placeholders, and the patterns that find figures in its output. Pure.

In a trial a command is one text, quoted as a shell would read it. It is split into words first, and placeholders are
filled afterwards: no value can become two words, and no shell reads any of it.
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import quote_value

NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")
"""What a placeholder, and a figure in the output, may be called."""
SCRIPT_SUFFIXES = (".py", ".sh")
"""How the names of files end that are scripts of a command, and not what it reads or writes."""
MOST_EPOCHS = 10_000
"""Of one run of a command: figures are of the first ones."""
_PLACEHOLDER = re.compile(rf"\{{\{{({NAME.pattern})\}}\}}|\{{({NAME.pattern})\}}")
"""`{{name}}` stands for `{name}` itself. All other braces are the command's."""
_INTERPRETER = re.compile(r"python[\d.]*|(ba|da|z)?sh")
_NOT_FOLLOWED_BY_SCRIPT = re.compile(r"-|--.*|-[A-Za-z]*[cmsO].*")
"""Options of interpreters behind which no file of a script stands, or behind which it can't be told."""
_TAKES_WORD = re.compile(r"-[A-Za-z]*[WXo]")
"""Options of interpreters to which the next word belongs."""


def join_command(words: Sequence[str]) -> str:
    """The words of a command line as one text. Raises UsageError for none."""
    if not words or not words[0]:
        raise UsageError("a command is missing behind --: write -- python train.py …")
    return shlex.join(words)


def split_command(text: str) -> tuple[str, ...]:
    """The words of a command. Raises UsageError where a quotation mark is not closed, and for no word."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"command {quote_value(text)} can't be read: {error}") from None
    if not words:
        raise UsageError("the command is empty")
    return tuple(words)


def list_placeholders(text: str) -> tuple[str, ...]:
    """The names in a command's placeholders, each once, in their order."""
    return tuple(dict.fromkeys(match[2] for match in _PLACEHOLDER.finditer(text) if match[2]))


def fill_placeholders(text: str, values: Mapping[str, str]) -> tuple[str, ...]:
    """The words of a command with these values in place of its placeholders. Raises KeyError for one without."""
    return tuple(
        _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], word)
        for word in split_command(text)
    )


def find_script(words: Sequence[str]) -> str | None:
    """The file that Python or a shell is to run, the first word of a command being either; None where there is none."""
    program, *arguments = words
    if not _INTERPRETER.fullmatch(program.rpartition("/")[2]):
        return None
    is_value = False
    for word in arguments:
        if is_value:
            is_value = False
        elif not word.startswith("-"):
            return word
        elif _NOT_FOLLOWED_BY_SCRIPT.fullmatch(word):
            return None
        else:
            is_value = _TAKES_WORD.fullmatch(word) is not None
    return None


# ---- values of placeholders that are no fields of a trial ----


def join_settings(values: Mapping[str, str]) -> str | None:
    """`depth=4 dropout=0.1`, as a trial holds it; None for none."""
    return shlex.join(f"{name}={value}" for name, value in values.items()) or None


def split_settings(text: str | None) -> dict[str, str]:
    """The values by name."""
    pairs = (word.partition("=") for word in shlex.split(text or ""))
    return {name: value for name, _, value in pairs}


def find_number_type(text: str) -> type[int] | type[float] | None:
    """The type of a value that is a number; None for any other, and for one that its text would not come back from."""
    if re.fullmatch(r"0|-?[1-9]\d{0,14}", text):
        return int
    try:
        return float if abs(float(text)) < float("inf") and "_" not in text else None
    except ValueError:
        return None


# ---- figures in the output ----


@dataclass(frozen=True, slots=True)
class MetricPattern:
    """A figure that a command prints."""

    name: str
    regex: str
    """Its first group is the figure."""


def parse_metric_pattern(text: str) -> MetricPattern:
    """`acc=([\\d.]+)` finds `acc=93.5`; `acc=Acc@1 +([\\d.]+)` finds `Acc@1 93.5`. Raises UsageError."""
    name, equals, regex = text.partition("=")
    if not equals or not NAME.fullmatch(name) or "\n" in text:
        raise UsageError(
            f"--metric {quote_value(text)}: write NAME=REGEX, with a name of small letters, digits and underscores, "
            r"such as 'acc=([\d.]+)' or 'acc=Acc@1 +([\d.]+)'"
        )
    if regex.startswith("("):  # a bare number would be found in every line
        regex = f"{name}={regex}"
    if compile_pattern("--metric", regex).groups < 1:
        raise UsageError(
            f"--metric {quote_value(text)}: put the figure in parentheses, such as 'acc=([\\d.]+)'"
        )
    return MetricPattern(name, regex)


def parse_metric_patterns(lines: str | None) -> list[MetricPattern]:
    """Those of a trial, a line each. Raises UsageError for two of one name."""
    patterns = [parse_metric_pattern(line) for line in (lines or "").splitlines()]
    names = [pattern.name for pattern in patterns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--metric {twice[0]} is given twice; give each figure a name of its own")
    return patterns


def compile_pattern(option: str, regex: str) -> re.Pattern[str]:
    """Raises UsageError for what is no regular expression."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of what a later Python may read otherwise
            return re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{option} {quote_value(regex)} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """A figure that is to be reached: at least so much."""

    name: str
    value: float


def parse_metric_target(text: str, names: Collection[str]) -> MetricTarget:
    """`acc=60`. `names`: of the figures that are looked for. Raises UsageError."""
    name, equals, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        equals = ""
    if not equals or value != value or abs(value) == float("inf"):
        raise UsageError(f"--until {quote_value(text)}: write NAME=VALUE, such as acc=60")
    if name not in names:
        raise UsageError(
            f"--until {quote_value(text)}: nothing finds {name}; give --metric '{name}=REGEX', too"
        )
    return MetricTarget(name, value)
