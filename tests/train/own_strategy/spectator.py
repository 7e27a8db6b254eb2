"""A strategy whose ranks differ: the first trains alone, on whole batches; the others read and update nothing."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpubench.schema import catalog
from gpubench.train.strategies.contract import BatchShare, Passes
from gpubench.train.strategies.ranks import Ranks

NAME = "spectator"
FACTS = catalog.StrategyFacts(target="spectator:Spectator", exchange=None, process_per_device=True)


class Spectator(Ranks):
    """Shows the moments in which ranks may differ."""

    @property
    def share(self) -> BatchShare:
        return BatchShare(index=0, degree=1, reads=self.assignment.rank == 0)

    def optimizer(
        self, make: Callable[[torch.nn.Module], torch.optim.Optimizer]
    ) -> torch.optim.Optimizer | None:
        return super().optimizer(make) if self.share.reads else None

    def gradients(self, passes: Passes, images: torch.Tensor, labels: torch.Tensor) -> None:
        if self.share.reads:
            super().gradients(passes, images, labels)

    def mean_loss(self, loss_sum: torch.Tensor) -> float:
        return self.sum(loss_sum.clone()).item()
