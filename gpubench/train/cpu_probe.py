"""How fast the CPU is at this moment, for who launches kernels from it.

Rates of trials that are limited by the launching of kernels follow the CPU's speed, which other work on the host's
cores changes for seconds to minutes. It is looked at before loaders are forked and after they have ended, never inside
a stream: a pause between two waves of batches would make the loaders seem faster.
"""

from __future__ import annotations

import time

TURNS = 100_000
"""Of a plain loop: about 3 to 5 ms."""


def measure_fixed_work_ms() -> float:
    """CPU milliseconds of this thread for a fixed piece of work, the faster of two tries: the first warms caches."""
    return 1e3 * min(_time_loop_s() for _ in range(2))


def _time_loop_s() -> float:
    began = time.thread_time()
    total = 0
    for turn in range(TURNS):
        total += turn & 7
    return time.thread_time() - began
