"""`ddp`: torch's DistributedDataParallel. A process for each device; gradients averaged over the ranks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel as TorchDDP

from gpubench.train.strategies.contract import Compile
from gpubench.train.strategies.ranks import RanksStrategy


class DistributedDataParallel(RanksStrategy):
    """Every rank holds the whole model; gradients are averaged while the backward pass runs."""

    ddp: TorchDDP

    def prepare_model(
        self, model: torch.nn.Module, memory_format: torch.memory_format, compiled: Compile
    ) -> torch.nn.Module:
        ids = [self.assignment.device.index] if self.assignment.is_cuda else None
        self.ddp = TorchDDP(
            self.move_to_device(model, memory_format), device_ids=ids, gradient_as_bucket_view=True
        )
        return compiled(self.ddp)

    def pause_synchronization(self) -> AbstractContextManager[None]:
        return cast(AbstractContextManager[None], self.ddp.no_sync())

    def register_bucket_callback(self, ready: Callable[[], Callable[[], None] | None]) -> None:
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

        self.ddp.register_comm_hook(None, hook)


def exchanged_bytes(strategy: DistributedDataParallel) -> int:
    """Each trainable parameter's gradient, once a step, in the parameter's own precision.

    DDP's buckets hold just these, however it cuts them (its own account of them is no stable interface). Buffers that
    rank 0 hands out before a forward pass, such as BatchNorm's statistics, are not gradients.
    """
    return sum(p.nbytes for p in strategy.ddp.parameters() if p.requires_grad)
