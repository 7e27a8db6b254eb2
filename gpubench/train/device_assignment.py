"""The devices that one rank of a trial is assigned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceAssignment:
    """One rank: its number among the ranks of its trial, and the devices that it drives."""

    rank: int
    world: int
    """Ranks of the trial."""
    devices: tuple[torch.device, ...]
    """The first one holds the batch and the loss."""
    rendezvous: Path
    """A file of this trial's own, through which its ranks find each other: no port that another job could hold."""

    @property
    def device(self) -> torch.device:
        return self.devices[0]

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def synchronize(self) -> None:
        """Waits until every device of this rank has finished its work."""
        if self.is_cuda:
            for device in self.devices:
                torch.cuda.synchronize(device)
