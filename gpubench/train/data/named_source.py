"""torchvision's own data sets by name, held in memory as uint8."""

from __future__ import annotations

import fcntl
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.datasets import folder
from gpubench.schema import catalog
from gpubench.train.data.array_source import ArraySource, Pixels


def named_source(
    name: str, root: str, split: str, channels: int = 3, limit: int | None = None
) -> ArraySource:
    """Images of `split` (`train` or `val`) of the data set `name`, kept by torchvision under `root`.

    Fetched once where it is absent; of several processes that start together one fetches and the others wait.
    Grey images are repeated where three channels are asked for. Raises UnusableError where the data set is
    neither there nor can be fetched.
    """
    if name not in catalog.NAMED_DATA:
        raise unknown("data set", name, catalog.NAMED_DATA)
    data = _open(catalog.NAMED_DATA[name], name, Path(root), train=split == "train")
    pixels = _channels(_pixels(data.data), channels, name)
    labels = np.asarray(data.targets, dtype=np.int64)
    keep = (
        None
        if limit is None
        else np.array(folder.spread_over_classes(labels.tolist(), limit), dtype=np.int64)
    )
    return ArraySource(pixels, labels, keep, f"{name} ({split})")


def _open(known: catalog.NamedData, name: str, root: Path, *, train: bool) -> Any:
    module, _, attribute = known.target.partition(":")
    dataset = getattr(importlib.import_module(module), attribute)
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


def _pixels(data: Any) -> Pixels:
    """N × C × S × S from what torchvision keeps: N × S × S (grey) or N × S × S × 3."""
    array = data.numpy() if isinstance(data, torch.Tensor) else np.asarray(data)
    return np.ascontiguousarray(array[:, None] if array.ndim == 3 else array.transpose(0, 3, 1, 2))


def _channels(pixels: Pixels, channels: int, name: str) -> Pixels:
    have = pixels.shape[1]
    if have == channels:
        return pixels
    if have == 1:
        return np.repeat(pixels, channels, axis=1)
    raise UsageError(
        f"{name} has {have} channels, the model takes {channels}: choose another model or data set"
    )
