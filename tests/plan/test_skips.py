"""What need not be run because it can't fit: trials, groups, and each because of the other."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import Given
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.plan.experiment import Experiment
from gpubench.plan.groups import Group
from gpubench.plan.plan import Unit, expand_experiment
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity, find_skip_reason
from gpubench.schema import catalog

ROOM = NodeCapacity(gpus=2, cpus=4)


def units(*jobs: dict[str, Any], **fixed: Any) -> list[Unit]:
    """The units of an experiment: the group of these jobs (none: the trial itself) after its trials alone."""
    asked = Experiment(
        name="test",
        fixed={"model": "lenet", **fixed},
        groups=(Group(name="g", jobs=jobs),) if jobs else (),
        variants=catalog.VARIANTS,
    )
    return list(expand_experiment(asked, device="cuda", sources=Given(), cpus=4).units)


def group(*batches: int, **fixed: Any) -> Unit:
    return units(*({"batch_size": batch} for batch in batches), **fixed)[-1]


def copies(count: int, batch: int = 16) -> Unit:
    return units(copies=count, batch_size=batch)[-1]


def reason(unit: Unit, *ran_out: Unit) -> str | None:
    oom = KnownOutOfMemory()
    for one in ran_out:
        oom.add_unit(one)
    return find_skip_reason(unit, oom, ROOM, "cuda")


# ---- the reasons in words ----


ALONE = units(batch_size=32)[0]
_, LARGE, TOGETHER = units({"batch_size": 16}, {"batch_size": 32})
PINNED_BEYOND = units({"cpus": 3}, {"cpus": 2}, cpu_sharing="pinned")[-1]
SMALLER = [ALONE, units(batch_size=16)[0]]
LAUNCHED = units(launch_cpu="one")[0]
NO_GPU, ONE_CPU = NodeCapacity(gpus=0, cpus=4), NodeCapacity(gpus=1, cpus=1)
REASONS: list[tuple[Unit, list[Unit], NodeCapacity, str]] = [
    (ALONE, SMALLER, ROOM, "batch 16 of the same configuration was out of memory"),
    (TOGETHER, [LARGE], ROOM, "job 2 of 2: batch 32 of the same configuration was out of memory alone"),
    (copies(4), [copies(3)], ROOM, "3 jobs that need no more were out of memory together"),
    (ALONE, [], NO_GPU, "needs 1 GPU, this machine shows 0"),
    (units(gpu_ids=(1, 2))[0], [], ROOM, "needs 3 GPUs, this machine shows 2"),
    (units(cpus=16)[0], [], ROOM, "needs 16 CPUs, 4 may be used"),
    (PINNED_BEYOND, [], ROOM, "needs 5 CPUs for jobs pinned to their own, 4 may be used"),
    (LAUNCHED, [], ONE_CPU, "needs two CPUs for each GPU with launch_cpu one, 1 may be used"),
]


@pytest.mark.parametrize(("unit", "ran_out", "room", "text"), REASONS)
def test_a_reason_names_what_is_lacking(
    unit: Unit, ran_out: list[Unit], room: NodeCapacity, text: str
) -> None:
    oom = KnownOutOfMemory()
    for full in ran_out:
        oom.add_unit(full)
    assert find_skip_reason(unit, oom, room, "cuda") == text


# ---- a trial alone, and its groups ----


def test_a_trial_that_does_not_fit_alone_fits_beside_no_other() -> None:
    small, large, together = units({"batch_size": 16}, {"batch_size": 32})
    assert (reason(together, large) or "").startswith("job 2 of 2: batch 32 ")
    assert (reason(together, small) or "").startswith("job 1 of 2: batch 16 ")
    assert reason(small, large) is None
    assert reason(small, together) is None, "alone it may fit"
    assert reason(large, together) is None


def test_a_smaller_batch_alone_rules_larger_jobs_out() -> None:
    (lower,) = units(batch_size=8, workers=2)
    assert reason(group(16, 32, workers=2), lower)
    assert reason(group(4, 4, workers=2), lower) is None
    (other,) = units(batch_size=8, workers=2, precision="bf16")
    assert reason(group(16, 32, workers=2), other) is None, "another configuration"


# ---- groups and groups ----


@pytest.mark.parametrize(
    ("ran_out", "asked", "skipped"),
    [
        ((16, 16), (16, 16, 16), True),  # one more
        ((16, 16), (32, 16), True),  # a larger batch
        ((16, 32), (32, 16), False),  # the same ones in another order: as large, so not known to be larger
        ((16, 16), (16, 16), False),
        ((16, 16), (8, 32), False),  # one smaller: nobody knows
        ((16, 32), (32, 8, 64), True),
        ((16, 32), (64, 8, 8), False),
        ((16, 16, 16), (16, 16), False),  # fewer may fit
    ],
)
def test_a_group_that_needs_no_less_is_skipped(
    ran_out: tuple[int, ...], asked: tuple[int, ...], skipped: bool
) -> None:
    text = reason(group(*asked), group(*ran_out))
    assert (text or "").split(" ")[0] == (f"{len(ran_out)}" if skipped else "")


def test_more_copies_are_skipped_and_fewer_are_not() -> None:
    assert [bool(reason(copies(n), copies(3))) for n in (1, 2, 3, 4, 5)] == [False, False, False, True, True]
    assert reason(copies(2, batch=32), copies(2, batch=16))
    assert reason(copies(2, batch=8), copies(2, batch=16)) is None


def test_other_configurations_are_others() -> None:
    for field in ({"precision": "bf16"}, {"model": "mlp"}, {"gpu_ids": (1,)}, {"input_size": 64}):
        assert reason(group(16, 16, 16, **field), group(16, 16)) is None, field
    for same in ({"seed": 5}, {"lr": 0.5}, {"cpu_sharing": "pinned"}):
        assert reason(group(16, 16, 16, **same), copies(2)), same


BATCHES = st.lists(st.sampled_from([8, 16, 32, 64]), min_size=2, max_size=4)


@settings(max_examples=40)
@given(BATCHES, st.lists(st.sampled_from([8, 64]), max_size=2), st.data())
def test_whatever_grows_from_what_ran_out_is_skipped(batches: list[int], more: list[int], data: Any) -> None:
    grown = [batch * data.draw(st.sampled_from([1, 2, 4])) for batch in batches] + more
    shuffled = data.draw(st.permutations(grown))
    skipped = reason(group(*shuffled), group(*batches))
    assert bool(skipped) == (sorted(grown) != sorted(batches))
    assert reason(group(*batches), group(*shuffled)) is None, "at most one of two rules the other out"


# ---- room ----


def test_a_group_beyond_the_machines_gpus() -> None:
    *alone, together = units({"gpu_ids": (0,)}, {"gpu_ids": (1, 2)})
    text = reason(together)
    assert text
    assert [reason(unit) for unit in alone] == [None, text]
    assert find_skip_reason(together, KnownOutOfMemory(), None, "cuda") is None  # read elsewhere


def test_pinned_jobs_beyond_the_machines_cpus() -> None:
    asked = [{"cpus": 3}, {"cpus": 2}]
    assert reason(units(*asked, cpu_sharing="pinned")[-1])
    assert reason(units(*asked)[-1]) is None, "shared, they may overlap"
    assert reason(units({}, {}, {}, {}, cpu_sharing="pinned")[-1]) is None, "one each"
    assert reason(units({}, {}, {}, {}, {}, cpu_sharing="pinned")[-1])
    assert reason(units({"cpus": 4}, {}, cpu_sharing="pinned")[-1])  # none is left for the other
    assert reason(units({"cpus": 5}, {})[-1])
