"""What a whole sweep costs, against a shell loop that runs a plain script once a configuration; and what a trial costs.

    python tests/benchmarks/sweep_time.py [--pairs 2] [--batch-sizes 16:512:x2] [--steps 50]

Two figures. (1) Wall time of the mobilenet_v2 sweep (bf16, resident batch, 50 measured steps each), start of the
command to its end, over that of `for b in …; do python plain_train.py $b; done`: target at most 0.65. (2) A trial's
wall time outside CUDA context, first step, warm-up, measured window and evaluation, from the records that the
sweep left: target at most 0.7 s at the median.
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
TRAINING = ("context", "first_step", "warm_up", "measured", "evaluation")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--batch-sizes", default="16,32,64,128,256,512")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    ratios: list[float] = []
    outside: list[float] = []
    for number in range(options.pairs):
        shell = shell_loop(options.batch_sizes.split(","), options.steps)
        sweep, records = gpubench_sweep(options.batch_sizes, options.steps)
        ratios.append(sweep / shell)
        rest = [r["phases"]["wall"] - sum(r["phases"].get(name, 0.0) for name in TRAINING) for r in records]
        outside += rest
        print(
            f"pair {number + 1}: shell loop {shell:.1f} s, sweep {sweep:.1f} s, ratio {sweep / shell:.3f}",
            flush=True,
        )
        for record, seconds in zip(records, rest, strict=True):
            parts = ", ".join(f"{k} {v:.2f}" for k, v in record["phases"].items())
            print(f"    batch {record['trial']['batch_size']}: outside training {seconds:.2f} s ({parts})")
    print(f"sweep / shell loop: median {statistics.median(ratios):.3f} of {len(ratios)} pairs")
    print(f"a trial outside training: median {statistics.median(outside):.2f} s, most {max(outside):.2f} s")


def shell_loop(batch_sizes: list[str], steps: int) -> float:
    """Seconds of the plain script, once a batch size."""
    began = time.monotonic()
    for batch in batch_sizes:
        subprocess.run([sys.executable, HERE / "plain_train.py", batch, str(steps)], check=True)
    return time.monotonic() - began


def gpubench_sweep(batch_sizes: str, steps: int) -> tuple[float, list[dict[str, object]]]:
    """Seconds of one sweep into a fresh folder, and its records."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "gpubench",
            "sweep",
            "--model",
            "mobilenet_v2",
            "--variant",
            "synthetic",
        ]
        command += [
            "--batch-size",
            batch_sizes,
            "--steps",
            str(steps),
            "--precision",
            "bf16",
            "--rounds",
            "1",
        ]
        command += [
            "--set",
            "input_size=224",
            "--set",
            "num_classes=16",
            "--data",
            "procedural",
            "--out",
            folder,
        ]
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        records = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("records/*/*.json"))]
    return seconds, sorted(records, key=lambda r: r["trial"]["batch_size"])


if __name__ == "__main__":
    main()
