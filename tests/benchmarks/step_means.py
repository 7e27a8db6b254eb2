"""Standard errors of the rate of one process, by batch means of its steps, where steps resemble each other.

`PYTHONPATH=tests python tests/benchmarks/step_means.py`: of windows of so many steps, how many have no error (they tell
too little), how many miss the truth, and how many would if steps were independent.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtrit
from simulated_processes import resembling, stalling

from gpubench.stats.steps import step_mean

WINDOWS = 2_000
TRUTHS = {"correlation 0": 1.0, "correlation 0.5": 1.0, "correlation 0.9": 1.0, "every eighth stalls": 1.375}

if __name__ == "__main__":
    draw = np.random.default_rng(1)
    print(f"{'steps':>5}  {'':20} none  misses  independent")
    for length in (50, 100, 200, 400, 1000):
        for name, truth in TRUTHS.items():
            windows = (
                stalling(draw, WINDOWS, length)
                if name == "every eighth stalls"
                else 1 + 0.05 * resembling(draw, (WINDOWS, length), float(name.split()[1]))
            )
            means = [mean for window in windows.tolist() if (mean := step_mean(window))]
            missed = sum(
                abs(mean.seconds - truth) > mean.seconds * mean.error * stdtrit(mean.batches - 1, 0.975)
                for mean in means
            )
            plain = windows.std(axis=1, ddof=1) / math.sqrt(length) * stdtrit(length - 1, 0.975)
            alone = (abs(windows.mean(axis=1) - truth) > plain).mean()
            shares = (1 - len(means) / WINDOWS, missed / WINDOWS, alone)
            print(f"{length:>5}  {name:20}" + "".join(f"{share:8.1%}" for share in shares))
