"""A/A: pairs of one and the same configuration under two names. How many does a table call different?

    python tests/benchmarks/same_twice.py [--pairs 20] [--out FOLDER] [-- SWEEP OPTIONS]

The names are two learning rates, which change no time. Pairs differ from each other in the number of classes, by one
each, and are never compared. All are measured in one sweep, as any. Prints what is said of each pair by itself, as of
a table of two rows; how many of the single 95 % intervals leave out *no change* (one in twenty does by chance), and how
wide they are; and what is said of all of them as one table.

    python tests/benchmarks/same_twice.py -- --device cpu --model lenet --set input_size=28 --set train_images=16384
    python tests/benchmarks/same_twice.py -- --model mobilenet_v2 --precision bf16 --batch-size 16
"""

from __future__ import annotations

import argparse
import collections
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import decided
from gpubench.analysis.over_processes import time_ratio
from gpubench.report.reading import reading
from gpubench.schema.row import TableRow

NAMES = (0.01, 0.02)
FIRST = 10
"""Classes of the first pair."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--out", help="results folder (default: a temporary one)")
    parser.add_argument("sweep", nargs="*", help="options of the sweep, after --")
    options = parser.parse_args()
    axes = [f"num_classes={FIRST}:{FIRST + options.pairs - 1}:1", f"lr={NAMES[0]},{NAMES[1]}"]
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or f"{folder}/aa"
        command = ["sweep", "--variant", "synthetic", "--set", axes[0], "--set", axes[1], *options.sweep]
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "gpubench", *command, "--out", out], check=True, stdout=subprocess.DEVNULL
        )
        print(f"{options.pairs} pairs, {time.monotonic() - began:.0f} s")
        (table,) = reading(Path(out), print).tables
    tell(pairs(table.rows))


def pairs(rows: Sequence[TableRow]) -> list[Interval]:
    """Time under the second name by that under the first, of each pair that has both."""
    named: dict[object, dict[float, TableRow]] = {}
    for row in rows:
        named.setdefault(row.value("num_classes"), {})[float(str(row.value("lr")))] = row
    found = [
        time_ratio(pair[NAMES[1]], pair[NAMES[0]]) for pair in named.values() if pair.keys() == set(NAMES)
    ]
    return [one for one in found if one is not None]


def tell(ratios: Sequence[Interval]) -> None:
    outside = [f"{one.low:.3f} to {one.high:.3f}" for one in ratios if one.low > 1 or one.high < 1]
    halves = sorted(one.half_pct for one in ratios)
    alone = collections.Counter(decided([one]).ratios[0].word for one in ratios)
    together = collections.Counter(one.word for one in decided(ratios).ratios)
    print(f"each by itself: {dict(alone)}")
    print(f"as one table: {dict(together)}")
    print(f"{len(outside)} of {len(ratios)} intervals leave out no change {outside}")
    print(
        f"half an interval: median {statistics.median(halves):.1f} %, {halves[0]:.1f} to {halves[-1]:.1f} % of the time"
    )


if __name__ == "__main__":
    main()
