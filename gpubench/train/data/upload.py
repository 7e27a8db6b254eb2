"""Host to device: one copy on a stream of its own, then transforms and normalisation on the current one."""

from __future__ import annotations

import numpy as np
import torch

from gpubench.train.data import on_device
from gpubench.train.data.loaders import Batch
from gpubench.train.data.spec import DataSpec


def _side_stream(device: torch.device) -> torch.cuda.Stream | None:
    return torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]


class Upload:
    """Turns host batches into (normalised images, labels) on the device. Never waits for the device."""

    def __init__(
        self, spec: DataSpec, *, device: torch.device, dtype: torch.dtype, memory_format: torch.memory_format
    ) -> None:
        self._device = device
        self._stream = _side_stream(device)
        self._transforms = on_device.chain(spec.gpu)
        self._generator = torch.Generator(device)
        self._normalise = on_device.Normalise(
            channels=spec.channels, device=device, dtype=dtype, memory_format=memory_format
        )

    def seed(self, *numbers: int) -> None:
        """Draws on the device start anew from these numbers."""
        self._generator.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))

    def __call__(self, batch: Batch, *, augment: bool) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = self._copy(batch)
        if augment:
            for transform in self._transforms:
                images = transform(images, self._generator)
        return self._normalise(images), labels

    def _copy(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        if self._stream is None:
            return batch.images, batch.labels.clone()
        # The host runs ahead of the device, so this copy runs beside the steps that come before it.
        with torch.cuda.stream(self._stream):
            images = batch.images.to(self._device, non_blocking=True)
            labels = batch.labels.to(self._device, non_blocking=True)
        copied = self._stream.record_event()
        batch.ring.copied(batch.slot, copied)
        current = torch.cuda.current_stream(self._device)
        current.wait_event(copied)
        # Both belong to the copying stream, which must not reuse their memory before this one is done.
        images.record_stream(current)
        labels.record_stream(current)
        return images, labels
