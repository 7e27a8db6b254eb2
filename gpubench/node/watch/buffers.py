"""The samples that the driver takes by itself, fetched in time and dated by the host's monotonic clock."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from gpubench.node.watch import metrics
from gpubench.node.watch.nvml import Nvml
from gpubench.node.watch.pacing import Clock
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import Samples


class DriverBuffers:
    """Fetches each sample once."""

    def __init__(
        self, nvml: Nvml, gpus: Mapping[str, str], samples: Samples, clock: Clock, wall: Clock = time.time
    ) -> None:
        """`gpus`: uuid -> device of `samples`; `wall`: seconds since 1970, by which the driver dates its samples."""
        self._nvml = nvml
        self._gpus = gpus
        self._samples = samples
        self._clock = clock
        self._wall = wall
        now = wall()
        self._fetched = {(uuid, buffer.name): now for uuid in gpus for buffer in metrics.BUFFERS}

    def fetch(self, buffer: metrics.Buffer) -> None:
        """Adds what the driver has sampled since the last time."""
        ahead = self._wall() - self._clock()
        for uuid, gpu in self._gpus.items():
            key = uuid, buffer.name
            try:
                samples = self._nvml.history(uuid, buffer.what, self._fetched[key])
            except Unmeasured as reason:
                self._samples.gap(buffer.name, str(reason), gpu)
                continue
            latest = max(self._samples.series(buffer.name, gpu).times[-1:], default=-math.inf)
            for t, value in samples:
                # A wall clock that was set back must not bring the series out of order.
                latest = max(latest, t - ahead)
                self._samples.add(latest, buffer.name, value, gpu)
                self._fetched[key] = t
