"""Images that lie in memory as uint8: decoded ones as `gpubench data` keeps them, and torchvision's own data sets."""

from __future__ import annotations

import fcntl
import pkgutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gpubench.basics.errors import UnusableError, UsageError, make_unknown_name_error
from gpubench.datasets import copies, folder
from gpubench.schema import catalog

Pixels = npt.NDArray[np.uint8]


class ArraySource:
    """N images as one array, never copied: all ranks, workers and jobs on a host share a memory map."""

    def __init__(self, pixels: Pixels, labels: npt.ArrayLike, name: str, limit: int | None = None) -> None:
        """`pixels`: N × C × S × S; `name`: for messages; `limit`: that many, spread evenly over the classes."""
        every = np.asarray(labels, dtype=np.int64)
        self._pixels = pixels
        self._keep = np.arange(len(every))
        if limit is not None:
            self._keep = np.array(folder.select_evenly_over_classes(every.tolist(), limit), dtype=np.int64)
        self._name = name
        self.labels = every[self._keep]

    def __len__(self) -> int:
        return len(self.labels)

    def load_image(self, index: int) -> torch.Tensor:
        """Image `index` as uint8 C × H × W."""
        return torch.from_numpy(np.array(self._pixels[self._keep[index]]))

    def name_image(self, index: int) -> str:
        """Which image that is, for messages."""
        return f"image {self._keep[index]} of {self._name}"


def open_decoded_source(root: str, split: str, limit: int | None = None) -> ArraySource:
    """Images of `split` (`train` or `val`) of the decoded data at `root`."""
    return ArraySource(*copies.open_decoded_split(Path(root), split), f"{root} ({split})", limit)


def open_or_fetch_named_source(
    name: str, root: str, split: str, channels: int = 3, limit: int | None = None
) -> ArraySource:
    """Images of `split` (`train` or `val`) of the data set `name`, kept by torchvision under `root`.

    Fetched once where it is absent; of several processes that start together one fetches and the others wait.
    Grey images are repeated where three channels are asked for. Raises UnusableError where the data set is
    neither there nor can be fetched.
    """
    if name not in catalog.NAMED_DATA:
        raise make_unknown_name_error("data set", name, catalog.NAMED_DATA)
    data = _open_or_fetch_dataset(catalog.NAMED_DATA[name], name, Path(root), train=split == "train")
    kept = data.data.numpy() if isinstance(data.data, torch.Tensor) else np.asarray(data.data)
    # N × S × S (grey) or N × S × S × 3
    pixels = np.ascontiguousarray(kept[:, None] if kept.ndim == 3 else kept.transpose(0, 3, 1, 2))
    if (have := pixels.shape[1]) != channels:
        if have != 1:
            raise UsageError(
                f"{name} has {have} channels, the model takes {channels}: choose another model or data set"
            )
        pixels = np.repeat(pixels, channels, axis=1)
    return ArraySource(pixels, data.targets, f"{name} ({split})", limit)


def _open_or_fetch_dataset(known: catalog.NamedData, name: str, root: Path, *, train: bool) -> Any:
    dataset = pkgutil.resolve_name(known.target)
    try:
        return dataset(str(root), train=train, download=False, **known.kwargs)
    except RuntimeError:  # torchvision's word for "not there": fetch it
        pass
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return dataset(str(root), train=train, download=True, **known.kwargs)
    except (OSError, RuntimeError) as error:
        raise UnusableError(
            f"{name} is not in {root} and can't be fetched ({error}): put it there, or give another --data"
        ) from error
