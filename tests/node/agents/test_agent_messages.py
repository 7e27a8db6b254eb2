"""Messages over a pipe, however they are cut up on their way, and what is none."""

from __future__ import annotations

import json
import os
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.node.agents import frames
from gpubench.node.agents.messages import AskTime, Beat, ForeignWordsError, Time, read_request, read_told
from gpubench.schema.events import Steps


def bytes_of(*messages: object) -> bytes:
    inwards, outwards = os.pipe()
    for message in messages:
        frames.send(outwards, message)
    os.close(outwards)
    data = b""
    while part := os.read(inwards, 100_000):
        data += part
    os.close(inwards)
    return data


@given(cuts=st.lists(st.integers(1, 40)))
def test_messages_come_whole_however_they_are_cut(cuts: list[int]) -> None:
    data = bytes_of(AskTime(number=7), Beat())
    held, found = frames.Frames(), []
    for size in [*cuts, len(data)]:
        found += list(held.feed(data[:size]))
        data = data[size:]
    assert [read_request(json.loads(one)) for one in found] == [AskTime(number=7), Beat()]


def test_what_a_login_prints_is_no_message_and_is_quoted() -> None:
    with pytest.raises(frames.ForeignError, match="Welcome to n2"):
        list(frames.Frames().feed(b"Welcome to n2!\n"))


@given(
    cuts=st.lists(st.integers(1, 40)),
    greeting=st.lists(st.sampled_from([b"Welcome to n2!\n", b"gpb", b"g", b"\x00\xff"])).map(b"".join),
)
def test_a_greeting_before_the_first_message_is_passed_over(cuts: list[int], greeting: bytes) -> None:
    data = greeting + bytes_of(AskTime(number=7), Beat())
    held, found = frames.Frames(may_greet=True), []
    for size in [*cuts, len(data)]:
        found += list(held.feed(data[:size]))
        data = data[size:]
    assert [read_request(json.loads(one)) for one in found] == [AskTime(number=7), Beat()]
    with pytest.raises(frames.ForeignError, match="Welcome to n2"):
        list(held.feed(b"Welcome to n2!\n"))


def test_what_greets_for_ever_is_no_agent() -> None:
    held = frames.Frames(may_greet=True)
    begun = held.feed(b"y\n" * 1000)
    assert not list(begun)
    with pytest.raises(frames.ForeignError, match="y y y"):
        list(held.feed(b"y\n" * 50_000))


def test_a_length_that_no_message_has_is_refused() -> None:
    with pytest.raises(frames.ForeignError, match="bytes"):
        list(frames.Frames().feed(frames.MARK + b"\xff" * 8))


def test_arrays_go_as_lists() -> None:
    sent = Steps(rank=0, epoch=1, end_us=array("q", [1, 2]), wait_us=array("q", [0, 0]))
    assert json.loads(bytes_of(sent)[12:])["end_us"] == [1, 2]


@pytest.mark.parametrize(
    ("said", "where"),
    [
        (b'{"told":"time","number":1,"at":Infinity}', "time.at"),
        (b'{"told":"time","number":"1","at":1.0}', "time.number"),
        (b'{"told":"time","number":1,"at":1.0,"more":1}', "time.more"),
        (b'{"told":"joke"}', ""),
        (b"[]", ""),
    ],
)
def test_what_no_agent_tells_is_refused(said: bytes, where: str) -> None:
    with pytest.raises(ForeignWordsError, match=f"^{where}"):
        read_told(said)


def test_what_an_agent_tells_is_read() -> None:
    assert read_told(bytes_of(Time(number=3, at=1.5))[12:]) == Time(number=3, at=1.5)
