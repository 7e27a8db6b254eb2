"""What every source of images has in common."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

Labels = npt.NDArray[np.int64]


class Source(Protocol):
    """Images that can be read by position."""

    labels: Labels
    """Class of every image, (N,)."""

    def __len__(self) -> int: ...

    def image(self, index: int) -> torch.Tensor:
        """Image `index` as uint8 C × H × W. May be a view of the source: never write to it.

        Raises UnusableError, naming the image, where it can't be read.
        """
        ...

    def place(self, index: int) -> str:
        """Where image `index` lies, for messages."""
        ...
