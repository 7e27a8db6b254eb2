"""How images reach the device: sources, transforms, loaders. Runs in the measured processes.

data = open_data(spec, device=…, rank=…, world=…, batch_size=…, workers=…, prefetch=…, dtype=…,
                 memory_format=…, seed=…)
for batch in data.train_epoch(0):
    images, labels = data.to_device(batch)
"""

from __future__ import annotations

from gpubench.train.data.opened import Data, open_data

__all__ = ["Data", "open_data"]
