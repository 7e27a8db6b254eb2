"""A strategy that says nothing of its exchange has no figures of it: a reason in place of each, never a 0."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from gpubench.node.launch.fork_server import ForkServer
from gpubench.record.breakdown import EXCHANGE
from gpubench.schema import catalog
from gpubench.schema.codes import REASONS
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.strategies.ddp import DistributedDataParallel, exchanged_bytes
from gpubench.train.strategies.single import Single

HERE = Path(__file__).parent / "own_strategy"
CPU = torch.device("cpu")


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    """A fork server that knows it, and its parent."""
    sys.path.insert(0, str(HERE))
    import sharded
    import spectator

    sys.path.remove(str(HERE))
    for own in (sharded, spectator):
        monkeypatch.setitem(catalog.STRATEGIES, own.NAME, own.FACTS)
    path = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    server = ForkServer()
    yield server
    server.close()


ON_CPUS = {"ranks": 2, "cpus": 2}
ON_GPUS = {"device": "cuda", "gpus": 2, "cpus": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "devices", [ON_CPUS, pytest.param(ON_GPUS, marks=pytest.mark.multigpu)], ids=["gloo", "nccl"]
)
def test_what_the_hook_does_not_see_has_a_reason(train, registered, devices):
    options = {"data": None, "strategy": "sharded", "breakdown": True, "launcher": registered}
    ran = train(model="mlp", **options, **devices)
    assert ran.status == "ok", ran.reason
    result, missing = ran.outcome.result, ran.outcome.missing
    for column in EXCHANGE:
        assert result.get(column) is None
        assert missing[column] == REASONS["exchange-unseen"]
    assert result.get("comm_mib_per_step") is None
    assert missing["comm_mib_per_step"] == REASONS["exchange-untold"]
    assert result["forward_ms"] > 0
    assert result["backward_ms"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("data", ["colours", None], ids=["images", "synthetic"])
def test_ranks_may_read_nothing_and_update_nothing(train, registered, request, data):
    """Rank 0 trains alone, on whole batches, while the others go along: the figures are those of one process."""
    options = {
        "data": data and request.getfixturevalue(data), "model": "lenet", "cpus": 2, "workers": 2, "accumulate": 2,
        "launcher": registered,
    }  # fmt: skip
    alone, ran = (train(**options, **how) for how in ({}, {"strategy": "spectator", "ranks": 2}))
    assert ran.status == "ok", ran.reason
    losses, expected = ([epoch.train_loss for epoch in one.outcome.epochs] for one in (ran, alone))
    assert losses == pytest.approx(expected, rel=1e-4)  # other threads add in another order
    for column in ("top1_pct", "loss", "images_per_epoch") if data else ("images_per_epoch",):
        assert ran.outcome.result.get(column) == pytest.approx(alone.outcome.result.get(column), rel=1e-3)


def test_one_process_exchanges_nothing_and_several_devices_are_not_told_of():
    def reason(world: int, devices: int) -> str | None:
        assignment = DeviceAssignment(rank=0, world=world, devices=(CPU,) * devices, rendezvous=Path("none"))
        return Single(assignment).why_no_exchange()

    assert reason(1, 1) == "one process: nothing is exchanged"
    assert reason(1, 2) == REASONS["one-process-all-devices"]
    assert reason(2, 1) is None


def test_a_wrapper_of_one_s_own_is_not_taken_for_torch_s():
    """A subclass of `ddp` that wraps otherwise: its hook can't be had, and its gradients are not counted."""
    assignment = DeviceAssignment(rank=0, world=2, devices=(CPU,), rendezvous=Path("none"))
    strategy = DistributedDataParallel(assignment)
    strategy.move_to_device(torch.nn.Linear(3, 3), torch.contiguous_format)
    assert exchanged_bytes(strategy) is None
    strategy.watch_exchange(lambda: pytest.fail("there is nothing to watch"))
