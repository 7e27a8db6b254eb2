"""A command as text: words, placeholders, settings, patterns of figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.schema.command import (
    MetricPattern,
    MetricTarget,
    fill_placeholders,
    find_script,
    join_command,
    join_settings,
    list_placeholders,
    parse_metric_pattern,
    parse_metric_patterns,
    parse_metric_target,
    split_command,
    split_settings,
)

WORDS = st.lists(
    st.text(st.characters(exclude_characters="{}\0", exclude_categories=["Cs"])), min_size=1
).filter(lambda words: words[0] != "")


@given(WORDS)
def test_words_come_back_as_they_were(words: list[str]) -> None:
    assert split_command(join_command(words)) == tuple(words)


@pytest.mark.parametrize(
    ("text", "says"), [("echo 'x", "can't be read: No closing quotation"), ("  ", "the command is empty")]
)
def test_what_has_no_words_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        split_command(text)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_value_stays_one_word_whatever_is_in_it(value: str) -> None:
    command = join_command(["run", "--x={x}", "{x}"])
    assert fill_placeholders(command, {"x": value}) == ("run", f"--x={value}", value)


@pytest.mark.parametrize(
    ("word", "names", "filled"),
    [
        ("{batch_size}", ("batch_size",), "16"),
        ("{{batch_size}}", (), "{batch_size}"),
        ("{x}{batch_size}{x}", ("x", "batch_size"), "a16a"),
        ('{"lr": 1}', (), '{"lr": 1}'),
        ("{}", (), "{}"),
        ("{Big}", (), "{Big}"),
        ("${x}", ("x",), "$a"),
    ],
)
def test_which_braces_are_placeholders(word: str, names: tuple[str, ...], filled: str) -> None:
    command = join_command(["run", word])
    assert list_placeholders(command) == names
    assert fill_placeholders(command, {"batch_size": "16", "x": "a"}) == ("run", filled)


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)


@given(st.dictionaries(NAMES, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_settings_come_back_as_they_were(settings: dict[str, str]) -> None:
    joined = join_settings(settings)
    assert split_settings(joined) == settings
    assert (joined is None) == (not settings)


def test_a_pattern_that_begins_with_its_figure_has_the_name_before_it() -> None:
    assert parse_metric_pattern(r"acc=([\d.]+)") == MetricPattern("acc", r"acc=([\d.]+)")
    assert parse_metric_pattern(r"acc=Acc@1 +([\d.]+)") == MetricPattern("acc", r"Acc@1 +([\d.]+)")


@pytest.mark.parametrize("text", ["acc", "Acc=(.)", "=(.)", "acc=.", "acc=(", "a b=(.)", "acc=(.)\nx=(.)"])
def test_a_pattern_without_a_name_or_a_figure_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--metric"):
        parse_metric_pattern(text)


def test_two_patterns_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="acc is given twice"):
        parse_metric_patterns("acc=(.)\nacc=x(.)")


def test_a_target_names_a_figure_that_is_looked_for() -> None:
    assert parse_metric_target("acc=60", ["acc"]) == MetricTarget("acc", 60.0)
    for text in ("acc", "acc=", "acc=high", "acc=nan", "acc=inf"):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            parse_metric_target(text, ["acc"])
    with pytest.raises(UsageError, match="nothing finds loss"):
        parse_metric_target("loss=1", ["acc"])


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python train.py --lr 1 more.py", "train.py"),
        ("/usr/bin/python3.11 -uB -W ignore -Xdev train", "train"),
        ("bash -e -o pipefail run.sh", "run.sh"),
        ("sh run", "run"),
        ("python -m torch.distributed.run train.py", None),
        ("python -uc pass.py", None),
        ("python - out.py", None),
        ("python -i", None),
        ("bash -lc 'python train.py'", None),
        ("bash --rcfile mine.sh run.sh", None),
        ("torchrun train.py", None),
        ("./python.py train.py", None),
    ],
)
def test_which_file_an_interpreter_is_to_run(command: str, script: str | None) -> None:
    assert find_script(split_command(command)) == script
