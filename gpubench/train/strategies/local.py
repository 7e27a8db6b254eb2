"""`local`: every rank trains alone, and now and then all take the mean of their models (local SGD, model averaging).

The mean is taken once in `sync_every` steps: of the weights, and of buffers such as BatchNorm's statistics. Each rank
keeps its optimizer's state to itself. With `sync_every` = 1 and plain SGD the weights become those of `ddp`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gpubench.train.strategies.ranks import RanksStrategy, select_float_buffers


class Local(RanksStrategy):
    """A process for each device, each with a whole model of its own."""

    _steps = 0

    def after_step(self) -> None:
        self._steps += 1
        if self._steps % self.sync_every == 0:
            self.average_over_ranks(self.list_averaged_tensors())

    @contextmanager
    def gather_whole_model(self) -> Iterator[torch.nn.Module]:
        """The mean of the ranks' models. Each rank's own lies beside it meanwhile, and comes back afterwards."""
        own_values = [tensor.clone() for tensor in self.list_averaged_tensors()]
        self.average_over_ranks(self.list_averaged_tensors())
        yield self.model
        for tensor, value in zip(self.list_averaged_tensors(), own_values, strict=True):
            tensor.copy_(value)

    def list_averaged_tensors(self) -> list[torch.Tensor]:
        return [*(p.detach() for p in self.model.parameters()), *select_float_buffers(self.model.buffers())]


def exchanged_bytes(strategy: Local) -> float:
    """All that is averaged, in its own precision, once in `sync_every` steps."""
    return sum(tensor.nbytes for tensor in strategy.list_averaged_tensors()) / strategy.sync_every
