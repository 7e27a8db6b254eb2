"""Wrong values in plain words: the bounds, the kinds, the choices."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Annotated, Any, Literal

import msgspec
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from gpubench.basics.errors import UsageError
from gpubench.datasets.facts import DataFacts
from gpubench.plan.experiment_file import _ExperimentFile, _GroupTable, _RunTable, _VariantTable, parse
from gpubench.plan.plan import expand
from gpubench.schema.trial import Trial, make
from gpubench.schema.trial_fields import FIELDS
from gpubench.schema.validation import InvalidValueError, convert, why_wrong


class NoDisk:
    """Sources for which all names are right."""

    def data(self, name: str) -> DataFacts:
        return DataFacts(
            name=name, kind="named", root=None, fingerprint="f", train_images=640, val_images=64,
            num_classes=4, size=32,
        )  # fmt: skip

    def model(self, _: str) -> str:
        return ""


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("until_top1", 200.0, "until_top1 must be above 0 and below 100, not 200"),
        ("until_top1", 0.0, "until_top1 must be above 0 and below 100, not 0"),
        ("width", 16.5, "width must be above 0 and at most 16, not 16.5"),
        ("batch_size", 0, "batch_size must be at least 1, not 0"),
        ("seed", 1 << 40, "seed must be at least 0 and below 4,294,967,296, not 1099511627776"),
        ("gpu_ids", (0, -1), "gpu_ids.1 must be at least 0, not -1"),
        ("epochs", 1.5, "epochs must be a whole number, not 1.5"),
        ("epochs", "x", "epochs must be a whole number, not 'x'"),
        ("width", "x", "width must be a number, not 'x'"),
        ("lr", float("inf"), "lr must be a finite number, not inf"),
        ("breakdown", 3, "breakdown must be true or false, not 3"),
        ("precision", "fp8", "precision must be fp32, tf32, bf16 or fp16, not 'fp8'"),
        ("device", "tpu", "device must be cuda or cpu, not 'tpu'"),
    ],
)
def test_a_value_that_its_field_does_not_take(field: str, value: Any, says: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make({field: value})
    assert str(caught.value) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\nfixed ["a"]', "line 2: after a name must come = and a value"),
        ('name = "x"\nfixed', "its last line: after a name must come = and a value"),
        ("[fixed\n", "line 1: the name of a table has no ] at its end"),
        ("[[zip]\n", "line 1: the name of a table has no ] at its end"),
        (
            "a = 1 b = 2",
            "line 1: after a value comes something that does not belong there, or the value is none",
        ),
        ('a = """x', "its last line: a text has no quote at its end"),
        ("a = 'x", "its last line: a text has no quote at its end"),
        ('a = "x\nb = 1', "line 1: it holds a sign that can't stand there"),
        ("a = 2026-02-31", "line 1: a date or time is none of the calendar"),
        (r'a = "C:\Users"', "line 1: a backslash in a text must be written twice"),
        (r'a = "C:\data"', "line 1: a backslash in a text must be written twice"),
        ("a. = 1", "line 1: a name must be of letters, digits, dashes and underscores, or stand in quotes"),
        ("\n= 1", "line 2: it must read name = value, or [table]"),
        ("a = lenet", "line 1: a value must be a text in quotes, a number, true, false, a list or a table"),
        ("a = [1, 2", "its last line: a list has no ] at its end"),
        ("a = {b = 1", "its last line: a table has no } at its end"),
        ("a = 1\na = 2", "a name is given twice"),
        ("[a]\n[a]", "line 2: a name is given twice"),
        ("a = {b = 1, b = 2}", "line 1: a name is given twice"),
        ("[a]\nb = {}\n[a.b.c]", "line 3: a name is given twice"),
    ],
)
def test_a_text_that_is_no_toml(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "x.toml")
    said = str(caught.value)
    assert said.startswith("x.toml is not TOML: ")
    assert said.endswith(says)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[run]\nrepeats = 0", "run.repeats must be at least 1, not 0"),
        ('[run]\nepochs = "x"', "run.epochs must be a whole number, not 'x'"),
        ("[variants.x]\ndata = 3", "variants.x.data must be a text in quotes, not 3"),
        ("run = 3", "run must be a table, not 3"),
        ("[run]\ntimeout = []", "run.timeout must be a text in quotes or a number, not []"),
        (
            "[run]\ntimeout = 2026-01-02",
            "run.timeout must be a text in quotes or a number, not the date 2026-01-02",
        ),
        ("[run]\nepochs = nan", "run.epochs must be a whole number, not nan"),
        (f'[run]\nepochs = "{"9" * 5000}"', f"run.epochs must be a whole number, not '{'9' * 119}…"),
        ("[axes]\nlr = 3", "axes.lr must be a list or a text in quotes, not 3"),
        ("group = [3]", "group.0 must be a table, not 3"),
        ("[[group]]\npairs = true", "group.0.jobs is missing"),
        ("[[group]]\njobs = [3]", "group.0.jobs.0 must be a table, not 3"),
        ("[[zip]]\nlr = 3", "zip.0.lr must be a list, not 3"),
        ("[variants.x]\ncpu = [3]", "variants.x.cpu.0 must be a text in quotes or a table, not 3"),
        ("[variants.x]\ncpu = [{ Resize = 3 }]", "variants.x.cpu.0.Resize must be a table, not 3"),
        (
            "[variants.x]\ncpu = [{ Resize = { size = [2026-01-02] } }]",
            "variant 'x': Resize does not take '[datetime.date(2026, 1, 2)]' as size; write a number",
        ),
        (
            "[variants.x]\ngpu = [{ RandomHorizontalFlip = { p = nan } }]",
            "variant 'x': RandomHorizontalFlip does not take 'nan' as p; write a number",
        ),
        (f"[fixed]\nlr = 1{'0' * 400}", f"lr: 1{'0' * 119}… is not a number"),
    ],
)
def test_a_table_of_a_file(table: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(f'name = "t"\n{table}\n', "t.toml")
    assert str(caught.value).startswith(f"t.toml: {says}")


def test_what_toml_s_reader_falls_over() -> None:
    with pytest.raises(UsageError, match=r"^t is nested too deeply$"):
        parse("x = " + "[" * 5000, "t")
    with pytest.raises(UsageError, match=r"^t holds a number that is too long$"):
        parse("x = " + "9" * 5000, "t")
    with pytest.raises(UsageError, match=r"^t holds a number that is too long$"):
        parse("[axes]\nbatch_size = [1, 0x" + "f" * 5000 + "]", "t")


def test_a_long_name_is_quoted_in_part() -> None:
    with pytest.raises(UsageError) as caught:
        parse(f'name = "t"\n{"x" * 10_000} = 3', "t")
    assert len(str(caught.value)) < 500


def test_a_name_and_a_missing_one() -> None:
    with pytest.raises(
        UsageError, match=r"^t: name must be letters, digits, dots, dashes and underscores, a le"
    ):
        parse('name = "a b"', "t")
    with pytest.raises(UsageError, match=r"^t: name is missing$"):
        parse("", "t")


# ---- whatever is wrong ----

OF_MSGSPEC = re.compile(r"Expected|`|matching|regex|contains unknown|enum|\$|is refused")
"""Words of msgspec's messages; the wrong values below hold none of them."""
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
        expand(parse(tomli_w.dumps({"name": "x"} | table), "t.toml"), device="cpu", sources=NoDisk(), cpus=2)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(table=FILES)
def test_no_word_of_msgspec_reaches_a_user(table: dict[str, Any]) -> None:
    """Whatever is wrong with a file, or only with a trial of it, is told in one line of ours."""
    said = said_of(table)
    assert not OF_MSGSPEC.search(said), said
    assert "\n" not in said


@settings(max_examples=400, deadline=None)
@given(field=st.sampled_from(FIELDS), value=wrong)
def test_what_is_wrong_with_a_trial_names_the_field(field: str, value: Any) -> None:
    error = why_wrong({field: value}, Trial)
    assert error is None or error.path[0] == field
    assert not OF_MSGSPEC.search(str(error))


# ---- what msgspec refuses, and what is said of it, are one ----


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


PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.integers(-2, 2),
        st.sampled_from([10**20, -(10**20), 1 << 53, 10**400]),
        st.floats(),
        st.booleans(),
        st.sampled_from(["x", "y", "z", "hop", "walk", "xxxx", "a", "b"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["number", "share", "x", "y", "z", "n", "way"]), inner, max_size=3),
    ),
    max_leaves=6,
)


