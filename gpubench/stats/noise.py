"""What two processes of one configuration were seen to differ by: the noise that rows of one process borrow.

A table in the package, never a file at home, so that what a folder says depends on the folder alone. Each figure is the
largest difference that was seen between two processes of one configuration, of some 70 of them.
"""

from __future__ import annotations

import math
from typing import Literal

Bottleneck = Literal["gpu", "gpus", "loaders", "unknown"]
"""What sets the pace of a row: one GPU, several of them, the loaders, or launches, the host, or nobody knows what."""

NOISE: dict[Bottleneck, float] = {"gpu": 0.05, "gpus": 0.10, "loaders": 0.15, "unknown": 0.40}
"""0.05: two processes differ by 5 % at most."""
BUSY_PCT = 97.0
"""Utilisation from which a GPU may be what sets the pace; launches that follow each other closely read as high."""
LONGER_STEP = 1.3
"""A step of a GPU-bound row is at least so many times that of half the batch; of launch-bound ones it hardly grows."""


def estimate_noise(
    *,
    gpus: int,
    utilization_pct: float | None,
    step_growth: float | None,
    is_loader_bound: bool = False,
    is_shared: bool = False,
    strategy: str | None = None,
) -> float:
    """The logarithm of the largest ratio that two processes of such a row were seen to differ by.

    `step_growth`: its step's time over that of half the batch, all else equal; None where that was not measured.
    `is_shared`: whether it ran beside other jobs. `strategy`: the threads of dp are the host's.
    """
    bottleneck: Bottleneck = "unknown"
    if is_shared or strategy == "dp":
        pass
    elif is_loader_bound:
        bottleneck = "loaders"
    elif (utilization_pct or 0.0) >= BUSY_PCT and (step_growth or 0.0) >= LONGER_STEP and gpus:
        bottleneck = "gpu" if gpus == 1 else "gpus"
    return math.log1p(NOISE[bottleneck])
