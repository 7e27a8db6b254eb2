"""What one round of a sweep over six batch sizes costs, against timm's way: one process a batch size.

    python tests/benchmarks/against_timm.py [--pairs 1] [--batch-sizes 16,32,64,128,256,512] [--window 3s]

mobilenet_v2 in bf16, channels-last, a resident batch. `gpubench sweep --rounds 1`, a window of 3 s each, against
`for b in …; do python timm_train.py $b; done`, which makes the calls of timm's benchmark.py and times 40 steps; which
is first alternates. Prints of both the seconds, which share of them was measured, and images/s. Needs timm and a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
SWEEP = (
    *("--model", "mobilenet_v2", "--variant", "synthetic", "--precision", "bf16", "--rounds", "1"),
    *("--set", "num_classes=16", "--set", "input_size=224", "--yes", "-q"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--batch-sizes", default="16,32,64,128,256,512")
    parser.add_argument("--window", default="3s", help="of the sweep")
    options = parser.parse_args()
    ratios: list[float] = []
    for number in range(options.pairs):
        order = [timm, sweep] if number % 2 == 0 else [sweep, timm]
        took: dict[str, float] = {}
        for way in order:
            began = time.monotonic()
            rates, measured_s = way(options)
            name, seconds = way.__name__, time.monotonic() - began
            took[name] = seconds
            shown = ", ".join(f"{rate:,.0f}" for rate in rates)
            print(
                f"{name}: {seconds:.1f} s, {measured_s / seconds:.0%} measured; images/s {shown}", flush=True
            )
        ratios.append(took["sweep"] / took["timm"])
        print(f"pair {number + 1}: sweep / timm {ratios[-1]:.3f}", flush=True)
    print(f"sweep / timm: median {statistics.median(ratios):.3f} of {len(ratios)} pairs")


def timm(options: argparse.Namespace) -> tuple[list[float], float]:
    """timm's calls, a process for each batch size: its images/s, and seconds that were timed in all."""
    told = []
    for batch in options.batch_sizes.split(","):
        command = [sys.executable, HERE / "timm_train.py", batch]
        told.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    return [one["images_per_s"] for one in told], sum(one["seconds"] for one in told)


def sweep(options: argparse.Namespace) -> tuple[list[float], float]:
    """One sweep into a fresh folder: its images/s, and seconds of its windows in all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gpubench", "sweep", *SWEEP, "--batch-size", options.batch_sizes]
        command += ["--window", options.window, "--out", f"{folder}/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        records = [json.loads(path.read_text()) for path in Path(folder).glob("run/records/*/*.json")]
    records.sort(key=lambda record: record["trial"]["batch_size"])
    return [record["result"]["images_per_s"] for record in records], sum(
        record["phases"]["measured"] for record in records
    )


if __name__ == "__main__":
    main()
