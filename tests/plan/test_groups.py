"""Jobs side by side: which run together for a combination of the axes, what they are called, what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.basics.errors import UsageError
from gpubench.plan.groups import (
    MOST_JOBS,
    Group,
    list_job_sets,
)


def group(*jobs: dict[str, Any], name: str = "", pairs: bool = False) -> Group:
    return Group(name=name, jobs=jobs, pairs=pairs)


# ---- what runs together ----


@pytest.mark.parametrize(
    ("fields", "name", "jobs"),
    [
        ({}, "", 1),
        ({"copies": 1, "model": "lenet"}, "", 1),
        ({"copies": 3, "model": "lenet"}, "3 copies", 3),
        ({"copies": 0}, "", 1),  # the trial says what is wrong with it
        ({"copies": "3"}, "", 1),
    ],
)
def test_a_plain_trial_and_its_copies(fields: dict[str, Any], name: str, jobs: int) -> None:
    assert list_job_sets(fields, None) == [(name, [fields] * jobs)]


def test_jobs_are_dicts_of_their_own() -> None:
    """The plan takes fields out of them."""
    fields = {"copies": 2, "batch_per_gpu": 8}
    for asked in (None, group({}, {"lr": 0.1}), group({}, {})):
        ((_, jobs),) = list_job_sets(fields, asked)
        jobs[0].clear()
        assert all("batch_per_gpu" in job for job in jobs[1:])
    assert fields == {"copies": 2, "batch_per_gpu": 8}


def test_a_group_over_the_fields_of_the_experiment() -> None:
    fields = {"model": "mobilenet_v2", "variant": "pre-resized", "batch_size": 16, "gpus": 4}
    asked = group(
        {"batch_size": 32, "gpu_ids": (0,)}, {"batch_per_gpu": 64}, {"model": "lenet"}, name="three"
    )
    assert list_job_sets(fields, asked) == [
        (
            "three",
            [
                {"model": "mobilenet_v2", "variant": "pre-resized", "batch_size": 32, "gpu_ids": (0,)},
                {"model": "mobilenet_v2", "variant": "pre-resized", "batch_per_gpu": 64, "gpus": 4},
                {"model": "lenet", "variant": "pre-resized", "batch_size": 16, "gpus": 4},
            ],
        )
    ]


def test_copies_inside_a_group() -> None:
    asked = group({"model": "lenet", "copies": 2}, {"model": "mlp"})
    small, large = {"model": "lenet", "copies": 2}, {"model": "mlp"}
    assert list_job_sets({}, asked) == [("lenet copies=2 & mlp", [small, small, large])]
    ((_, jobs),) = list_job_sets({"copies": 3}, asked)
    assert [(job["model"], job["copies"]) for job in jobs] == [("lenet", 2)] * 2 + [("mlp", 3)] * 3


def test_one_job_of_a_group_with_an_axis_of_copies_is_a_plain_trial_where_it_is_alone() -> None:
    asked = group({"model": "lenet"}, name="more and more")
    names = [list_job_sets({"copies": n}, asked)[0][0] for n in (1, 2)]
    assert names == ["", "more and more"]


@pytest.mark.parametrize(("fields", "asked"), [({"copies": 65}, None), ({"copies": 33}, group({}, {}))])
def test_too_many_jobs_are_refused_before_they_are_made(fields: dict[str, Any], asked: Group | None) -> None:
    with pytest.raises(UsageError, match=f"6[56] jobs at once are too many; {MOST_JOBS} is the most"):
        list_job_sets(fields, asked)
    with pytest.raises(UsageError, match="too many"):
        list_job_sets({"copies": 10**15}, asked)


# ---- pairs ----


def test_every_two_of_the_jobs() -> None:
    asked = group({"batch_size": 16}, {"batch_size": 32}, {"model": "lenet"}, pairs=True)
    assert list_job_sets({"batch_size": 8}, asked) == [
        ("16 & 32", [{"batch_size": 16}, {"batch_size": 32}]),
        ("16 & lenet", [{"batch_size": 16}, {"batch_size": 8, "model": "lenet"}]),
        ("32 & lenet", [{"batch_size": 32}, {"batch_size": 8, "model": "lenet"}]),
    ]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=8))
@settings(max_examples=30)
def test_each_pair_is_measured_once(batches: list[int]) -> None:
    found = list_job_sets({}, group(*({"batch_size": b} for b in batches), name="half", pairs=True))
    assert all(name.startswith("half: ") for name, _ in found)
    pairs = [tuple(sorted(job["batch_size"] for job in jobs)) for _, jobs in found]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {tuple(sorted(two)) for two in itertools.combinations(batches, 2)}


@pytest.mark.parametrize(
    ("fields", "jobs", "says"),
    [
        ({"gpus": 2}, [{"batch_size": 8}, {"batch_size": 9}], "job '8' has 2"),
        ({}, [{"gpu_ids": (0, 1)}, {"batch_size": 9}], "job 'base@0+1' has 2"),
        ({}, [{"gpu_ids": (0,)}, {"gpu_ids": (1,)}], "these jobs are on GPUs 0 and 1"),
        ({}, [{"gpu_ids": (2,)}, {"lr": 0.1}], "these jobs are on GPUs 2 and 0"),
    ],
)
def test_pairs_that_would_not_be_on_one_gpu(fields: Any, jobs: Any, says: str) -> None:
    with pytest.raises(UsageError, match="pairs share one GPU") as caught:
        list_job_sets(fields, group(*jobs, pairs=True))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "jobs"),
    [
        ({"gpu_ids": (2,)}, [{"lr": 0.1}, {"lr": 0.2}]),
        ({"gpu_ids": (2, 3)}, [{"gpus": 1}, {"gpu_ids": (0,)}]),
        ({"device": "cpu", "ranks": 2}, [{"lr": 0.1}, {"lr": 0.2}]),
        ({"gpus": "many"}, [{"lr": 0.1}, {"lr": 0.2}]),  # the trial says what is wrong with it
    ],
)
def test_pairs_that_are_on_one_gpu_or_on_none(fields: Any, jobs: Any) -> None:
    assert len(list_job_sets(fields, group(*jobs, pairs=True))) == 1


# ---- names ----


@pytest.mark.parametrize(
    ("jobs", "title"),
    [
        (
            [
                {"batch_size": 32, "gpu_ids": (0,)},
                {"batch_size": 64, "gpu_ids": (1,)},
                {"gpu_ids": (2, 3), "batch_size": 128},
            ],
            "32@0 & 64@1 & 128@2+3",
        ),
        (
            [{"batch_size": 16, "model": "resnet34"}, {"model": "mobilenet_v2", "batch_size": 32}],
            "resnet34 16 & mobilenet_v2 32",
        ),
        ([{"variant": "cached", "model": "mlp"}, {"workers": 4, "lr": 0.1}], "mlp cached & workers=4 lr=0.1"),
        ([{}, {"gpu_ids": (1,)}], "base & base@1"),
        ([{"lr": 0.1}, {"lr": 0.1000000001}], "lr=0.1 & lr=0.1000000001"),
        ([{"workers": None, "gpu_ids": None}, {"cudnn_benchmark": True}], "workers=auto@auto & cudnn_benchmark=true"),
        ([{"data": "a\nb\x1b\u2028c"}, {"batch_per_gpu": 8}], "data=a bc & batch_per_gpu=8"),
    ],
)  # fmt: skip
def test_a_group_without_a_name_is_named_by_its_jobs(jobs: list[dict[str, Any]], title: str) -> None:
    assert group(*jobs).title == title
    assert list_job_sets({}, group(*jobs))[0][0] == title
