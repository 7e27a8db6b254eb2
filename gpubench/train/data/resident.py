"""No input pipeline at all: one batch that stays on the device."""

from __future__ import annotations

import torch

IMAGES = 10_240
"""Images of an epoch where the trial names no number: as many as the built-in data have."""


def random_batch(
    *,
    shape: tuple[int, int, int, int],
    num_classes: int,
    device: torch.device,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A random batch, already normalised, for every step: images of `shape` and labels (B,)."""
    generator = torch.Generator(device).manual_seed(seed)
    images = torch.randn(shape, device=device, generator=generator)
    labels = torch.randint(num_classes, shape[:1], device=device, generator=generator)
    return images.to(dtype=dtype, memory_format=memory_format), labels
