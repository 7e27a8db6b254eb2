"""What is made once somebody asks for it."""

from __future__ import annotations

import gc
import weakref

from gpubench.basics.later import Later


class Source(list[str]):
    """A list that a weak reference may be kept of."""


def test_it_is_made_when_it_is_looked_at_and_once() -> None:
    made = []

    def make() -> tuple[str, ...]:
        made.append(1)
        return "a", "b", "c"

    later = Later(make)
    assert not made
    assert len(later) == 3
    assert [*later] == ["a", "b", "c"]
    assert (later[-1], later[1:], "b" in later) == ("c", ("b", "c"), True)
    assert len(made) == 1
    assert later == ("a", "b", "c") == later == Later(make)
    assert later != ("a", "b")
    assert later != ["a", "b", "c"]  # as a tuple is none
    assert hash(later) == hash(("a", "b", "c"))


def test_nothing_is_made_anew_where_there_is_nothing() -> None:
    made = []

    def make() -> tuple[str, ...]:
        made.append(1)
        return ()

    later = Later(make)
    assert not later
    assert not later
    assert len(made) == 1


def test_what_it_was_made_of_is_let_go() -> None:
    source = Source(["a"])
    kept = weakref.ref(source)
    later = Later(lambda source=source: tuple(source))
    del source
    assert kept() is not None
    assert later[0] == "a"
    gc.collect()
    assert kept() is None
