"""From what network size on several devices are faster than one."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import scripted
from gpubench.report.table import Table, build
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_rows import row_with

from gpubench.plan.experiment_file import load
from gpubench.plan.plan import expand
from gpubench.plan.skips import OutOfMemory, Room, skip_reason
from gpubench.plan.sources import Disk

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "network-size.toml"
NETWORKS = (("lenet", 0.0006), ("mobilenet_v2", 0.3), ("resnet18", 1.81), ("resnet50", 4.09))


def around(time: float, apart: float = 0.001) -> list[float]:
    """Five processes whose logarithms lie evenly about that of this time."""
    return [time * math.exp(apart * step) for step in (-2, -1, 0, 1, 2)]


def networks(*speedups: float, gpus: int = 2, apart: float = 0.001, names=NETWORKS, **more) -> list:
    """Each network on one GPU in 10 s, and so many times faster on several."""
    return [
        row_with(
            model=model, gmacs_per_image=gmacs, config_id=f"{model}{count}{more}", trial_id=f"{model}{count}-{number}",
            repeat=number, status="ok", epoch_time_s=time, images_per_epoch=10_240, device="cuda", gpus=count,
            gpu_name="H", strategy="ddp" if count > 1 else "single", **{"batch_size": 256} | more,
        )
        for (model, gmacs), speedup in zip(names, speedups, strict=True)
        for count, center in ((1, 10.0), (gpus, 10.0 / speedup))
        for number, time in enumerate(around(center, apart))
    ]  # fmt: skip


def table(rows, *axes: str) -> Table:
    return build("one", rows, axes=[(axis,) for axis in axes or ("gpus", "model")])


def said(rows) -> str:
    (found,) = table(rows).answers
    return found


SPEEDUPS = (
    "Speed-ups by GMACs an image: lenet (0.0006) 0.50 (0.50 to 0.50), slower; mobilenet_v2 (0.3) 1.01 (1.01 to 1.01), "
    "the same inside 2 %; resnet18 (1.8) 1.50 (1.50 to 1.50), faster; resnet50 (4.1) 1.90 (1.90 to 1.90), faster."
)


def test_the_smallest_network_from_which_on_all_are_faster():
    assert said(networks(0.5, 1.01, 1.5, 1.9)) == (
        "ddp on 2 GPUs is faster than single on 1 GPU (strong scaling) from resnet18 (1.8 GMACs an image) on: "
        f"mobilenet_v2, the next smaller, is the same inside 2 %. {SPEEDUPS}"
    )


def test_a_larger_one_that_is_not_faster_moves_it_up():
    """By size and not by name, and whatever smaller ones do."""
    assert said(networks(1.5, 1.4, 0.9, 1.9)).startswith(
        "ddp on 2 GPUs is faster than single on 1 GPU (strong scaling) from resnet50 (4.1 GMACs an image) on: "
        "resnet18, the next smaller, is slower. "
    )


def test_all_of_them_or_not_the_largest():
    assert said(networks(1.2, 1.4, 1.6, 1.9)).startswith(
        "ddp on 2 GPUs is faster than single on 1 GPU (strong scaling) for every network, down to lenet (0.0006 GMACs "
        "an image). "
    )
    assert said(networks(1.2, 1.4, 1.6, 0.9)).startswith(
        "From no network on is it known that ddp on 2 GPUs is faster than single on 1 GPU (strong scaling): the "
        "largest, resnet50, is slower. "
    )


def test_what_chance_leaves_open_is_open_and_says_what_would_settle_it():
    found = said([*networks(0.5, 1.5, 1.9, names=(NETWORKS[0], *NETWORKS[2:])),
                  *networks(1.1, apart=0.1, names=NETWORKS[1:2])])  # fmt: skip
    assert " from resnet18 (1.8 GMACs an image) on: mobilenet_v2, the next smaller, is open. " in found
    assert ". The one that is open would have shown only a difference of " in found


def test_two_networks_are_told_as_ever():
    found = table(networks(1.5, 1.9, names=NETWORKS[2:])).answers
    assert [one.partition(",")[0] for one in found] == ["Against single on 1 GPU", "Against single on 1 GPU"]


def test_several_batch_sizes_have_a_sentence_each():
    rows = [
        *networks(0.5, 1.01, 1.5, 1.9),
        *networks(0.5, 1.4, 1.5, 1.9, batch_size=1024),
    ]
    found = table(rows, "gpus", "model", "batch_size").answers
    assert sum("GMACs an image) on: " in one for one in found) == 2


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.3, 2.0), min_size=4, max_size=4),
    st.floats(0.0005, 0.2),
    st.randoms(use_true_random=False),
)
def test_what_follows_is_of_the_networks_and_not_of_the_order_of_rows(speedups, apart, chance):
    rows = networks(*speedups, apart=apart)
    told = said(rows)
    mixed = list(rows)
    chance.shuffle(mixed)
    assert said(mixed) == told
    begin = told.partition(". Speed-ups")[0]
    if " from " in begin and "From no" not in begin:
        first = next(place for place, (name, _) in enumerate(NETWORKS) if f" from {name} (" in begin)
        assert all(speedup > 1 for speedup in speedups[first:])


@pytest.fixture(scope="module")
def plan():
    return expand(load(EXPERIMENT), device="cuda", sources=Disk())


def test_the_experiment_sets_each_network_on_two_gpus_beside_itself_on_one(plan):
    pairs: dict[tuple[object, ...], list] = {}
    for unit in plan.units:
        one = unit.jobs[0].trial
        pairs.setdefault((one.model, one.width, one.input_size), []).append(one)
    assert len(pairs) == 13
    for alone, two in pairs.values():
        assert (alone.gpus, alone.strategy, two.gpus, two.strategy) == (1, "single", 2, "ddp")
        assert (alone.batch_size, alone.train_images) == (two.batch_size, two.train_images)


def test_the_experiment_runs_where_there_are_two_gpus(plan):
    room = Room(len(scripted.computer(gpus=2).gpus), 16)
    assert [skip_reason(unit, OutOfMemory(), room, "cuda") for unit in plan.units] == [None] * 26
