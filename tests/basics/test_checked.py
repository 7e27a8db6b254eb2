"""Messages read by their types: what fits comes through as it was, what does not says where."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
import scripted

from gpubench.basics.checked import MismatchError, plain, reader
from gpubench.schema.order import SteadyWindow, TrialOrder, WholeEpochs


@dataclass(frozen=True, kw_only=True, slots=True)
class Small:
    kind: Literal["small"] = "small"
    size: int
    share: float = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Large:
    kind: Literal["large"] = "large"
    parts: tuple[Small, ...]
    place: Path | None
    named: dict[str, float] | None = None


read = reader(Small, Large)


def through(value: Any) -> Any:
    """As a message brings it."""
    return json.loads(json.dumps(value, default=plain))


@pytest.mark.parametrize(
    "value",
    [
        Small(size=3),
        Large(parts=(), place=None),
        Large(parts=(Small(size=1), Small(size=2, share=1.0)), place=Path("/tmp/x"), named={"a": 1.5}),
    ],
)
def test_what_goes_out_comes_in_as_it_was(value: Small | Large) -> None:
    assert read(through(value)) == value


def test_a_whole_number_may_stand_for_one_with_a_fraction() -> None:
    assert read({"kind": "small", "size": 1, "share": 1}) == Small(size=1, share=1.0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], r"\[\] is no dict"),
        ({"kind": "tiny", "size": 1}, "kind: 'tiny' is none of 'small'"),
        ({"kind": "small"}, "Small without size"),
        ({"kind": "small", "size": 1, "colour": "red"}, "Small has no colour"),
        ({"kind": "small", "size": 1.5}, "size: 1.5 is no int"),
        ({"kind": "small", "size": True}, "size: True is no int"),
        ({"kind": "small", "size": 1, "share": "0.5"}, "share: '0.5' is no float"),
        ({"kind": "large", "place": None, "parts": [{"size": None}]}, "parts.0.size: None is no int"),
        ({"kind": "large", "place": 7, "parts": []}, "place: 7 is no"),
        ({"kind": "large", "place": None, "parts": [], "named": {"a": None}}, "named: None is no float"),
    ],
)
def test_what_does_not_fit_says_where(value: Any, words: str) -> None:
    with pytest.raises(MismatchError, match=words):
        read(value)


@pytest.mark.parametrize("name", sorted(asdict(scripted.order())))
def test_an_order_with_any_field_spoiled_is_refused(name: str) -> None:
    with pytest.raises(MismatchError, match=name):
        reader(TrialOrder)(through(scripted.order()) | {name: {"what": "is this"}})


def test_an_order_comes_through() -> None:
    made = replace(scripted.order(), gpu_uuids=("GPU-0",), log=Path("/x/y.log"))
    for protocol in (
        SteadyWindow(window_s=None, steps=5),
        WholeEpochs(epochs=3, warmup_epochs=1, until_top1=60.0),
    ):
        asked = replace(made, protocol=protocol)
        assert reader(TrialOrder)(through(asked)) == asked
