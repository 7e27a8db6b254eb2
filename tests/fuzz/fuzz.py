"""Reads spoiled texts, many of them, as gpubench reads what others wrote: records, plans, files, options, messages.

    python tests/fuzz/fuzz.py [--inputs 100000] [--seed 7] [--only plan] [--save FOLDER]

So many inputs for each reader. None may end in another exception than its refusal, take longer than reading.LONGEST_S,
or take the memory: the process may hold MEMORY more than at its beginning. Prints a table, and each kind of break with
its first input; exits 1 where there was one. The same seed makes the same inputs.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

# ruff: noqa: E402
from mutation import mutated
from reading import BrokenError, is_used
from targets import TARGETS

MEMORY = 2 << 30
"""Bytes."""
SLOW_S = 1.0
"""The slowest input of a reader is shown where it took longer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", choices=list(TARGETS), default=None)
    parser.add_argument(
        "--save", type=Path, default=None, help="the inputs that broke something, into this folder"
    )
    options = parser.parse_args()
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
    print("| read | inputs | used | refused | broke | slowest |\n|---|---:|---:|---:|---:|---:|")
    broken: dict[tuple[str, str], tuple[str, bytes]] = {}
    for name in [options.only] if options.only else TARGETS:
        print(_line(name, options.seed, options.inputs, broken), flush=True)
    for number, ((name, where), (said, text)) in enumerate(broken.items()):
        print(f"\n{name}: {where}: {said}\n    {text[:300]!r}")
        if options.save:
            options.save.mkdir(exist_ok=True)
            (options.save / f"{name}-{number}").write_bytes(text)
    return 1 if broken else 0


def _line(name: str, seed: int, inputs: int, broken: dict[tuple[str, str], tuple[str, bytes]]) -> str:
    """The table's line for one reader.

    Adds to `broken` each new kind of break: reader, where -> its words and the input.
    """
    chance = random.Random(f"{seed}, {name}")
    target = TARGETS[name]
    used = breaks = 0
    slowest, slowest_text = 0.0, b""
    for _ in range(inputs):
        text = mutated(chance.choice(target.whole), chance)
        began = time.monotonic()
        try:
            used += is_used(target, text)
        except BrokenError as error:
            breaks += 1
            last = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
            kind = type(error.__cause__).__name__ if error.__cause__ else "refusal"
            where = f"{kind} ({Path(last.filename).name}:{last.lineno})"
            broken.setdefault((name, where), (str(error), text))
        if (took := time.monotonic() - began) > slowest:
            slowest, slowest_text = took, text
    refused = inputs - used - breaks
    if slowest > SLOW_S:
        print(f"{name}: {slowest:.2f} s for {slowest_text[:300]!r}", file=sys.stderr)
    return f"| {name} | {inputs:,} | {used:,} | {refused:,} | {breaks:,} | {slowest:.2f} s |"


if __name__ == "__main__":
    sys.exit(main())