@settings(max_examples=500, deadline=None)
@given(value=st.dictionaries(st.sampled_from([*Outer.__struct_fields__, "q"]), PLAIN, max_size=2))
def test_whatever_is_refused_is_said_to_be_wrong_and_nothing_else(value: dict[str, Any]) -> None:
    """msgspec decides, and what goes through the value again to say why must not decide otherwise."""
    try:
        msgspec.convert(value, Outer)
    except msgspec.ValidationError:
        assert why_wrong(value, Outer) is not None
    else:
        assert why_wrong(value, Outer) is None


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({"x": [{"number": 1}, {"number": -1}]}, "x.1.number", "must be at least 0, not -1"),
        (
            {"x": [{"number": 1 << 53}]},
            "x.0.number",
            "must be at least 0 and below 9.0072e+15, not 9007199254740992",
        ),
        ({"x": [{"share": 1}]}, "x.0.number", "is missing"),
        ({"x": [{"number": 1, "share": math.inf}]}, "x.0.share", "must be a finite number, not inf"),
        ({"y": {"xz": 1}}, "y.xz", "must be of the form ^[xy]+\\Z, not 'xz'"),
        ({"xx": [1]}, "xx.1", "is missing"),
        ({"xx": [1, True, 2]}, "xx", "has too many parts"),
        ({"xy": "X"}, "xy", "must be x or y, not 'X'; did you mean x?"),
        ({"xz": {"way": "hop"}}, "xz.x", "is missing"),
        ({"xz": {"way": "run"}}, "xz.way", "must be hop or walk, not 'run'"),
        ({"xz": {"x": 1}}, "xz.way", "is missing"),
        ({"yx": {"z": "c"}}, "yx.z", "must be a or b, not 'c'"),
        ({"yy": []}, "yy", "has too few parts"),
        ({"yz": "xxxx"}, "yz", "must have at most 3 characters"),
    ],
)
def test_where_something_is_wrong_and_what(value: dict[str, Any], path: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        convert(value, Outer)
    assert (".".join(caught.value.path), caught.value.problem) == (path, problem)


def test_an_unknown_name_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InvalidValueError, match="unknown key 'batchsize': did you mean batch_size"):
        make({"batchsize": 16})
