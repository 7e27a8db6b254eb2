"""msgspec lets nothing through that pydantic refuses: it checks stored records first, and is never asked why."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from whole_records import FULL

from gpubench.results import stored_record
from gpubench.results.json_check import REFUSED, make_decoder
from gpubench.results.stored_record import KnownParts

ODD = (
    "null", "true", '"text"', '"1"', '""', "[]", "[1]", '["a"]', "{}", '{"a": 1}', "0", "1", "-1", "1.0", "1.5", "-0.0",
    "1e-12", "1e15", "1000000000000001", "1e16", "1e40", "-1e40", "1e400", "99.5", "100", "65537", "4294967296",
    "1000000001", "1000000000000000000000000", "NaN", "Infinity", "01", "1e", '"\\ud800"', '"\\q"', "[null]", "[1.5]",
)  # fmt: skip
"""Values as texts, of which each is wrong in some place, and some are no JSON."""

WINDOW = {"epoch": 0, "t0": 1.5, "t1": 2.5}


def let_through(check: Any, text: bytes) -> bool:
    try:
        check(text)
    except (*REFUSED, ValueError):
        return False
    return True


def by_pydantic(part: str) -> Any:
    reader = TypeAdapter(stored_record._PARTS[part])
    return lambda text: reader.validate_python(from_json(text))


CHECKS = {
    **{part: (part, check) for part, check in stored_record._CHECKS.items()},
    **{f"whole {part}": (part, check) for part, check in stored_record._WHOLE_CHECKS.items()},
}


@pytest.mark.parametrize("which", sorted(CHECKS))
def test_nothing_is_let_through_that_pydantic_refuses(which: str) -> None:
    """Each value of a part of a record, with each of the odd ones in its place."""
    part, check = CHECKS[which]
    whole = json.loads(json.dumps((FULL.model_dump() | {"windows": [WINDOW]})[part]))
    ours, theirs = check.decode, by_pydantic(part)
    one = whole[0] if isinstance(whole, list) else whole
    names = set(one) | (set(stored_record._NAMES) if part in ("trial", "result") else set())
    both = 0
    for name in names:
        for odd in ODD:
            spoiled = json.dumps({**one, name: 12345678}).replace("12345678", odd, 1)
            text = (f"[{spoiled}]" if isinstance(whole, list) else spoiled).encode()
            mine, pydantic = let_through(ours, text), let_through(theirs, text)
            assert pydantic or not mine, (name, odd)
            both += mine
    assert both > len(names)  # what is right is let through, or all records would be read twice


@pytest.mark.parametrize("part", ["epochs", "windows"])
def test_what_a_whole_check_lets_through_is_json_throughout(part: str) -> None:
    """Of other names msgspec skips the values, and does not look at what stands in their strings."""
    told = json.loads(json.dumps((FULL.model_dump() | {"windows": [WINDOW]})[part]))
    whole, check = stored_record._WHOLE_CHECKS[part].decode, stored_record._CHECKS[part].decode
    assert let_through(whole, json.dumps(told).encode())  # or all records would be parsed
    told[0]["of_another_version"] = 12345678
    text = json.dumps(told).encode().replace(b"12345678", b'"\xff"')
    assert let_through(check, text)
    assert not let_through(from_json, text)
    assert not let_through(whole, text)


@pytest.mark.parametrize("odd", ODD)
def test_a_record_is_refused_whatever_part_is_wrong(odd: str) -> None:
    """A word or a number that is a part by itself, likewise."""
    told = FULL.model_dump()
    for name in ("schema_version", "trial_id", "attempt", "group", "status", "machine_key", "started_at"):
        text = json.dumps(told | {name: 12345678}).replace("12345678", odd, 1).encode()
        if stored_record._read_by_parts(text, KnownParts()) is not None:
            stored_record._reader(is_group=False).validate_python(from_json(text))


@pytest.mark.parametrize(
    "kind",
    [
        Annotated[int, AfterValidator(abs)],
        Annotated[str, Field(pattern="a+")],
        Annotated[int, Field(multiple_of=2)],
        set[int],
        bytes,
        tuple[int, str],
    ],
)
def test_a_type_that_it_would_not_check_as_strictly_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError):
        make_decoder(kind)


def test_pydantic_would_have_refused_what_it_refuses() -> None:
    """The test above can tell them apart."""
    with pytest.raises(ValidationError):
        by_pydantic("result")(b'{"epoch_time_s": -1}')
    with pytest.raises(REFUSED):
        stored_record._CHECKS["result"].decode(b'{"epoch_time_s": -1}')
