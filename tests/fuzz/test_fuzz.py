"""The readers of what others wrote, on texts that are spoiled at random. `fuzz.py` is the long form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation import mutated
from reading import BrokenError, is_used
from targets import TARGETS, RefusedError, Target

READERS = sorted(TARGETS)


@pytest.mark.parametrize("name", READERS)
def test_whole_texts_are_used(name: str) -> None:
    for text in TARGETS[name].whole:
        assert is_used(TARGETS[name], text)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_spoiled_texts_are_used_or_refused_in_one_line(name: str, data: st.DataObject) -> None:
    target = TARGETS[name]
    chance = data.draw(st.randoms(use_true_random=False))
    is_used(target, mutated(data.draw(st.sampled_from(target.whole)), chance))


def test_what_breaks_a_reader_is_seen() -> None:
    def fails(*_: object) -> None:
        raise KeyError("x")

    def refuses_in_lines(*_: object) -> None:
        raise RefusedError("one\ntwo")

    with pytest.raises(BrokenError, match="KeyError: 'x'"):
        is_used(Target(whole=(), read=fails), b"")
    with pytest.raises(BrokenError, match="refused with 7 characters"):
        is_used(Target(whole=(), read=refuses_in_lines), b"")
