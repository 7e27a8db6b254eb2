"""`ddp`: torch's DistributedDataParallel. A process for each device; gradients averaged over the ranks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as TorchDDP

from gpubench.train.strategies.single import Single


class DistributedDataParallel(Single):
    """A process for each device; NCCL on GPUs, gloo on a CPU."""

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

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        ids = [self.place.device.index] if self.place.is_cuda else None
        return TorchDDP(model, device_ids=ids, gradient_as_bucket_view=True)

    def unsynchronized(self, model: torch.nn.Module) -> AbstractContextManager[None]:
        return cast(AbstractContextManager[None], cast(TorchDDP, model).no_sync())

    def barrier(self) -> None:
        dist.barrier()
        self.place.synchronize()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(values)
        return values
