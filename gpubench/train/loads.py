"""Known loads in a training's place: a matrix product, a copy, and a simulation of bodies that attract each other.

Each is a function that makes what a step does, and the two tensors that it does it on. How much work a step is stands
in `catalog.LOADS`. All else, from the warm-up to the last word, is a training's on one device.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any

import torch

from gpubench.schema import catalog
from gpubench.schema.events import ParentChannel
from gpubench.schema.order import TrialOrder
from gpubench.train.breakdown import StepBreakdown
from gpubench.train.data.opened import OnDevice, ResidentBatch
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.step import AUTOCAST, Step
from gpubench.train.strategies.contract import Strategy
from gpubench.train.worker import RankRunner, run_rank

Work = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""What a step does with its two tensors. Returns what it has made, which lies where it lay in the step before."""
TIME_STEP = 1e-3
NEAREST = 0.1
"""Bodies that are nearer to each other attract each other as if they were so far apart."""


def make_matrix_product(size: int, dtype: torch.dtype, device: torch.device) -> tuple[Work, OnDevice]:
    """Two random matrices (size, size), multiplied."""
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    product = torch.empty_like(left)
    return lambda left, right: torch.mm(left, right, out=product), (left, right)


def make_copy(size: int, dtype: torch.dtype, device: torch.device) -> tuple[Work, OnDevice]:  # noqa: ARG001
    """So many MiB of random bytes, copied on the device."""
    source = torch.randint(256, (size << 20,), device=device, dtype=torch.uint8)
    return lambda source, target: target.copy_(source), (source, torch.empty_like(source))


def make_nbody(size: int, dtype: torch.dtype, device: torch.device) -> tuple[Work, OnDevice]:
    """Bodies of equal masses, 1 in sum, at random places (size, 3) at rest, one step on in time.

    All pairs are in one matrix, through which each step goes several times: most of it is traffic of memory.
    """
    places = torch.randn(size, 3, device=device, dtype=dtype)
    pairs = torch.empty(size, size, device=device, dtype=dtype)

    def advance(places: torch.Tensor, speeds: torch.Tensor) -> torch.Tensor:
        squares = places.square().sum(1)
        torch.addmm(squares, places, places.T, alpha=-2, out=pairs)
        pairs.add_(squares[:, None]).clamp_(min=NEAREST**2)  # squares of distances
        pairs.rsqrt_().pow_(3)
        pull = pairs @ places - places * pairs.sum(1, keepdim=True)
        speeds.add_(pull, alpha=TIME_STEP / size)
        return places.add_(speeds, alpha=TIME_STEP)

    return advance, (places, torch.zeros_like(places))


def main(order: TrialOrder, rank: int, channel: ParentChannel) -> int:
    """As that of a training."""
    return run_rank(LoadRunner(order, rank, channel))


class LoadStep:
    """A load's step, which has no loss."""

    def __init__(self, work: Work, device: torch.device) -> None:
        self._work = work
        self.loss_sum = torch.zeros((), device=device)

    def __call__(self, first: torch.Tensor, second: torch.Tensor, /) -> None:
        self._work(first, second)


class LoadRunner(RankRunner):
    """The one rank of a load."""

    def build_step(self, strategy: Strategy, breakdown: StepBreakdown | None) -> Step:  # noqa: ARG002
        trial, device = self.order.trial, strategy.assignment.device
        make = pkgutil.resolve_name(catalog.LOADS[trial.model].target)
        work, self._tensors = make(trial.batch_size, AUTOCAST.get(trial.precision, torch.float32), device)
        return LoadStep(work, device)

    def open_data(self, assignment: DeviceAssignment) -> ResidentBatch:  # noqa: ARG002
        return ResidentBatch(self._tensors, steps_per_epoch=1)

    def count_parameters_and_macs(self, strategy: Strategy) -> dict[str, Any]:  # noqa: ARG002
        return {}
