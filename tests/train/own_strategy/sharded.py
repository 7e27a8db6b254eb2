"""A strategy as a newcomer writes it by CONTRIBUTING: what differs from Single, and nothing about its exchange."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

from gpubench.schema import catalog
from gpubench.train.strategies.single import Single

NAME = "sharded"
FACTS = catalog.Strategy(target="sharded:Sharded", process_per_device=True, executions=("eager",))


class Sharded(Single):
    """Parameters, gradients and optimizer are split among the ranks."""

    def open(self) -> None:
        place = self.place
        dist.init_process_group(
            "nccl" if place.is_cuda else "gloo",
            store=dist.FileStore(str(place.rendezvous), place.world),
            rank=place.rank,
            world_size=place.world,
        )

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        mesh = dist.init_device_mesh(self.place.device.type, (self.place.world,))
        return fully_shard(model, mesh=mesh)

    def barrier(self) -> None:
        dist.barrier()
        self.place.synchronize()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(values)
        return values
