"""What enters the parent from a rank: all that a rank tells, and nothing else, whatever else is written there."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import scripted
from whole_conversations import (
    HELD,
    MEMORY,
    NOW,
    RICH,
    STEP_TIMES,
    STREAM,
    STREAMED,
    WHOLE,
    Message,
    heard,
    order,
    plainly,
    reckoned,
    told,
)  # fmt: skip

from gpubench.node.launch.event_checker import EventChecker, InvalidEventError
from gpubench.schema.events import End
from gpubench.schema.order import SteadyWindow, TrialOrder


@pytest.mark.parametrize("events", [WHOLE, RICH], ids=["plain", "rich"])
def test_what_a_rank_tells_comes_through_as_it_was(events: list[Message]) -> None:
    assert [plainly(event) for event in heard(order(), events)] == events


def test_a_loss_that_is_no_number_comes_through() -> None:
    events = [e | ({"train_loss": float("nan")} if e["event"] == "end" else {}) for e in told(order())]
    ends = [event for event in heard(order(), events) if isinstance(event, End)]
    assert len(ends) == 3
    assert all(math.isnan(end.train_loss) for end in ends)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes that are no message"),
        (bytes(range(256)), "256 bytes that are no message"),
        (b"x" * 200_001, "200,001 bytes that are no message (b'xxx"),
        (b'{"event":"hello"', "16 bytes that are no message"),
        (b'[{"event":"hello"}]', "no message"),
        (b"[" * 100_000, "no message"),
        (b'{"event":"\\ud800"}', "no message"),
        (
            b'{"event":"hello","rank":0,"pid":7,"cuda":"\\ud800","torch":"2","decoder":"d"}',
            "no message",
        ),
        (b'{"event":"bye","rank":0}', "no message"),
        (
            b'{"event":"hello","rank":0,"pid":true,"cuda":null,"torch":"2","decoder":"d"}',
            "'hello' with pid out of order",
        ),
        (
            b'{"event":"hello","rank":0,"pid":1,"cuda":null,"torch":"2","decoder":"d","more":1}',
            "'hello' with more out of order (is no known name)",
        ),
        (
            b'{"event":"filling","rank":0,"at":Infinity}',
            "'filling' with at out of order (must be a finite number, not inf)",
        ),
        (
            b'{"event":"progress","rank":0,"epoch":-1,"step":1}',
            "'progress' with epoch out of order (must be at least 0, not -1)",
        ),
        (
            b'{"event":"steps","rank":0,"epoch":0,"end_us":[],"wait_us":[]}',
            "'steps' with end_us out of order (has too few parts)",
        ),
        (
            b'{"event":"hello","rank":0,"pid":1,"cuda":null}',
            "'hello' with torch out of order (is missing)",
        ),
        (
            json.dumps(WHOLE[-2] | {"phases": {"no name": 1.0}}).encode(),
            "'result' with phases.no name out of order (must be",
        ),
        (b'{"event":"hello","rank":1,"pid":1,"cuda":null,"torch":"2","decoder":"d"}', "'hello' of rank 1"),
        (b'{"event":"ready","rank":0}', "'ready' out of turn"),
    ],
)
def test_what_is_no_event_is_told_in_one_harmless_line(data: bytes, words: str) -> None:
    with pytest.raises(InvalidEventError) as caught:
        EventChecker(order(), lambda: 0.0).check(0, data)
    said = str(caught.value)
    assert words in said
    assert said.isprintable()
    assert len(said) < 300


def at(kind: str, number: int = 0) -> int:
    return [k for k, event in enumerate(WHOLE) if event["event"] == kind][number]


def changed(place: int, **fields: Any) -> list[Message]:
    return [event | (fields if k == place else {}) for k, event in enumerate(WHOLE)]


def without(place: int) -> list[Message]:
    return WHOLE[:place] + WHOLE[place + 1 :]


def twice(place: int) -> list[Message]:
    return WHOLE[: place + 1] + WHOLE[place:]


OUT_OF_ORDER = {
    "no hello": without(at("hello")),
    "hello twice": twice(at("hello")),
    "no begin": without(at("begin")),
    "begin twice": twice(at("begin")),
    "steps twice": twice(at("steps")),
    "no steps": without(at("steps")),
    "no end": without(at("end")),
    "end twice": twice(at("end")),
    "end of the next": changed(at("end"), epoch=1),
    "an epoch left out": without(at("begin", 1)),
    "settle twice": twice(at("settle")),
    "result twice": twice(at("result")),
    "exit twice": twice(at("rank-exit")),
    "result after the end": [*without(at("result")), WHOLE[at("result")]],
    "more epochs than asked for": WHOLE[: at("settle")]
    + [event | {"epoch": 3} for event in WHOLE[at("begin", 2) : at("settle")]],
    "more steps than images": changed(at("begin"), steps=1 << 40),
    "window that is none": changed(at("end"), t1=WHOLE[at("end")]["t0"]),
    "window before the trial": changed(at("end", 1), t0=1.0, t1=2.0),
    "window in the future": changed(at("end"), t1=NOW + 1),
    "windows that overlap": changed(at("end", 1), t0=WHOLE[at("end")]["t1"] - 1e-7),
    "no number": changed(at("end"), t1=float("nan")),
    "endless": changed(at("end"), first_batch_s=float("inf")),
    "negative": changed(at("end"), first_batch_s=-1.0),
    "steps that go back": changed(at("steps"), end_us=WHOLE[at("steps")]["end_us"][::-1]),
    "too large for its place": changed(at("steps"), end_us=[1 << 63] * 6),
    "waits of other steps": changed(at("steps"), wait_us=[0]),
    "result of other steps": changed(at("result"), steps_per_epoch=7),
    "result of too few steps": changed(at("result"), steps_per_epoch=5),
    "GPU that is not there": changed(at("result"), memory=MEMORY | {"devices": {"1": HELD}}),
    "half an exchange": changed(at("result"), breakdown=STEP_TIMES | {"comm_hidden_ms": None}),
    "parts of no time": changed(at("result"), breakdown=STEP_TIMES | {"step_ms": 0.0}),
    "accuracy beyond all": changed(at("result"), quality=[101.0, 1.0]),
    "result before it was measured": [*WHOLE[: at("begin", 1)], WHOLE[at("result")]],
    "quality of another epoch": [*WHOLE[: at("settle")], {"event": "quality", "rank": 0, "epoch": 0, "top1_pct": 1.0}],
}  # fmt: skip


@pytest.mark.parametrize("events", OUT_OF_ORDER.values(), ids=OUT_OF_ORDER)
def test_what_does_not_follow_is_refused(events: list[Message]) -> None:
    with pytest.raises(InvalidEventError):
        heard(order(), events)


def test_ranks_must_have_trained_alike() -> None:
    asked = order(ranks=2, epochs=2)
    events = [e for e in told(asked) if e["event"] != "rank-exit"]
    heard(asked, events)
    for event in events:
        if event["rank"] == 1 and event["event"] in ("begin", "end"):
            event["measured"] = True
    with pytest.raises(InvalidEventError, match="other epochs than other ranks"):
        heard(asked, events)


def stream(asked: TrialOrder, *lengths: int, warm_up: int = 1) -> list[Message]:
    """Windows of so many steps, of which the first warm up, and the result."""
    windows = [
        scripted.Span(number=k, steps=steps, measured=k >= warm_up, seconds=1e-6)
        for k, steps in enumerate(lengths)
    ]
    lines = [line for window in windows for line in scripted.plays(asked, window)]
    return [plainly(line) for line in (*scripted.hello(asked), *lines, *scripted.result(asked))]


def test_of_a_stream_windows_are_as_long_as_they_are() -> None:
    assert [plainly(event) for event in heard(STREAM, STREAMED)] == STREAMED
    assert heard(STREAM, stream(STREAM, 10, 3, 5, 7, warm_up=2))
    with pytest.raises(InvalidEventError, match="'result' of other epochs than it has told of"):
        heard(order(), stream(order(), 6, 5, 6))


def test_a_stream_measures_twice_after_two_warm_ups_and_in_a_group_as_often_as_its_neighbours_need() -> None:
    together = order(protocol=STREAM.protocol, jobs=2)
    assert heard(together, stream(together, *[4] * 50))
    with pytest.raises(InvalidEventError, match="'begin' of an epoch that is not the next"):
        heard(STREAM, stream(STREAM, 4, 4, 4, 4, 4))


@pytest.mark.parametrize(
    ("window", "most"),
    [
        (SteadyWindow(window_s=None, steps=4), 100_000),
        (SteadyWindow(window_s=None, steps=100_001), 100_001),
        (SteadyWindow(window_s=2.5), 250_000),
        (SteadyWindow(window_s=0.1), 100_000),
    ],
)
def test_a_window_has_no_more_steps_than_a_device_could_take_in_it(window: SteadyWindow, most: int) -> None:
    asked = order(protocol=window)
    (hello,) = (plainly(line) for line in scripted.hello(asked))
    begin = next(event for event in STREAMED if event["event"] == "begin")
    heard(asked, [hello, begin | {"steps": most}])
    with pytest.raises(InvalidEventError, match=f"of {most + 1} steps, more than there can be"):
        heard(asked, [hello, begin | {"steps": most + 1}])


@pytest.mark.parametrize("lengths", [(), (10,), (10, 4)])
def test_a_stream_has_no_result_before_anything_was_measured(lengths: tuple[int, ...]) -> None:
    with pytest.raises(InvalidEventError, match="'result' before it has trained"):
        heard(STREAM, stream(STREAM, *lengths, warm_up=2))


HOSTILE = (None, True, -1, 0, 1, 2, 7, 1.5, -0.5, 1e300, 1 << 62, 1 << 70, float("nan"), float("-inf"), "", "x", "\x1b",
           [], [1], [-5], [1 << 61] * 6, {}, {"0": 1}, "end", "result", "steps")  # fmt: skip


def test_ranks_that_tell_epochs_of_unlike_length_are_not_heard() -> None:
    """What reckons with steps looks at those of all ranks side by side."""
    asked = order(ranks=2)
    conversation = EventChecker(asked, lambda: NOW)
    hello = next(event for event in WHOLE if event["event"] == "hello")
    begin = next(event for event in WHOLE if event["event"] == "begin")
    for rank in (0, 1):
        conversation.check(rank, json.dumps(hello | {"rank": rank}).encode())
    conversation.check(0, json.dumps(begin | {"rank": 0}).encode())
    with pytest.raises(InvalidEventError, match="more or fewer steps than another rank's"):
        conversation.check(1, json.dumps(begin | {"rank": 1, "steps": begin["steps"] - 1}).encode())
    conversation.check(1, json.dumps(begin | {"rank": 1}).encode())


def spoiled(draw: random.Random) -> Iterator[tuple[TrialOrder, list[Message]]]:
    """Conversations in which one thing is wrong: a field, an event left out, repeated, or out of its place."""
    for asked, events in ((order(), WHOLE), (order(), RICH), (STREAM, STREAMED)):
        for _ in range(1000):
            made = [json.loads(json.dumps(event)) for event in events]
            place = draw.randrange(len(made))
            match draw.randrange(5):
                case 0:
                    made.insert(draw.randrange(len(made)), made[place])
                case 1:
                    del made[place]
                case 2:
                    made.insert(draw.randrange(len(made)), made.pop(place))
                case _:
                    made[place][draw.choice(sorted(made[place]))] = draw.choice(HOSTILE)
            yield asked, made


@pytest.mark.slow
def test_whatever_comes_through_can_be_reckoned_with() -> None:
    """Nothing that the border lets through breaks what reads it."""
    through = 0
    for asked, events in spoiled(random.Random(5)):
        try:
            came = heard(asked, events)
        except InvalidEventError:
            continue
        through += 1
        ended = reckoned(came, is_stream=asked is STREAM)
        assert ended.status in ("ok", "failed")
    assert through > 100, "some changes do no harm"
