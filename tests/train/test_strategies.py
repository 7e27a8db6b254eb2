"""Strategies with several ranks: their weights are those of one process, and their bytes are those that they tell.

The ranks are real processes (`strategy_ranks.py`), which train in float64: rounding is then far below any mistake.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gpubench.basics.errors import UsageError
from gpubench.schema import catalog
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.models import build_model
from gpubench.train.strategies.fsdp import FullySharded, list_sharded_blocks

RANKS = 2
SCRIPT = Path(__file__).parent / "strategy_ranks.py"
EXACT = 1e-9
"""A step moves weights by some 1e-2; rounding stays below 1e-15 on a CPU."""


@pytest.fixture(
    scope="module",
    params=[pytest.param("cpu", marks=pytest.mark.slow), pytest.param("cuda", marks=pytest.mark.multigpu)],
    ids=["gloo", "nccl"],
)
def found(request, tmp_path_factory) -> dict[str, Any]:
    """What the ranks tell, by name."""
    folder = tmp_path_factory.mktemp("ranks")
    ranks = subprocess.run(
        [sys.executable, SCRIPT, str(RANKS), folder, request.param],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ranks.returncode == 0, ranks.stderr[-6000:]
    return json.loads(ranks.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "case", ["ddp-single", "local-ddp", "fsdp-accumulate", "fsdp-momentum", "fsdp-adamw"]
)
def test_weights_are_those_of_one_process_with_as_many_micro_batches(found, case):
    assert found[case] < EXACT
    # They do move.
    assert found["moved"] > 1e-3


def test_fsdp_keeps_a_part_of_the_weights_in_each_rank(found):
    # Unequal rows are filled up, so a little over a half.
    assert found["shard"] < 0.6 * found["parameters"]


def test_fsdp_compiles_block_by_block(found):
    assert found["compiled"] < EXACT
    assert found["compiled-modules"] == len(found["blocks"]) == 6


def test_fsdp_skips_a_step_on_all_ranks_where_one_has_an_overflow(found):
    assert found["skipped"] == 0
    assert found["not-skipped"] > 1e-3


def test_local_averages_every_so_many_steps(found):
    first, second, third = found["spread"]
    assert second < EXACT < 1e-4 < min(first, third)


def test_local_averages_in_place(found):
    assert found["in-place"]
    assert found["channels-last"]


@pytest.mark.parametrize("strategy", ["FullySharded", "Local"])
def test_one_model_is_evaluated_in_all_ranks_with_the_mean_of_their_statistics(found, strategy):
    # Each rank has seen other images.
    assert found[f"{strategy}-own-statistics"] > 1e-4
    assert found[f"{strategy}-statistics"] < EXACT
    assert found[f"{strategy}-ranks"] == 0
    # Training goes on as if it had not been.
    assert found[f"{strategy}-evaluated"] < EXACT


EXCHANGING = [name for name, facts in catalog.STRATEGIES.items() if facts.process_per_device]


@pytest.mark.parametrize("settings", ["", "-2", "-3"], ids=["alone", "accumulate", "sync_every"])
@pytest.mark.parametrize("strategy", EXCHANGING)
def test_the_bytes_that_each_entry_of_the_catalogue_states_are_those_that_enter_collectives(
    found, strategy, settings
):
    counted, stated = found[f"bytes-{strategy}{settings}"]
    assert counted == stated > 0


def test_an_entry_says_for_itself_what_it_exchanges():
    with pytest.raises(TypeError, match="exchange"):
        catalog.StrategyFacts(target="gpubench.train.strategies.ddp:DistributedDataParallel")
    assert [name for name, facts in catalog.STRATEGIES.items() if facts.exchange] == EXCHANGING


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("resnet18", ["layer1", "layer2", "layer3", "conv1", "conv2", "downsample", "conv1", "conv2"]),
        ("vit_b_16", [f"encoder_layer_{n}" for n in range(12)]),
        ("vgg11", ["features", "0", "3"]),
    ],
)
def test_blocks_are_as_large_as_a_quarter_of_the_model(model, names):
    with torch.device("meta"):
        network = build_model(model, num_classes=16, input_size=224)
    assert [name for _, name in list_sharded_blocks(network)] == names


def test_fsdp_says_plainly_that_layers_may_share_no_weights() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))
    model[2].weight = model[0].weight
    assignment = DeviceAssignment(rank=0, world=2, devices=(torch.device("cpu"),), rendezvous=Path("none"))
    with pytest.raises(UsageError, match="layers share weights; use ddp or local"):
        FullySharded(assignment).prepare_model(model, torch.contiguous_format, lambda module: module)
