"""Jobs side by side in experiment files and options: what is understood, what beats what, what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.experiment_file import format_experiment, parse_experiment
from gpubench.plan.groups import Group
from gpubench.plan.options import apply_options
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema import catalog

FILE = """
name = "log"
[fixed]
model = "mobilenet_v2"
[run]
rounds = 3
[axes]
variant = ["crop-resize", "pre-resized"]
[[group]]
name = "three jobs, own GPUs"
jobs = [
    { batch_size = 32, gpu_ids = [0] },
    { batch_size = 64, gpu_ids = "1" },
    { batch_size = 128, gpu_ids = [2, 3] },
]
[[group]]
[[group.jobs]]
batch_size = 16
workers = "auto"
[[group.jobs]]
batch_per_gpu = 32
lr = 1
gpu_mem_cap_mib = "12GiB"
[[group]]
name = "half a matrix"
pairs = true
jobs = [ { batch_size = 16 }, { batch_size = 32 }, {} ]
"""
GROUPS = (
    Group(
        name="three jobs, own GPUs",
        jobs=(
            {"batch_size": 32, "gpu_ids": (0,)},
            {"batch_size": 64, "gpu_ids": (1,)},
            {"batch_size": 128, "gpu_ids": (2, 3)},
        ),
    ),
    Group(
        jobs=(
            {"batch_size": 16, "workers": None},
            {"batch_per_gpu": 32, "lr": 1.0, "gpu_mem_cap_mib": 12288},
        )
    ),
    Group(name="half a matrix", jobs=({"batch_size": 16}, {"batch_size": 32}, {}), pairs=True),
)


def base(**tables: Any) -> Experiment:
    return Experiment(name="base", variants=catalog.VARIANTS, **tables)


def asked(*jobs: str, pairs: bool = False, zips: Any = (), **fields: str) -> ExperimentOptions:
    return ExperimentOptions(jobs=jobs, pairs=pairs, zips=zips, fields=fields)


# ---- files ----


def test_groups_of_a_file() -> None:
    found = parse_experiment(FILE, "log.toml")
    assert parse_experiment(format_experiment(found, {}), "stored") == found
    assert found.groups == GROUPS
    assert found.varied == (("variant",),), "groups are no axis"


def test_one_job_with_copies_is_a_group() -> None:
    own = parse_experiment("name = 'x'\n[[group]]\njobs = [{ copies = 2 }]", "x")
    assert own.groups == (Group(jobs=({"copies": 2},)),)
    assert len(apply_options(base(), asked("model=lenet", copies="1,2,3")).groups) == 1
    inherited = parse_experiment("name = 'x'\n[axes]\ncopies = [1, 2]\n[[group]]\njobs = [{ lr = 0.1 }]", "x")
    assert inherited.groups == (Group(jobs=({"lr": 0.1},)),)


# ---- stored plans ----

JOBS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["lenet", "nets.py:small", "a b"]),
        "batch_size": st.integers(1, 512),
        "gpu_ids": st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True).map(tuple) | st.none(),
        "workers": st.integers(0, 64) | st.none(),
        "lr": st.floats(1e-6, 10),
        "cudnn_benchmark": st.booleans(),
        "cpu_sharing": st.sampled_from(["shared", "pinned"]),
    },
)
NAMES = st.text(max_size=20).map(str.strip).filter(str.isprintable)
ANY_GROUP = st.builds(
    Group,
    name=NAMES,
    jobs=st.lists(JOBS, min_size=2, max_size=4).map(tuple),
    pairs=st.booleans(),
)


@settings(max_examples=40)
@given(st.lists(ANY_GROUP, max_size=3, unique_by=lambda group: group.title))
def test_a_stored_plan_has_the_same_groups(groups: list[Group]) -> None:
    before = base(groups=tuple(groups), axes=(Axis(("seed",), ((1,), (2,))),))
    stored = format_experiment(before, {"protocol": "steady"})
    again = parse_experiment(stored, "stored")
    assert again == before
    assert format_experiment(again, {"protocol": "steady"}) == stored


# ---- options ----


def test_jobs_of_the_command_line_take_the_place_of_the_files_groups() -> None:
    given = asked("batch_size=32,gpu_ids=0", " batch-size = 64 , gpu-ids=2+3", "batch_per_gpu=8,workers=auto")
    found = apply_options(parse_experiment(FILE, "x"), given)
    assert found.groups == (
        Group(
            jobs=(
                {"batch_size": 32, "gpu_ids": (0,)},
                {"batch_size": 64, "gpu_ids": (2, 3)},
                {"batch_per_gpu": 8, "workers": None},
            )
        ),
    )
    assert found.varied == (("variant",),)
    assert apply_options(parse_experiment(FILE, "x"), asked()).groups == GROUPS


def test_fields_of_the_command_line_cross_with_its_jobs() -> None:
    given = asked("batch_size=8", "batch_size=16,lr=0.5", variant="cached,synthetic", copies="1,2", lr="0.1")
    found = apply_options(base(), given)
    assert found.varied == (("variant",), ("copies",))
    assert found.fixed == {"lr": 0.1}
    assert len(found.groups) == 1


def test_pairs() -> None:
    found = apply_options(base(), asked("batch_size=8", "batch_size=16", pairs=True))
    assert [group.pairs for group in found.groups] == [True]
    own = apply_options(parse_experiment(FILE.replace(", gpu_ids = [2, 3]", ""), "x"), asked(pairs=True))
    assert [group.pairs for group in own.groups] == [True] * 3


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (asked("batch_size=32"), "1 job runs beside none; give two or more, or copies of one"),
        (asked("batch_size=32", pairs=True), "pairs need two jobs or more"),
        (asked("", "lr=1"), "'' is not FIELD=VALUE"),
        (asked("batch_size=16:64:x2", "lr=1"), "'16:64:x2' is not a whole number"),
        (asked("gpus=1,gpu_ids=0", "lr=1"), "gpu_ids is given beside gpus"),
        (asked("copies=2", "lr=1", pairs=True), "a pair is of two jobs, without copies"),
        (asked(pairs=True), "--pairs: there are no jobs to pair; give --job two or more times"),
        (asked("lr=0.1", "lr=0.2", lr="0.3"), "lr has no effect beside --job: every job gives what settles it"),
        (asked("gpu_ids=0", "gpus=1", gpus="2"), "gpus has no effect beside --job"),
    ],
)  # fmt: skip
def test_wrong_jobs_are_refused(given: ExperimentOptions, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_options(base(), given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (asked(batch_size="64"), "batch_size is given by the jobs of the file's groups; change it"),
        (asked(zips=("seed,workers=1/2,3/4",)), "workers is given by the jobs"),
        (asked(gpus="2"), "gpus is given by the jobs"),
        (asked(copies="2"), "group 'half a matrix': a pair is of two jobs, without copies"),
    ],
)  # fmt: skip
def test_an_option_never_loses_silently_against_the_files_jobs(given: ExperimentOptions, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        apply_options(parse_experiment(FILE, "x"), given)
    assert says in str(caught.value)
    apply_options(parse_experiment(FILE, "x"), replace(given, jobs=("model=lenet", "model=mlp")))
