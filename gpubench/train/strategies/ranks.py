"""What strategies with a process for each device have in common."""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist

from gpubench.train.strategies.contract import Strategy


class Ranks(Strategy):
    """A process for each device. They meet over NCCL on GPUs, over gloo on a CPU."""

    def open(self) -> None:
        place = self.place
        dist.init_process_group(
            "nccl" if place.is_cuda else "gloo",
            store=dist.FileStore(str(place.rendezvous), place.world),  # type: ignore[attr-defined]
            rank=place.rank,
            world_size=place.world,
            # The runner's deadline is the one that counts; a rank that fails is seen by the leader.
            timeout=timedelta(hours=24),
            device_id=place.device if place.is_cuda else None,
        )

    def barrier(self) -> None:
        dist.barrier()
        self.place.synchronize()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(values)
        return values
