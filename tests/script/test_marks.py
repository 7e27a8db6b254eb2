"""What reaches the socket of `gpubench.epoch()`: epochs in their order, and anything else."""

from __future__ import annotations

import json

import pytest

from gpubench.schema.command import MOST_EPOCHS
from gpubench.script.marks import EpochMark, MarkedEpochs


def encode(t0: float, t1: float | None = None) -> bytes:
    return json.dumps({"t0": t0} if t1 is None else {"t0": t0, "t1": t1}).encode()


def test_epochs_follow_each_other() -> None:
    marked = MarkedEpochs(10.0)
    assert marked.read_mark(encode(10.0), 10.0) == EpochMark(10.0)
    assert marked.read_mark(encode(10.0, 12.0), 12.0) == EpochMark(10.0, 12.0)
    assert marked.read_mark(encode(12.0, 13.0), 14.0) == EpochMark(12.0, 13.0)
    assert (marked.count, marked.passed_over) == (2, 0)


@pytest.mark.parametrize(
    "data",
    [
        encode(9.9, 11.0),  # before the command began
        encode(9.9),
        encode(11.0, 20.1),  # in the future
        encode(20.1),
        encode(11.0, 11.0),
        encode(12.0, 11.0),
        encode(-1e308, 1e308),
        encode(10.0, 10.9),  # beside the first
        encode(10.4, 10.9),
    ],
)
def test_what_is_no_epoch_of_the_run_is_passed_over_and_counted(data: bytes) -> None:
    marked = MarkedEpochs(10.0)
    assert marked.read_mark(encode(10.0, 10.5), 10.5) is not None
    assert marked.read_mark(data, 20.0) is None
    assert (marked.count, marked.passed_over) == (1, 1)
    assert marked.read_mark(encode(10.5, 20.0), 20.0) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"t0": 1e999}',
        b'{"t0": 11, "more": 1}',
        b'{"t0": "11"}',
        b'{"\xb40": 1}',
    ],
)
def test_junk_is_nothing(data: bytes) -> None:
    marked = MarkedEpochs(10.0)
    assert marked.read_mark(data, 20.0) is None
    assert (marked.count, marked.passed_over) == (0, 0)


def test_a_flood_of_epochs_is_counted_no_further() -> None:
    marked = MarkedEpochs(0.0)
    read = [marked.read_mark(encode(n, n + 1), n + 1) for n in range(MOST_EPOCHS + 2)]
    assert read.count(None) == 2
    assert read[-2:] == [None, None]
    assert marked.read_mark(encode(MOST_EPOCHS + 5), MOST_EPOCHS + 9) is None
