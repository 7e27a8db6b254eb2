"""`ddp`: torch's DistributedDataParallel. A process for each device; gradients averaged over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import cast

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
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

    def exchanged_bytes(self, trained: torch.nn.Module) -> int | None:
        """Each trainable parameter's gradient, once a step, in the parameter's own precision.

        DDP's buckets hold just these, however it cuts them (its own account of them is no stable interface). Buffers
        that rank 0 hands out before a forward pass, such as BatchNorm's statistics, are not gradients.
        """
        if not isinstance(trained, TorchDDP):  # a subclass that wraps otherwise
            return super().exchanged_bytes(trained)
        return sum(p.numel() * p.element_size() for p in trained.parameters() if p.requires_grad)

    def watch_exchange(
        self, trained: torch.nn.Module, ready: Callable[[], Callable[[], None] | None]
    ) -> None:
        """By a communication hook that does what DDP does without one."""

        # Without annotations: torch compares them as objects, and here they are text.
        def hook(group, bucket):  # type: ignore[no-untyped-def]
            averaged = ready()
            future = allreduce_hook(group, bucket)
            if averaged is None:
                return future

            def pass_on(future: torch.futures.Future[torch.Tensor]) -> torch.Tensor:
                # On CUDA a stream is current here that waits for the communication; on a CPU that is over.
                averaged()
                return future.value()

            return future.then(pass_on)

        if isinstance(trained, TorchDDP):
            trained.register_comm_hook(None, hook)

    def barrier(self) -> None:
        dist.barrier()
        self.place.synchronize()

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(values)
        return values
