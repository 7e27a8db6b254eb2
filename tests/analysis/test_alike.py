"""Which rows are of one workload."""

import pytest
from gpubench.analysis.alike import MOVES, devices, fair_step, likeness, telling, workload
from gpubench.analysis.varied import CANDIDATES
from whole_rows import row_with


def same_workload(one, other, *axes, **more):
    return likeness(one, *axes, **more) == likeness(other, *axes, **more)


def row(**values):
    base = {
        "model": "resnet50",
        "gpu_name": "H200",
        "gpus": 1,
        "gpu_ids": [0],
    }
    return row_with(**base | {"batch_size": 64, "strategy": "single", "workers": 8, "cpus": 8} | values)


@pytest.mark.parametrize("field", CANDIDATES)
def test_every_trial_field_tells_workloads_apart(field):
    other = row(**{field: "another"}) if field != "gpu_ids" else row(gpu_ids=[1])
    assert same_workload(row(), row())
    assert not same_workload(row(), other)
    assert same_workload(row(), other, field)


def test_another_machine_is_never_alike():
    assert not same_workload(row(), row(gpu_name="A40"))


@pytest.mark.parametrize(
    ("other", "axes", "tied", "alike"),
    [
        ({"gpus": 2, "gpu_ids": [0, 1], "strategy": "ddp"}, ("gpus",), (), True),
        ({"gpus": 2, "strategy": "ddp", "batch_size": 128}, ("gpus",), (), False),
        ({"gpus": 2, "strategy": "ddp", "batch_size": 128, "lr": 0.1}, ("gpus", "batch_size"), (), True),
        ({"gpus": 2, "strategy": "ddp", "model": "lenet"}, ("gpus",), ("model",), False),
        ({"gpus": 2, "cpus": 16}, ("gpus",), (), False),
        ({"gpus": 2, "cpus": 16}, ("gpus",), ("cpus",), True),
        ({"gpus": 2, "workers": 16}, ("gpus",), (), False),
        ({"gpus": 2, "workers": 16, "asked": {"workers": None}}, ("gpus",), (), True),
        ({"workers": 16, "asked": {"workers": None}}, (), (), False),
        ({"batch_size": 128, "lr": 0.1}, ("batch_size",), (), True),
        ({"batch_size": 128, "strategy": "dp"}, ("batch_size",), (), False),
        ({"batch_size": 128, "gpus": 2, "strategy": "ddp"}, ("batch_size",), (), False),
        ({"workers": 16, "cpus": 16}, ("workers",), ("cpus",), True),
        ({"workers": 16, "cpus": 16}, ("workers",), (), False),
    ],
    ids=str,
)
def test_what_may_move(other, axes, tied, alike):
    left = {"asked": {"workers": None}} if "asked" in other else {}
    assert same_workload(row(**left), row(**other), *axes, tied=tied) is alike


def test_only_fields_of_trials_move_along_fields_of_trials():
    assert {*MOVES, *(field for fields in MOVES.values() for field in fields)} <= set(CANDIDATES)


@pytest.mark.parametrize(
    ("beside", "fair"),
    [
        ({}, True),
        ({"strategy": "dp"}, False),
        ({"gpu_ids": [1]}, False),
        ({"workers": 16}, False),
        ({"cpus": 16}, False),
    ],
    ids=str,
)
def test_on_as_many_devices_a_larger_batch_brings_nothing_else(beside, fair):
    assert fair_step(row(), row(batch_size=128, **beside)) is fair
    assert fair_step(row(batch_size=128, **beside), row()) is fair


def test_on_more_devices_the_batch_or_the_batch_a_device_stays():
    two = {"gpus": 2, "strategy": "ddp"}
    assert fair_step(row(), row(**two))
    assert fair_step(row(), row(batch_size=128, **two))
    assert not fair_step(row(), row(batch_size=256, **two))
    assert not fair_step(row(batch_size=None), row(batch_size=128, **two)), "not known is not the same"


def test_on_more_devices_the_strategy_stays_unless_it_begins_with_single():
    four = row(gpus=4, strategy="ddp")
    assert fair_step(row(gpus=2, strategy="ddp"), four)
    assert not fair_step(row(gpus=2, strategy="dp"), four)
    assert not fair_step(row(strategy="dp"), four)
    assert fair_step(four, row()), "whichever comes first"


def test_of_loaders_left_to_the_machine_only_that_counts_where_they_follow():
    """They follow devices and CPUs, where those are free; elsewhere another number is another workload."""
    auto = {"asked": {"workers": None}}
    rows = [row(workers=8, **auto), row(workers=16, **auto)]
    for free in ({"gpus"}, {"ranks"}, {"cpus"}):
        assert telling(rows, free) == []
        assert workload(rows[0], ["workers"], free) == workload(rows[1], ["workers"], free)
        assert telling([row(workers=8), row(workers=16)], free) == ["workers"]
    assert telling(rows, {"batch_size"}) == ["workers"]
    assert workload(rows[0], ["workers"], {"batch_size"}) == (("workers", 8),)


def test_the_first_gpus_are_told_by_their_number():
    first = [row(gpus=1, gpu_ids=[0]), row(gpus=2, gpu_ids=[0, 1])]
    assert telling(first, {"gpus"}) == []
    assert telling([*first, row(gpus=2, gpu_ids=[1, 2])], {"gpus"}) == ["gpu_ids"]


def test_a_row_that_tells_no_devices_is_of_one():
    assert [devices(row_with(**one)) for one in ({}, {"gpus": 0, "ranks": 4}, {"gpus": 2, "ranks": 4})] == [
        1,
        4,
        2,
    ]


def test_gpus_that_stand_for_lost_ones_are_no_other_workload():
    """Where a GPU is lost in mid-sweep, a trial that asks for so many gets the next of the same model."""
    some = {"gpus": 1, "gpu_ids": None}
    first = row(batch_size=16, gpu_ids=[0], asked=some)
    assert telling([first, row(batch_size=32, gpu_ids=[1], asked=some)], {"batch_size"}) == []
    named = row(batch_size=32, gpu_ids=[1], asked={"gpus": None, "gpu_ids": [1]})
    assert telling([first, named], {"batch_size"}) == ["gpu_ids"]
