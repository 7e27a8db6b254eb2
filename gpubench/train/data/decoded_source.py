"""Decoded images in one memory map, as `gpubench data` writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpubench.datasets import decoded, folder
from gpubench.train.data.array_source import ArraySource


def decoded_source(root: str, split: str, limit: int | None = None) -> ArraySource:
    """Images of `split` (`train` or `val`) of the decoded data at `root`.

    `limit`: that many, spread evenly over the classes.
    """
    pixels, labels = decoded.open_decoded(Path(root), split)
    keep = (
        None
        if limit is None
        else np.array(folder.spread_over_classes(np.asarray(labels).tolist(), limit), dtype=np.int64)
    )
    return ArraySource(pixels, labels, keep, f"{root} ({split})")
