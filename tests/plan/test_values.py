"""Text of the command line -> values of trial fields."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.plan import values
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema.trial_fields import FIELDS


@pytest.mark.parametrize(
    ("field", "text", "found"),
    [
        ("batch_size", "16,32, 64", [16, 32, 64]),
        ("batch_size", "16:64:16", [16, 32, 48, 64]),
        ("batch_size", "16:512:x2", [16, 32, 64, 128, 256, 512]),
        ("batch_size", "16:500:x2", [16, 32, 64, 128, 256]),
        ("batch_size", "10:30:x1.5", [10, 15, 22]),
        ("batch_size", "8:8:1", [8]),
        ("batch_size", "8,4:16:x2,16", [8, 4, 16]),
        ("seed", "-2:0:1", [-2, -1, 0]),
        ("lr", "0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("lr", "0.001:1:x10", [0.001, 0.01, 0.1, 1.0]),
        ("lr", "1", [1.0]),
        ("gpu_ids", "0+1,2+3", [(0, 1), (2, 3)]),
        ("workers", "auto,4", [None, 4]),
        ("cudnn_benchmark", "yes", [True]),
        ("until_top1", "60,70:80:5,auto", [60.0, 70.0, 75.0, 80.0, None]),
        ("until_top1", "1,0.6%,60%", [1.0, 0.6, 60.0]),
        ("gpu_mem_cap_mib", "12GiB,800MiB,4096", [12288, 800, 4096]),
        ("model", "lenet,nets.py:small", ["lenet", "nets.py:small"]),
        ("window", "3s,1m,2.5,auto", [3.0, 60.0, 2.5, None]),
    ],
)
def test_parse(field: str, text: str, found: list[object]) -> None:
    assert values.parse_field_values(field, text) == found
    assert [type(v) for v in values.parse_field_values(field, text)] == [type(v) for v in found]


@pytest.mark.parametrize(
    ("field", "text", "says"),
    [
        ("batch_size", "", "a value is missing"),
        ("batch_size", "16,,32", "a value is missing"),
        ("batch_size", "sixteen", "'sixteen' is not a whole number"),
        ("batch_size", "16:64:16:2", "first:last"),
        ("batch_size", "16:512", "16:512:x2"),
        ("batch_size", "16:64:0", "is no range"),
        ("batch_size", "16:64:x1", "is no range"),
        ("batch_size", "0:64:x2", "is no range"),
        ("batch_size", "1:1000000:1", "more than 100,000 values"),
        ("lr", "0.1:inf:x2", "is not a number"),
        ("cudnn_benchmark", "maybe", "neither true nor false"),
        ("gpu_mem_cap_mib", "12 parsecs", "not a memory size"),
        ("gpu_mem_cap_mib", "1.2.3GiB", "is not a number"),
        ("until_top1", "0.6", "until_top1 0.6: write 60, or 0.6% where so little is meant"),
        ("window", "soon", "window: 'soon' is not a time; write 90s, 10m or 2h"),
        ("window", "0s", "window: the time must be longer than 0"),
        ("ranks", "9" * 400, r"ranks: '9+… is not a whole number"),  # larger than every float
    ],
)
def test_wrong_text_is_refused_in_one_line(field: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        values.parse_field_values(field, text)
    assert "\n" not in str(caught.value)


@settings(max_examples=30)
@given(st.integers(1, 500), st.integers(0, 500), st.integers(1, 50))
def test_a_range_includes_both_ends_where_its_step_meets_them(first: int, length: int, step: int) -> None:
    last = first + length
    assert values.parse_range("batch_size", f"{first}:{last}:{step}") == list(range(first, last + 1, step))


@settings(max_examples=30)
@given(st.integers(1, 64), st.integers(0, 8), st.integers(2, 5))
def test_a_geometric_range_includes_its_last_power(first: int, powers: int, factor: int) -> None:
    wanted = [first * factor**n for n in range(powers + 1)]
    assert values.parse_range("batch_size", f"{first}:{wanted[-1]}:x{factor}") == wanted


@settings(max_examples=40)
@given(st.text(max_size=20), st.sampled_from(sorted(values.KINDS)))
def test_any_text_gives_values_or_one_line(text: str, field: str) -> None:
    try:
        found = values.parse_field_values(field, text)
    except UsageError:
        return
    assert found
    assert len(found) == len(set(found))


@given(st.data())
def test_a_value_is_read_back_from_how_it_is_typed_and_from_toml(data: st.DataObject) -> None:
    field = data.draw(st.sampled_from(sorted(FIELDS)))
    of_kind: dict[type, st.SearchStrategy[object]] = {
        int: st.integers(0, 10**9),
        float: st.floats(0.001 if field == "window" else 0, 1e15),
        bool: st.booleans(),
        str: st.sampled_from(["lenet", "birds/v1.0", "nets.py:small", "procedural:64x32"]),
        tuple: st.lists(st.integers(0, 99), min_size=1).map(tuple),
    }
    value = data.draw(
        of_kind[values.KINDS[field]] | (st.none() if field in values.OPTIONAL else st.nothing())
    )
    assert values.parse_field_value(field, values.format_field_value(value)) == value
    with contextlib.suppress(UsageError):  # beyond the field's bounds
        assert values.decode_toml_value(field, values.encode_toml_value(value)) == value


def test_assignments() -> None:
    assert values.split_assignments("strategy=dp, batch-size=16") == {
        "strategy": "dp",
        "batch_size": "16",
    }
    with pytest.raises(UsageError, match="'dp' is not FIELD=VALUE"):
        values.split_assignments("dp")
    with pytest.raises(UsageError, match="batch_size is given twice in 'batch_size=1, batch-size =2'"):
        values.split_assignments("batch_size=1, batch-size =2")
    with pytest.raises(UsageError, match="did you mean strategy"):
        apply_options(Experiment(name="x"), ExperimentOptions(excludes=("stratgy=dp",)))


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        *(
            (values.parse_mebibytes, text, mib)
            for text, mib in (("12 G", 12288), ("16GB", 15258), ("0.5GiB", 512))
        ),
        *(
            (values.parse_seconds, text, s)
            for text, s in (("90", 90), ("0.5s", 0.5), ("10 min", 600), ("2h", 7200))
        ),
        (values.parse_seconds, 30.0, 30),
    ],
)
def test_sizes_and_times(parse: Callable[[Any], float], text: Any, number: float) -> None:
    assert parse(text) == number


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (values.parse_mebibytes, "9" * 308 + "GiB", r"memory size: .*… is not a number"),
        (values.parse_mebibytes, "9" * 400, r"memory size: .*… is not a number"),
        (values.parse_seconds, "9" * 308 + "h", "the time must be longer than 0"),
        *((values.parse_seconds, text, "timeout: ") for text in ("0", "-5", "5d", "", "1.2.3s")),
    ],
)  # fmt: skip
def test_what_is_no_size_and_no_time_is_refused(parse: Callable[[str], float], text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(text)


@pytest.mark.parametrize("text", ["", "1:2:", "3"])
def test_a_name_that_can_be_no_placeholder_is_refused_in_a_short_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"unknown field 'x99+…") as refused:
        values.parse_field_values("x" + "9" * 3000, text)
    assert len(str(refused.value)) < 1000
    with pytest.raises(UsageError, match="unknown field 'Depth'"):
        values.split_assignments("Depth=3")
