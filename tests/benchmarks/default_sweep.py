"""What three rounds of windows cost: `gpubench sweep` as it is, against one round of four epochs, which it was once.

    python tests/benchmarks/default_sweep.py [--pairs 2] [--now "OPTIONS"] [-- OPTIONS OF BOTH SWEEPS]

    … --now "--data procedural"

Whole commands into fresh folders, with the images made beforehand, the order within pairs alternating. Prints a line a
pair and the median ratio, now / before; exits 1 where it is above 1. `--now`: options of the sweep as it is alone, to
try what another default would cost.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from statistics_of_pairs import median_interval

WAYS = {"now": (), "before": ("--rounds", "1", "--epochs", "4")}
BEFORE = {
    "gpu": ("--data", "procedural", "--batch-size", "16,32,64,128,256,512"),
    "cpu": ("--set", "input_size=64"),
}
"""Then, there were twice as many images and one size more on a GPU, and larger images on CPUs."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--now", default="", help="options of the sweep as it is, not of the one before")
    parser.add_argument("sweep", nargs="*", help="options of both sweeps, after --")
    options = parser.parse_args()
    more = {
        "now": tuple(shlex.split(options.now)),
        "before": BEFORE["cpu" if shutil.which("nvidia-smi") is None else "gpu"],
    }
    ways = {way: asked + more[way] for way, asked in WAYS.items()}
    for way in more.values():  # makes the images of both
        seconds_of(["--rounds", "1", "--epochs", "2", "--batch-size", "64", "--yes", *way])
    ratios: list[float] = []
    for number in range(options.pairs):
        order = list(ways) if number % 2 == 0 else list(ways)[::-1]
        took = {way: seconds_of([*ways[way], *options.sweep]) for way in order}
        ratios.append(took["now"] / took["before"])
        said = ", ".join(f"{way} {took[way]:.1f} s" for way in WAYS)
        print(f"pair {number + 1}: {said}, ratio {ratios[-1]:.2f}", flush=True)
    middle, low, high = median_interval(ratios)
    print(
        f"now / before: median {middle:.2f} ({low:.2f} to {high:.2f}) of {len(ratios)} pairs; "
        f"gpubench sweep {options.now} {shlex.join(options.sweep)}".rstrip()
    )
    return 1 if middle > 1 else 0


def seconds_of(sweep: Sequence[str]) -> float:
    """The whole command. Raises where it did not end well."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "gpubench", "sweep", *sweep, "-q", "--out", f"{folder}/run"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
