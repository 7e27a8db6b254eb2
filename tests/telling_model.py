"""A user's model that tells by its print which weights each rank has in the end."""

from __future__ import annotations

import re
from pathlib import Path

NET = """
import hashlib, os, signal
import torch
from torch import nn
import torch.distributed as dist

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.LazyLinear(classes))
        self.layers(torch.zeros(1, 3, 28, 28))
        self.steps = 0

    def forward(self, images):
        if not self.training:
            flat = torch.cat([p.detach().flatten() for p in self.parameters()])
            print("WEIGHTS", dist.get_rank(), hashlib.sha256(flat.numpy().tobytes()).hexdigest(), flush=True)
        self.steps += self.training
        {trick}
        return self.layers(images)

def net(num_classes):
    return Net(num_classes)
"""
DIES = "os.kill(os.getpid(), signal.SIGKILL) if dist.get_rank() == 1 and self.steps == 3 else None"
"""The second node's rank, in mid-training."""


def write(folder: Path, trick: str = "pass") -> str:
    """The model's name for `--model`; `trick` is what it does in each pass."""
    path = folder / "nets.py"
    path.write_text(NET.replace("{trick}", trick))
    return f"{path}:net"


def weights(log: str) -> dict[int, str]:
    """Rank -> a hash of the weights that it was evaluated with, by what its trial printed."""
    return {int(rank): told for rank, told in re.findall(r"WEIGHTS (\d+) (\w{64})", log)}
