"""The devices that one rank of a trial is assigned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from gpubench.schema.order import Rendezvous


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceAssignment:
    """One rank: its number among the ranks of its trial, and the devices that it drives."""

    rank: int
    world: int
    """Ranks of the trial, on all nodes."""
    first: int = 0
    """The number of the first rank on this node."""
    devices: tuple[torch.device, ...]
    """The first one holds the batch and the loss."""
    rendezvous: Path | Rendezvous
    """Through what its ranks find each other. On one node a file of this trial's own: no port that another job could
    hold. On several nodes a port of the first."""

    @property
    def device(self) -> torch.device:
        return self.devices[0]

    @property
    def local_rank(self) -> int:
        """Its number among the ranks of its node."""
        return self.rank - self.first

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def synchronize(self) -> None:
        """Waits until every device of this rank has finished its work."""
        if self.is_cuda:
            for device in self.devices:
                torch.cuda.synchronize(device)
