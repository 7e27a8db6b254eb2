"""How far an epoch that `--steps` extrapolates is from one that is measured: the same trial in turn, each way.

    python tests/benchmarks/extrapolation.py [--pairs 6] [--epochs 6] [--steps 16] [--bound 3] -- OPTIONS OF A SWEEP

    … -- --gpus 1 --model resnet34 --precision bf16 --variant cached --batch-size 512 --workers 8

Each trial is a sweep of its own, in processes of its own; the order within pairs alternates. Prints a line a pair and
the median ratio, extrapolated / measured, with its 95 % interval between pairs; exits 1 where the median is further
than the bound (per cent) from 1. What one process differs from the next is in the interval, not in the median.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from statistics_of_pairs import median_interval

from gpubench.results.store import Results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=6, help="of the measured one, the warm-up included")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--bound", type=float, default=3.0, help="per cent")
    parser.add_argument("sweep", nargs="+", help="options of `gpubench sweep`, after --")
    options = parser.parse_args()
    ways = {"measured": ("--epochs", str(options.epochs)), "extrapolated": ("--steps", str(options.steps))}
    ratios: list[float] = []
    for number in range(options.pairs):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        took = {way: epoch_time_s((*options.sweep, *ways[way])) for way in order}
        ratios.append(took["extrapolated"] / took["measured"])
        said = ", ".join(f"{way} {took[way]:.4f} s" for way in ways)
        print(f"pair {number + 1}: {said}, ratio {ratios[-1]:.3f}", flush=True)
    middle, low, high = median_interval(ratios)
    print(
        f"extrapolated / measured: median {middle:.3f} ({low:.3f} to {high:.3f}) of {len(ratios)} pairs; "
        f"{' '.join(options.sweep)}"
    )
    return 1 if abs(middle - 1) > options.bound / 100 else 0


def epoch_time_s(sweep: Sequence[str]) -> float:
    """Of the one trial of a sweep into a fresh folder. Raises where it did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "gpubench",
                "sweep",
                *sweep,
                "--rounds",
                "1",
                "--yes",
                "-q",
                "--out",
                folder,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (record,) = Results(Path(folder)).records()
        return float(record.result.epoch_time_s)


if __name__ == "__main__":
    sys.exit(main())
