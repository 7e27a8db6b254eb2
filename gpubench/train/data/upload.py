"""Host to device: one copy that the host does not wait for, then transforms and normalisation on the device."""

from __future__ import annotations

import numpy as np
import torch

from gpubench.schema.order import DataSpec
from gpubench.train.data import on_device
from gpubench.train.data.loaders import Batch


class Upload:
    """Turns host batches into (normalised images, labels) on the device. Never waits for the device."""

    def __init__(
        self, spec: DataSpec, *, device: torch.device, dtype: torch.dtype, memory_format: torch.memory_format
    ) -> None:
        self._device = device
        self._transforms = on_device.build_transforms(spec.gpu)
        self._generator = torch.Generator(device)
        self._normalise = on_device.Normalise(
            channels=spec.channels, device=device, dtype=dtype, memory_format=memory_format
        )

    def seed(self, *numbers: int) -> None:
        """Draws on the device start anew from these numbers."""
        self._generator.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))

    def __call__(self, batch: Batch, *, augment: bool) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = (part.to(self._device, non_blocking=True) for part in batch)
        if augment:
            for transform in self._transforms:
                images = transform(images, self._generator)
        return self._normalise(images), labels
