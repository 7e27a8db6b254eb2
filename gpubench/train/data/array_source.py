"""Images that lie in memory as uint8: a memory map of decoded images, or a torchvision data set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

Pixels = npt.NDArray[np.uint8]


class ArraySource:
    """N images as one array, never copied: all ranks, workers and jobs on a host share a memory map."""

    def __init__(
        self, pixels: Pixels, labels: npt.ArrayLike, keep: npt.NDArray[np.int64] | None, name: str
    ) -> None:
        """`pixels`: N × C × S × S; `keep`: positions to use, None: all; `name`: for messages."""
        every = np.asarray(labels, dtype=np.int64)
        self._pixels = pixels
        self._keep = np.arange(len(every)) if keep is None else keep
        self._name = name
        self.labels = every[self._keep]

    def __len__(self) -> int:
        return len(self.labels)

    def image(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self._pixels[self._keep[index]]))

    def place(self, index: int) -> str:
        return f"image {self._keep[index]} of {self._name}"
