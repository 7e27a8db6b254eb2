"""What is read of a command's output: lines, edges of epochs, figures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.schema.command import MOST_EPOCHS, MetricTarget, parse_metric_patterns
from gpubench.script.output import (
    LONGEST_LINE,
    EpochEdges,
    EpochSpan,
    LinePattern,
    LineSplitter,
    MetricReader,
    parse_figure,
)


@given(st.lists(st.text("ab\n\r", max_size=6)))
def test_lines_are_the_same_in_whatever_pieces_they_come(pieces: list[str]) -> None:
    splitter = LineSplitter()
    read = [splitter.split_off_lines(piece.encode()) for piece in pieces]
    text = "\n".join([*filter(None, read), splitter.end()])
    lines = [line for line in "".join(pieces).replace("\r", "\n").split("\n") if line]
    assert [line for line in text.split("\n") if line] == lines


def test_colours_are_none_of_the_text() -> None:
    splitter = LineSplitter()
    text = b"\x1b[32mEpoch\x1b[0m \x1b[1;36m3\x1b[0m\n\x1b[2K\racc=\x1b[1"
    assert splitter.split_off_lines(text) == "Epoch 3\n"
    assert splitter.split_off_lines(b"m5\x1b[0m\n") == "acc=5"
    splitter.split_off_lines(b"\x1b[1mlast\x1b[m")
    assert splitter.end() == "last"


def test_a_line_without_an_end_takes_no_more_room() -> None:
    splitter = LineSplitter()
    for _ in range(100):
        assert splitter.split_off_lines(b"x" * 10_000) == ""
    assert len(splitter.end()) == LONGEST_LINE


@pytest.mark.parametrize("regex", [r"^Epoch (\d+)$", r"\AEpoch (\d+)\Z"])
def test_a_pattern_is_held_against_single_lines(regex: str) -> None:
    pattern = LinePattern.compile(regex)
    text = "x\nEpoch 1\nEpoch 2 and more\nEpoch 3\nEpoch\n4"
    assert [match[1] for match in pattern.find_in_lines(text)] == ["1", "3"]
    assert pattern.find_in_lines("nothing\nhere") == []


@pytest.mark.parametrize(
    "regex", [r"x=(\d)(?!\s)", r"(?<!\n)x=(\d)", r"x=(\d)[^,]*+$", r"x=(\d)(?>[^,]*)$", r"x=(\d)[^,]++$"]
)
def test_what_looks_beyond_its_line_is_looked_for_in_single_lines(regex: str) -> None:
    matches = LinePattern.compile(regex).find_in_lines("a\nx=1;\nb" if "++" in regex else "a\nx=1\nb")
    assert [match[1] for match in matches] == (["1"])


def test_an_epoch_lasts_from_one_value_to_the_next() -> None:
    edges = EpochEdges(LinePattern.compile(r"Epoch: \[(\d+)\]"))
    assert not edges.has_begun
    assert edges.find_epochs("start", 0.0) == []
    assert edges.find_epochs("Epoch: [0][1/9]\nEpoch: [0][2/9]", 1.0) == []
    assert edges.has_begun
    assert edges.find_epochs("Epoch: [0][9/9]", 2.0) == []
    assert edges.find_epochs("Epoch: [1][1/9]", 3.0) == [EpochSpan(0, 1.0, 3.0)]
    assert edges.find_epochs("Epoch: [2][1/9]\nEpoch: [2][2/9]", 4.5) == [EpochSpan(1, 3.0, 4.5)]


def test_without_a_group_each_line_is_an_edge() -> None:
    edges = EpochEdges(LinePattern.compile("done"))
    spans = [edges.find_epochs("epoch done", now) for now in (1.0, 2.0, 4.0)]
    assert spans == [[], [EpochSpan(0, 1.0, 2.0)], [EpochSpan(1, 2.0, 4.0)]]


def test_a_flood_of_epochs_is_counted_no_further() -> None:
    edges = EpochEdges(LinePattern.compile("y"))
    spans = edges.find_epochs("y\n" * (MOST_EPOCHS + 5), 1.0)
    assert (len(spans), edges.count, spans[-1].number) == (MOST_EPOCHS, MOST_EPOCHS, MOST_EPOCHS - 1)
    assert edges.find_epochs("y", 2.0) == []


def test_lines_end_with_the_one_that_reaches_the_target() -> None:
    reader = MetricReader(parse_metric_patterns("acc=([\\d.]+|x)\nloss=(.+)"))
    text = "Epoch 1\nloss=99\nacc=x\nacc=5\nacc=60.0 Epoch 2\nEpoch 3\nacc=70"
    assert reader.cut_behind_target(text, MetricTarget("acc", 60)).endswith("acc=60.0 Epoch 2")
    assert reader.cut_behind_target(text, MetricTarget("acc", 71)) == text


def test_figures_are_the_last_of_their_names() -> None:
    reader = MetricReader(parse_metric_patterns("acc=Acc@1 +([\\d.]+)\nloss=([\\d.e-]+|nan)"))
    assert reader.find_values("Acc@1  20.5\nloss=0.5\nAcc@1 21.5") == [
        ("acc", 20.5),
        ("acc", 21.5),
        ("loss", 0.5),
    ]
    assert reader.find_values("loss=nan") == []
    assert reader.latest == {"acc": 21.5, "loss": None}, "what is lost is no earlier figure"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.5", 1234.5),
        ("93.2%", 93.2),
        ("-1e-3", -0.001),
        ("nan", None),
        ("inf", None),
        ("x", None),
        (None, None),
    ],
)
def test_a_figure_as_programs_print_it(text: str | None, value: float | None) -> None:
    assert parse_figure(text) == value
