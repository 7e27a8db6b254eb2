"""What two processes of each row may differ by, where a row has one: by what sets its pace."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpubench.analyze.frames import Summary
from gpubench.analyze.series import Fields
from gpubench.stats.noise import NOISE, find_bottleneck

LOADER_BOUND_PCT = 50.0
"""Share of the time for which the device starves from which loaders set the pace."""


def borrow_noise(rows: Summary) -> dict[int, float]:
    """Label -> the largest difference between two processes of such rows (0.4: 40 %). `rows`: of one table."""
    growth = find_step_growth(rows)
    names = ["gpus", "gpu_util_pct", "strategy", "group", "data_wait_pct"]
    noise = {}
    for label, gpus, busy, strategy, group, wait in rows[names].itertuples():
        bottleneck = find_bottleneck(
            gpus=0 if pd.isna(gpus) else int(gpus),
            utilization_pct=None if pd.isna(busy) else float(busy),
            step_growth=growth.get(label),
            is_loader_bound=bool(pd.notna(wait) and wait >= LOADER_BOUND_PCT),
            is_shared=bool(pd.notna(group)),
            strategy=strategy,
        )
        noise[int(label)] = NOISE[bottleneck]
    return noise


def find_step_growth(rows: Summary) -> dict[int, float]:
    """Label -> a step's time over that of half the batch, all else equal; only of rows of which that was measured."""
    alone = rows[rows["group"].isna() & rows["images_per_s"].notna()]
    if not len(alone):
        return {}
    numbers, _ = Fields.of(alone).series("batch_size")
    batch = alone["batch_size"].to_numpy("float64", na_value=np.nan)
    step = batch / alone["images_per_s"].to_numpy("float64", na_value=np.nan)
    steps = {(number, size): time for number, size, time in zip(numbers, batch, step, strict=True)}
    growth = {}
    for label, number, size, time in zip(alone.index, numbers, batch, step, strict=True):
        half = steps.get((number, size / 2))
        if half:
            growth[int(label)] = float(time / half)
    return growth
