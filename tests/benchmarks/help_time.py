"""How long `gpubench --help` takes on a warm disk: target 0.3 s. Beside it, an interpreter that does nothing.

python tests/benchmarks/help_time.py [--runs 20]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from statistics_of_pairs import median_interval


def seconds(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    asked = [sys.executable, "-m", "gpubench", "--help"]
    empty = [sys.executable, "-c", "pass"]
    seconds(asked)
    pairs = [(seconds(asked), seconds(empty)) for _ in range(options.runs)]
    for name, values in (
        ("gpubench --help", [a for a, _ in pairs]),
        ("python -c pass", [b for _, b in pairs]),
    ):
        middle, low, high = median_interval(values)
        print(f"{name}: median {middle:.3f} s ({low:.3f} … {high:.3f})")


if __name__ == "__main__":
    main()
