"""A strategy as a newcomer writes it by CONTRIBUTING: what differs, and nothing about its exchange."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from gpubench.schema import catalog
from gpubench.train.strategies.ranks import Ranks

NAME = "sharded"
FACTS = catalog.StrategyFacts(target="sharded:Sharded", exchange=None, process_per_device=True)


class Sharded(Ranks):
    """Parameters, gradients and optimizer are split among the ranks."""

    def prepare(
        self,
        model: torch.nn.Module,
        memory_format: torch.memory_format,
        compiled: Callable[[torch.nn.Module], torch.nn.Module],
    ) -> torch.nn.Module:
        mesh = dist.init_device_mesh(self.assignment.device.type, (self.assignment.world,))
        return fully_shard(compiled(self.move_to_device(model, memory_format)), mesh=mesh)
