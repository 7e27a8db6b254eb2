"""Models of users that draw, count, and fail in their first pass: for tests of what a rehearsal leaves."""

from __future__ import annotations

import random
import time

import numpy as np
import torch
from torch import nn


class DropsAndCounts(nn.Module):
    """Draws from every source of chance, and keeps statistics in buffers, one of them made anew in each pass."""

    seen: torch.Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout2d(0.2))
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, num_classes))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen = self.seen + 1
            images = images * (1 + 0.1 * random.random() + 0.1 * float(np.random.rand()))
        out: torch.Tensor = self.head(self.features(images))
        return out * (1 + 0.01 * self.seen.to(out))


def drops_and_counts(num_classes: int) -> nn.Module:
    return DropsAndCounts(num_classes)


class Raises(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        print("in the first pass", flush=True)
        raise ValueError(f"no use for {len(images)} images")


def raises_in_forward(num_classes: int) -> nn.Module:  # noqa: ARG001
    return Raises()


def never_builds(num_classes: int) -> nn.Module:  # noqa: ARG001
    time.sleep(600)
    raise AssertionError
