"""`dp`: torch.nn.DataParallel. One process drives all GPUs and splits each batch among them.

Measured as its users run it: replicas are made anew in every step and drop the channels-last format.
"""

from __future__ import annotations

import torch

from gpubench.schema.codes import REASONS
from gpubench.train.strategies.contract import Compile, Strategy


class DataParallel(Strategy):
    """One process, several GPUs."""

    def prepare_model(
        self, model: torch.nn.Module, memory_format: torch.memory_format, compiled: Compile
    ) -> torch.nn.Module:
        devices = [d.index for d in self.assignment.devices]
        return compiled(torch.nn.DataParallel(self.move_to_device(model, memory_format), device_ids=devices))

    def explain_no_exchange(self) -> str:
        return REASONS["dp"]
