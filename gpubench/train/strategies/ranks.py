"""What strategies with a process for each device have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from gpubench.basics.ports import open_listener
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.strategies.contract import Strategy

MEET_LIMIT = timedelta(minutes=5)
"""How long ranks on other nodes may take to reach the first one: a node that can't be reached is told, and not waited
for until the trial's deadline."""
FOR_EVER = timedelta(hours=24)
"""The runner's deadline is the one that counts."""
ONE_HOST = "lo"
"""What `GLOO_SOCKET_IFNAME` is where the user has set none: right where all ranks are on one host."""
BUCKET_BYTES = 25 * 2**20
"""What `average_over_ranks` puts into one collective at most, unless one tensor is larger: as much as ddp's bucket."""


class RanksStrategy(Strategy):
    """A process for each device. They meet over NCCL on GPUs, over gloo on a CPU."""

    def connect_ranks(self) -> None:
        assignment = self.assignment
        self._store = _open_rendezvous_store(assignment)
        dist.init_process_group(
            "nccl" if assignment.is_cuda else "gloo",
            store=self._store,
            rank=assignment.rank,
            world_size=assignment.world,
            timeout=FOR_EVER,  # a rank that fails is seen by the leader
            device_id=assignment.device if assignment.is_cuda else None,
        )

    def barrier(self) -> None:
        dist.barrier()
        self.assignment.synchronize()

    def wait_before_exit(self) -> None:
        """Where others are on other nodes, waits until all are past their last exchange: what this process still has
        to send, or keeps for all as the first rank, goes with it."""
        assignment = self.assignment
        if isinstance(assignment.rendezvous, Path):
            return
        for word, waits in (("past", True), ("seen", assignment.rank == 0)):
            self._store.set(f"{word}/{assignment.rank}", "")
            if waits:
                self._store.wait([f"{word}/{rank}" for rank in range(assignment.world)], FOR_EVER)

    def sum_over_ranks(self, values: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(values)
        return values

    @torch.no_grad()
    def average_over_ranks(self, tensors: Sequence[torch.Tensor]) -> None:
        """Gives each of `tensors` (any shapes, on the rank's device) its mean over the ranks.

        In place, so that they stay where they are: optimizers, compiled modules and graphs hold on to their memory.
        """
        for bucket in _split_into_buckets(tensors):
            # `reshape` goes by dimensions and not by memory, so channels-last tensors come back as they went.
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            dist.all_reduce(flat)
            flat /= self.assignment.world
            done = 0
            for tensor in bucket:
                tensor.copy_(flat[done : done + tensor.numel()].view(tensor.shape))
                done += tensor.numel()


def _open_rendezvous_store(assignment: DeviceAssignment) -> torch._C._distributed_c10d.Store:
    """Through which the ranks find each other. Those on other nodes wait for the first rank, which listens."""
    met = assignment.rendezvous
    if isinstance(met, Path):
        return dist.FileStore(str(met), assignment.world)  # type: ignore[attr-defined]
    if os.environ.get("GLOO_SOCKET_IFNAME", ONE_HOST) == ONE_HOST:
        os.environ["GLOO_SOCKET_IFNAME"] = met.interface
    # A store of torch's own making listens at all addresses of the node.
    listens = open_listener(met.address, met.port).detach() if assignment.rank == 0 else None
    store = dist.TCPStore(  # type: ignore[attr-defined]
        met.address,
        met.port,
        assignment.world,
        is_master=listens is not None,
        timeout=MEET_LIMIT,
        master_listen_fd=listens,
    )
    store.set_timeout(FOR_EVER)
    return store


def select_float_buffers(buffers: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those that hold floating point numbers, such as BatchNorm's statistics: not its count of batches."""
    return [buffer for buffer in buffers if buffer.is_floating_point()]


def _split_into_buckets(tensors: Sequence[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """All tensors in their order, in buckets: each bucket of one type and of BUCKET_BYTES at most."""
    bucket: list[torch.Tensor] = []
    held = 0
    for tensor in tensors:
        if bucket and (held + tensor.nbytes > BUCKET_BYTES or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, held = [], 0
        bucket.append(tensor)
        held += tensor.nbytes
    if bucket:
        yield bucket
