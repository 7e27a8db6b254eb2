"""A/A: one configuration twice, under two learning rates that change no time. How often is it called different?

    python tests/benchmarks/same_twice.py [--rounds 20] [--splits 1000] [--out FOLDER] [-- SWEEP OPTIONS]

One sweep measures both in each of its rounds, as any sweep does. Then the two processes of each round, which follow
each other closely, are dealt to two halves by lot, again and again, and the halves are compared as two rows of a table
are: round by round. Prints how many of these splits are called different (of claims without an effect 5 % are, by
chance), what is called of the two learning rates, and how wide the 95 % intervals are.

    python tests/benchmarks/same_twice.py -- --device cpu --model lenet --batch-size 64 --window 1s
    python tests/benchmarks/same_twice.py --rounds 30 -- --model mobilenet_v2 --precision bf16 --batch-size 16
"""

from __future__ import annotations

import argparse
import collections
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpubench.analyze.folder import read_folder
from gpubench.core.claims import Claim
from gpubench.stats.decisions import decide
from gpubench.stats.estimates import compare_rounds

NAMES = "lr=0.05,0.0500001"
Pair = tuple[float, float]
"""Seconds of the two processes of a round."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--splits", type=int, default=1000)
    parser.add_argument("--out", help="results folder (default: a temporary one)")
    parser.add_argument("sweep", nargs="*", help="options of the sweep, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or f"{folder}/aa"
        command = ["sweep", "--variant", "synthetic", "--set", NAMES, "--rounds", str(options.rounds)]
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "gpubench", *command, *options.sweep, "--yes", "--out", out],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        print(f"{options.rounds} rounds, {time.monotonic() - began:.0f} s")
        pairs = read_pairs(Path(out))
    lot = random.Random(0)
    splits = [
        compare_halves([lot.choice([pair, pair[::-1]]) for pair in pairs]) for _ in range(options.splits)
    ]
    verdicts = [split.decided for split in splits]
    words = collections.Counter(verdict.word for verdict in verdicts)
    asked = compare_halves(pairs)
    widths = statistics.quantiles([50 * (verdict.high - verdict.low) for verdict in verdicts], n=20)
    print(f"of {len(splits)} splits: {dict(words)}")
    print(f"the two learning rates: {math.exp(asked.evidence.center):.3f} ({describe(asked)})")
    print(f"half an interval: median {widths[9]:.1f} %, 5 to 95 %: {widths[0]:.1f} to {widths[-1]:.1f} %")


def describe(claim: Claim) -> str:
    verdict = claim.decided
    return f"{verdict.low:.3f} to {verdict.high:.3f}, {verdict.word}"


def read_pairs(path: Path) -> list[Pair]:
    """The processes' epoch times, round by round."""
    folder = read_folder(path, print)
    if len(folder.summary) != 2:
        sys.exit(f"one configuration is wanted (--batch-size 64, …), not {len(folder.summary) // 2}")
    times = [folder.processes(row).set_index("round")["epoch_time_s"] for row in folder.summary.index]
    first, second = (dict(each) for each in times)
    return [(first[number], second[number]) for number in sorted(first.keys() & second.keys())]


def compare_halves(pairs: Sequence[Pair]) -> Claim:
    """The second half's time against the first's."""
    if len(pairs) < 2:
        sys.exit("halves are compared from two rounds on")
    first, second = (dict(enumerate(half)) for half in zip(*pairs, strict=True))
    claim = Claim(
        metric="epoch_time_s",
        baseline=0,
        candidate=1,
        evidence=compare_rounds(second, first),
        design="paired",
    )
    return decide([claim])[0]


if __name__ == "__main__":
    main()
