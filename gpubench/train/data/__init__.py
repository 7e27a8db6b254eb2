"""How images reach the device: sources, transforms, loaders. Runs in the measured processes.

data = open_data(spec, LoaderSettings(…), device=…, memory_format=…)
for batch in data.iterate_epoch(0):
    images, labels = data.move_and_transform(batch)
"""

from __future__ import annotations

from gpubench.train.data.loaders import LoaderSettings
from gpubench.train.data.opened import Data, open_data

__all__ = ["Data", "LoaderSettings", "open_data"]
