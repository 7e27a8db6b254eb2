"""What one round of a sweep over six batch sizes costs, against timm's way: one process a batch size.

    python tests/benchmarks/against_timm.py [--pairs 1] [--batch-sizes 16,32,64,128,256,512]

mobilenet_v2 in bf16, channels-last, a resident batch. `gpubench sweep --rounds 1 --window 3s` against
`for b in …; do python timm_train.py $b; done`, which makes the calls of timm's benchmark.py; which of both is first
alternates. Prints seconds and their ratio (target: at most 0.45), and images/s of both. Needs timm and a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
SWEEP = (
    "--model",
    "mobilenet_v2",
    "--variant",
    "synthetic",
    "--data",
    "procedural",
    "--precision",
    "bf16",
    "--rounds",
    "1",
)
SAME = ("--window", "3s", "--set", "num_classes=16", "--set", "input_size=224", "--yes", "-q")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--batch-sizes", default="16,32,64,128,256,512")
    options = parser.parse_args()
    ratios: list[float] = []
    for number in range(options.pairs):
        order = [timm, sweep] if number % 2 == 0 else [sweep, timm]
        took: dict[str, float] = {}
        for way in order:
            took[way.__name__] = way(options.batch_sizes.split(","))
            print(f"{way.__name__}: {took[way.__name__]:.1f} s", flush=True)
        ratios.append(took["sweep"] / took["timm"])
        print(
            f"pair {number + 1}: timm {took['timm']:.1f} s, sweep {took['sweep']:.1f} s, ratio {ratios[-1]:.3f}",
            flush=True,
        )
    print(f"sweep / timm: median {statistics.median(ratios):.3f} of {len(ratios)} pairs")


def timm(batch_sizes: Sequence[str]) -> float:
    """Seconds of timm's calls, a process for each batch size."""
    began = time.monotonic()
    for batch in batch_sizes:
        subprocess.run([sys.executable, HERE / "timm_train.py", batch], check=True)
    return time.monotonic() - began


def sweep(batch_sizes: Sequence[str]) -> float:
    """Seconds of one sweep into a fresh folder, from the start of the command to its end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gpubench", "sweep", *SWEEP, *SAME]
        began = time.monotonic()
        subprocess.run(
            [*command, "--batch-size", ",".join(batch_sizes), "--out", f"{folder}/run"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds = time.monotonic() - began
        shown = [sys.executable, "-m", "gpubench", "table", "--json", f"{folder}/run"]
        told = json.loads(subprocess.run(shown, check=True, capture_output=True, text=True).stdout)
    (table,) = told["tables"]
    print("sweep's images/s:", [row["values"]["images_per_s"] for row in table["rows"]], flush=True)
    return seconds


if __name__ == "__main__":
    main()
