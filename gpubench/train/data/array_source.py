"""Images that lie in memory as uint8: a memory map of decoded images, or a torchvision data set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

Pixels = npt.NDArray[np.uint8]


class ArraySource(Dataset[tuple[torch.Tensor, int]]):
    """N images as one array, never copied: all ranks, workers and jobs on a host share a memory map."""

    memory_format = torch.contiguous_format
    chunk = 256

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

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.image(index).clone(), int(self.labels[index])

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, int]]:
        positions = np.asarray(indices, dtype=np.int64)
        images = torch.empty((len(positions), *self._pixels.shape[1:]), dtype=torch.uint8)
        self.gather(positions, images)
        return list(zip(images, self.labels[positions].tolist(), strict=True))

    def image(self, index: int) -> torch.Tensor:
        return torch.from_numpy(np.array(self._pixels[self._keep[index]]))

    def place(self, index: int) -> str:
        return f"image {self._keep[index]} of {self._name}"

    def gather(self, indices: npt.NDArray[np.int64], out: torch.Tensor) -> bool:
        if tuple(out.shape[1:]) != self._pixels.shape[1:]:
            return False
        # mode="clip" lets numpy write straight into `out`; the positions are ours and never need clipping.
        np.take(self._pixels, self._keep[indices], axis=0, out=out.numpy(), mode="clip")
        return True
