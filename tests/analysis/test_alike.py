"""Which rows are of one workload."""

import pytest

from gpubench import result
from gpubench.analysis.alike import MOVES, same_workload
from gpubench.analysis.varied import CANDIDATES


def row(**values):
    base = dict.fromkeys(result.BY_NAME) | {
        "model": "resnet50",
        "gpu_name": "H200",
        "gpus": 1,
        "gpu_ids": [0],
    }
    return base | {"batch_size": 64, "strategy": "single", "workers": 8, "cpus": 8} | values


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
    ],
    ids=str,
)
def test_what_may_move(other, axes, tied, alike):
    left = {"asked": {"workers": None}} if "asked" in other else {}
    assert same_workload(row(**left), row(**other), *axes, tied=tied) is alike


def test_only_fields_of_trials_move_along_fields_of_trials():
    assert {*MOVES, *(field for fields in MOVES.values() for field in fields)} <= set(CANDIDATES)
