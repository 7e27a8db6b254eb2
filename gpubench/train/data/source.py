"""What every source of images has in common."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

Labels = npt.NDArray[np.int64]


class Source(Protocol):
    """Images that can be read by position. A torch Dataset of (uint8 C × H × W, int class)."""

    labels: Labels
    """Class of every image, (N,)."""
    memory_format: torch.memory_format
    """How `image` lays out its pixels, so that a batch takes them over without turning them round."""
    chunk: int
    """Images that a worker makes at a time: enough to make its message cheap, few enough to keep all busy."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]: ...

    def image(self, index: int) -> torch.Tensor:
        """Image `index` as uint8 C × H × W. May be a view of the source: never write to it.

        Raises UnusableError, naming the image, where it can't be read.
        """
        ...

    def place(self, index: int) -> str:
        """Where image `index` lies, for messages."""
        ...

    def gather(self, indices: npt.NDArray[np.int64], out: torch.Tensor) -> bool:
        """Copies whole images into `out` (B × C × S × S) at one go; False where this source can't."""
        ...
