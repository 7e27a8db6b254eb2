"""What each of several jobs gets of the machine's CPUs, and what it is compared with."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.plan.shares import CpuShare, count_default_workers, divide_cpus, make_solo_trial
from gpubench.schema import catalog
from gpubench.schema.trial import Trial, make_trial

Asked = tuple[Trial, catalog.InputVariant]


def job(**fields: Any) -> Asked:
    trial = make_trial({"model": "lenet", **fields})
    return trial, catalog.VARIANTS[trial.variant]


def shares(*jobs: Asked, cpus: int = 8, device: str = "cuda") -> list[tuple[int, int | None, int]]:
    return [(s.cpus, s.first, s.workers) for s in divide_cpus(jobs, cpus, device)]


PINNED = {"cpu_sharing": "pinned"}


# ---- by hand ----


def test_a_trial_alone_gets_all() -> None:
    assert shares(job()) == [(8, None, 8)]
    assert shares(job(cpus=3)) == [(3, 0, 3)]
    assert shares(job(cpus=3, workers=2)) == [(3, 0, 2)]


def test_shared_cpus_are_everybodys_and_loaders_are_divided() -> None:
    assert shares(job(), job()) == [(8, None, 4)] * 2
    assert shares(job(), job(), job()) == [(8, None, 2)] * 3
    assert shares(job(cpus=4), job(cpus=4)) == [(4, 0, 2)] * 2, "bound to the same ones"
    assert shares(job(), job(workers=5)) == [(8, None, 4), (8, None, 5)]
    assert shares(*[job()] * 9) == [(8, None, 1)] * 9, "nobody goes without"


def test_pinned_jobs_have_cpus_of_their_own() -> None:
    assert shares(job(**PINNED), job(**PINNED)) == [(4, 0, 4), (4, 4, 4)]
    three = [job(cpus=n, **PINNED) for n in (2, 1, 4)]
    assert shares(*three) == [(2, 0, 2), (1, 2, 1), (4, 3, 4)]
    odd = [job(**PINNED)] * 3
    assert shares(*odd) == [(2, 0, 2), (2, 2, 2), (2, 4, 2)], "two CPUs are left over"


def test_who_asks_for_no_number_has_an_equal_part_of_the_rest() -> None:
    assert shares(job(cpus=6, **PINNED), job(**PINNED)) == [(6, 0, 6), (2, 6, 2)]
    assert shares(job(**PINNED), job(cpus=3, **PINNED), job(**PINNED)) == [(2, 0, 2), (3, 2, 3), (2, 5, 2)]


def test_loaders_of_jobs_of_several_ranks_and_on_a_cpu() -> None:
    assert shares(job(gpus=4), job(), cpus=16) == [(16, None, 8), (16, None, 8)]
    assert shares(job(gpus=3), job(), cpus=16) == [(16, None, 6), (16, None, 8)], "as many for each rank"
    assert shares(job(), job(), cpus=16, device="cpu") == [(16, None, 2)] * 2  # a quarter of half of them
    assert shares(job(variant="synthetic"), job()) == [(8, None, 0), (8, None, 4)], "nothing to load"


def test_on_a_cpu_a_quarter_loads() -> None:
    found = [count_default_workers(cpus, ranks, "cpu") for cpus, ranks in ((1, 1), (4, 1), (16, 1), (16, 2))]
    assert found == [1, 1, 4, 4], "at least one"
    assert [count_default_workers(cpus, ranks, "cuda") for cpus, ranks in ((1, 1), (8, 3))] == [1, 6]


# ---- alone ----


def solos(*jobs: Asked, cpus: int = 8) -> list[Trial]:
    pairs = zip(jobs, divide_cpus(jobs, cpus, "cuda"), strict=True)
    return [make_solo_trial(one, share, cpus, "cuda") for one, share in pairs]


@pytest.mark.parametrize(
    ("jobs", "own"),
    [
        ((job(), job()), {"workers": 4}),
        ((job(workers=8), job(workers=8)), {"workers": 8}),
        ((job(variant="synthetic"), job()), {}),  # it loads nothing, alone or not
        ((job(cpus=4), job(cpus=4)), {"cpus": 4, "workers": 2}),
        ((job(**PINNED), job(**PINNED)), {"cpus": 4}),  # alone on four CPUs, it has four loaders anyway
        ((job(cpus=3, workers=2, **PINNED), job(**PINNED)), {"cpus": 3, "workers": 2}),
        ((job(copies=2), job(copies=2)), {"workers": 4}),
    ],
)
def test_what_a_trial_gets_by_itself_anyway_stays_open(jobs: tuple[Asked, ...], own: dict[str, Any]) -> None:
    first = solos(*jobs)[0]
    assert first == make_trial({"model": "lenet", "variant": jobs[0][0].variant, **own})


FIELDS = st.fixed_dictionaries(
    {"cpu_sharing": st.just("shared")},
    optional={
        "cpus": st.integers(1, 32),
        "workers": st.integers(0, 16),
        "gpus": st.integers(1, 4),
        "variant": st.sampled_from(["crop-resize", "synthetic"]),
    },
)
ANY_JOBS = st.tuples(st.lists(FIELDS, min_size=2, max_size=5), st.sampled_from(["shared", "pinned"])).map(
    lambda drawn: [job(**{**fields, "cpu_sharing": drawn[1]}) for fields in drawn[0]]
)


@settings(max_examples=50)
@given(ANY_JOBS, st.integers(1, 64))
def test_alone_it_has_as_many_cpus_and_loaders_and_pinned_cpus_overlap_nowhere(
    jobs: list[Asked], cpus: int
) -> None:
    found = divide_cpus(jobs, cpus, "cuda")
    for one, share in zip(jobs, found, strict=True):
        solo = make_solo_trial(one, share, cpus, "cuda"), one[1]
        (by_itself,) = divide_cpus([solo], cpus, "cuda")
        assert (by_itself.cpus, by_itself.workers) == (share.cpus, share.workers)
        assert (solo[0].copies, solo[0].cpu_sharing) == (1, "shared")
    if jobs[0][0].cpu_sharing == "shared":
        assert all(share.first in (None, 0) for share in found)
        return
    taken = [place for share in found for place in _places(share)]
    assert len(taken) == len(set(taken))
    if sum(one[0].cpus or 1 for one in jobs) <= cpus:
        assert max(taken) < cpus


def _places(share: CpuShare) -> range:
    assert share.first is not None
    return range(share.first, share.first + share.cpus)
