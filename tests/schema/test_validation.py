"""Wrong values in plain words: the bounds, the kinds, the choices."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, Literal

import msgspec
import pytest
import tomli_w
from fakes import Given
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment_file import (
    _ExperimentFile,
    _GroupTable,
    _RunTable,
    _VariantTable,
    parse_experiment,
)
from gpubench.plan.plan import expand_experiment
from gpubench.schema.attempt import Attempt
from gpubench.schema.trial import make_trial
from gpubench.schema.trial_fields import FIELDS
from gpubench.schema.validation import InvalidValueError, convert_value


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("until_top1", 200.0, "until_top1 must be below 100, not 200.0"),
        ("width", 16.5, "width must be at most 16, not 16.5"),
        ("batch_size", 0, "batch_size must be at least 1, not 0"),
        ("batchsize", 16, "unknown key 'batchsize': did you mean batch_size?"),
        ("seed", 1 << 40, "seed must be at most 4,294,967,295, not 1099511627776"),
        ("gpu_ids", (0, -1), "gpu_ids.1 must be at least 0, not -1"),
        ("epochs", 1.5, "epochs must be a whole number, not 1.5"),
        ("lr", float("inf"), "lr must be at most 1e+15, not inf"),
        ("breakdown", 3, "breakdown must be true or false, not 3"),
        ("precision", "fp8", "precision must be bf16, fp16, fp32 or tf32, not 'fp8'"),
    ],
)
def test_a_value_that_its_field_does_not_take(field: str, value: Any, says: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make_trial({field: value})
    assert str(caught.value) == says


# ---- whatever is wrong ----

wrong = st.recursive(
    st.one_of(
        st.integers(-(10**20), 10**20),
        st.floats(),
        st.booleans(),
        st.text("xyz0:=+,.-", max_size=6),
        st.dates(),
        st.times(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("xyz", min_size=1, max_size=3), inner, max_size=2),
    ),
    max_leaves=4,
)


def _tables(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Tables that have the keys of `kind`, some of them with any value."""
    return st.dictionaries(st.sampled_from(sorted(kind.__struct_fields__)), wrong, max_size=2)


FILES = st.one_of(
    _tables(_ExperimentFile),
    st.builds(lambda run: {"run": run}, _tables(_RunTable)),
    st.builds(lambda table: {"group": [table]}, _tables(_GroupTable)),
    st.builds(lambda table: {"variants": {"x": table}}, _tables(_VariantTable)),
    st.builds(
        lambda place, field, value: {place: {field: value}},
        st.sampled_from(["fixed", "axes"]),
        st.sampled_from(FIELDS),
        st.one_of(wrong, st.lists(wrong, min_size=1, max_size=2)),
    ),
    st.builds(lambda field, value: {"group": [{"jobs": [{field: value}, {}]}]}, st.sampled_from(FIELDS), wrong),
    st.builds(lambda field, value: {"zip": [{field: [value], "seed": [1]}]}, st.sampled_from(FIELDS), wrong),
    st.builds(lambda field, value: {"exclude": [{field: value}]}, st.sampled_from(FIELDS), wrong),
)  # fmt: skip


def said_of(table: dict[str, Any]) -> str:
    """What a user is told of a file with this table; empty where nothing is wrong."""
    try:
        expand_experiment(
            parse_experiment(tomli_w.dumps({"name": "x"} | table), "t.toml"),
            device="cpu",
            sources=Given(),
            cpus=2,
        )
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(table=FILES)
def test_whatever_is_wrong_is_told_in_one_line(table: dict[str, Any]) -> None:
    """With a file, or only with a trial of it."""
    said = said_of(table)
    assert "\n" not in said


# ---- where something is wrong ----


class Inner(msgspec.Struct, kw_only=True):
    number: Annotated[int, Meta(ge=0, lt=1 << 53)]
    share: Annotated[float, Meta(gt=0, le=100)] | None = None


class Hop(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="way", tag="hop"):
    x: int


class Walk(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="way", tag="walk"):
    y: bool = False


@dataclasses.dataclass(kw_only=True)
class Facts:
    z: Literal["a", "b"]
    n: int = 0


class Outer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    x: list[Inner] = []
    y: dict[Annotated[str, Meta(pattern=r"^[xy]+\Z")], float] = {}
    z: str | list[Any] = ""
    xx: tuple[int, bool] | None = None
    xy: Literal["x", "y"] = "x"
    xz: Hop | Walk | None = None
    yx: Facts | None = None
    yy: Annotated[list[int], Meta(min_length=1, max_length=2)] = msgspec.field(default_factory=lambda: [1])
    yz: Annotated[str, Meta(max_length=3)] = ""
    zx: Any = None


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"x": [{"number": 1}, {"number": -1}]}, "x.1.number", "must be at least 0, not -1"),
        ({"x": [{"number": 1 << 53}]}, "x.0.number", "must be at most 9.0072e+15, not 9007199254740992"),
        ({"x": [{"share": 1}]}, "x.0.number", "is missing"),
        ({"x": [{"number": 1, "share": math.inf}]}, "x.0.share", "must be at most 100, not inf"),
        ({"xy": "X"}, "xy", "must be x or y, not 'X'"),
        ({"xz": {"way": "hop"}}, "xz.x", "is missing"),
        ({"xz": {"x": 1}}, "xz.way", "is missing"),
        ({"yx": {"z": "c"}}, "yx.z", "must be a or b, not 'c'"),
        ({"yz": "xxxx"}, "yz", "must have at most 3 letters"),
    ],
)
def test_where_something_is_wrong_and_what(value: dict[str, Any], path: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        convert_value(value, Outer)
    assert (".".join(caught.value.path), caught.value.problem) == (path, problem)


def test_long_names_and_values_are_quoted_in_part() -> None:
    with pytest.raises(UsageError) as refused:
        parse_experiment(f'name = "t"\n{"x" * 10_000} = 3', "t")
    assert len(str(refused.value)) < 500
    with pytest.raises(InvalidValueError) as caught:
        convert_value({"forced": ["9" * 5000, ""], "launched": 0.0, "finished": 0.0}, Attempt)
    assert len(str(caught.value)) < 300
