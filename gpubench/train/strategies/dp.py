"""`dp`: torch.nn.DataParallel. One process drives all GPUs and splits each batch among them.

Measured as its users run it: replicas are made anew in every step and drop the channels-last format.
"""

from __future__ import annotations

import torch

from gpubench.train.strategies.single import Single


class DataParallel(Single):
    """One process, several GPUs."""

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        return torch.nn.DataParallel(model, device_ids=[d.index for d in self.place.devices])

    @property
    def no_exchange(self) -> str:
        return "DataParallel's copies run inside forward and backward"
