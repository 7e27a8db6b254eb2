"""The torch Dataset that loaders read: an image of a source, transformed and checked."""

from __future__ import annotations

import mmap
from collections.abc import Callable

import torch
from torch.utils.data import Dataset

from gpubench.basics.errors import UsageError
from gpubench.train.data.source import Source

Transform = Callable[[torch.Tensor], torch.Tensor]


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Images of `source` as uint8 (C, S, S) with their class."""

    def __init__(self, source: Source, transform: Transform, shape: tuple[int, int, int]) -> None:
        """`shape`: what every image must have after `transform`."""
        self._source = source
        self._transform = transform
        self._shape = torch.Size(shape)
        self._is_over = mmap.mmap(-1, 1)  # in memory that a rank shares with the workers forked from it

    def __len__(self) -> int:
        return len(self._source)

    def end(self) -> None:
        """No image is wanted any more. A worker drops the batch at hand, for which its rank would wait in vain."""
        self._is_over[0] = 1

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Raises UnusableError for an image that can't be read, UsageError for a transform that doesn't fit it."""
        if self._is_over[0]:
            raise RuntimeError("no image is wanted any more")
        image = self._source.image(index)
        try:
            image = self._transform(image)
        except (RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"a transform failed on {self._source.place(index)}: {error}") from error
        self._check(image, index)
        return image, int(self._source.labels[index])

    def _check(self, image: torch.Tensor, index: int) -> None:
        if isinstance(image, torch.Tensor) and image.shape == self._shape and image.dtype == torch.uint8:
            return
        where = self._source.place(index)
        if not isinstance(image, torch.Tensor) or image.dtype != torch.uint8:
            kind = getattr(image, "dtype", type(image).__name__)
            raise UsageError(
                f"{where} is {kind} after its transforms, not uint8: leave conversions to the device"
            )
        raise UsageError(
            f"{where} is {' × '.join(map(str, image.shape))} after its transforms, not "
            f"{' × '.join(map(str, self._shape))}: add RandomResizedCrop = {{ size = {self._shape[-1]} }} to the "
            "variant's cpu list, or resize the files beforehand"
        )
