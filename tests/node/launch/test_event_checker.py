"""What enters the parent from a rank: all that a rank tells, and nothing else, whatever else is written there."""

from __future__ import annotations

import json
from typing import Any

import pytest
import scripted
from whole_conversations import RICH, STREAM, STREAMED, WHOLE, Message, heard, order, plainly, told

from gpubench.node.launch.event_checker import InvalidEventError, parse_event


@pytest.mark.parametrize("events", [WHOLE, RICH, STREAMED], ids=["plain", "rich", "stream"])
def test_what_a_rank_tells_comes_through_as_it_was(events: list[Message]) -> None:
    assert [plainly(event) for event in heard(events)] == events


def test_of_several_ranks_each_speaks_for_itself() -> None:
    events = told(order(ranks=2))
    assert [plainly(event) for event in heard(events)] == events
    assert STREAM.protocol != scripted.order().protocol


HELLO: dict[str, Any] = {"event": "hello", "rank": 0, "pid": 7, "cuda": None, "torch": "2", "decoder": "d"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes(range(256)), "256 bytes"),
        (b'{"event":"hello"', "16 bytes"),
        (b"[" * 100_000, "100,000 bytes"),
        (b'{"event":"bye","rank":0}', "bye"),
        (json.dumps(HELLO | {"pid": True}).encode(), "pid"),
        (json.dumps(HELLO | {"more": 1}).encode(), "more"),
        (json.dumps(HELLO | {"rank": 1}).encode(), "'hello' of rank 1"),
        (b'{"event":"filling","rank":0,"at":Infinity}', "must be at most 1.79769e+308"),
        (b'{"event":"progress","rank":0,"epoch":-1,"step":1}', "must be at least 0"),
        (b'{"event":"steps","rank":0,"epoch":0,"end_us":[],"wait_us":[]}', "end_us"),
    ],
)
def test_what_is_no_event_is_told_in_one_harmless_line(data: bytes, words: str) -> None:
    with pytest.raises(InvalidEventError) as caught:
        parse_event(0, data)
    said = str(caught.value)
    assert words in said
    assert said.isprintable()
    assert len(said) < 400
