"""Attacks sweeps: kills and stops processes of theirs at random moments, fills and removes their folders.

    python tests/chaos/attack.py [--attacks 300] [--seed 7] [--gpus 2] [--only kill-rank,full] [--sweep ddp]
                                 [--number 12] [--first 100] [--at-once 2] [--patience 2] [--json FILE]

After each attack the promises of verdicts.py are looked at, and the same sweep is started again. Prints a line an
attack and a table of what came of them; exits 1 where a promise broke that known.py does not list. The same seed
makes the same choices, and with --number one of them alone, as long as --only, --sweep and --gpus are the same.

With --at-once several attacks go on side by side, for much of their time is waiting; not on GPUs, where each looks at
all that the driver shows. Where CUDA_VISIBLE_DEVICES names GPUs by number, it looks at those only.

It signals no process but those below the sweeps that it has started itself, and needs user namespaces for the faults of
the file system (else it skips them and says so). With --gpus the sweeps run on that many GPUs.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import sweeps
from found import Found
from kinds import KINDS, Attack, choose
from known import known
from once import attack_until_struck
from room import NoNamespacesError
from verdicts import broken, outcome

RESUMABLE = 75


def main() -> int:
    # Else their end would leave the attacked sweep behind, stopped processes and all.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(RESUMABLE))
    options = _options()
    last = options.first + options.attacks
    numbers = range(options.first, last) if options.number is None else [options.number]
    told: list[dict[str, Any]] = []
    pool = ThreadPoolExecutor(options.at_once)
    try:
        for made in as_completed([pool.submit(_made, number, options) for number in numbers]):
            told.append(made.result())
            if options.json:
                options.json.write_text("".join(json.dumps(line) + "\n" for line in told))
    finally:
        # Those that go on clean up after themselves.
        pool.shutdown(cancel_futures=True)
        print(table(told))
    return 1 if any(line["news"] for line in told) else 0


def _made(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """Makes one attack and prints its line."""
    attack = choose(options.seed, number, options.kinds, options.sweeps)
    began = time.monotonic()
    try:
        found = attack_until_struck(attack, options.patience)
        attack, outcome = found.attack, _outcome(found)
    except NoNamespacesError as error:
        outcome = {"outcome": f"skipped: {error}", "broken": {}, "news": []}
    line = {**_facts(attack), **outcome, "seconds": round(time.monotonic() - began, 1)}
    again = [f"--{name} {vars(options)[name]}" for name in ("only", "sweep", "gpus") if vars(options)[name]]
    print(_line(attack, line, " ".join(again)), flush=True)
    return line


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attacks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--number", type=int, default=None, help="this one of them alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--at-once", type=int, default=1, help="so many side by side")
    parser.add_argument("--gpus", type=int, default=0, help="attack sweeps on so many GPUs, not on the CPU")
    parser.add_argument(
        "--only", default="", help="kinds of attack, or beginnings of their names: kill,full-tmp"
    )
    parser.add_argument("--sweep", default="", help="these sweeps only: plain,ddp")
    parser.add_argument("--patience", type=float, default=1.0, help="stretches all limits, on a busy machine")
    parser.add_argument("--json", type=Path, default=None, help="a line an attack into this file")
    options = parser.parse_args()
    if options.gpus and options.at_once > 1:
        parser.error("attacks on GPUs go one at a time, for each looks at all that the driver shows")
    names = options.sweep.split(",")
    options.sweeps = [s for s in sweeps.on(options.gpus) if s.name in names or not options.sweep]
    options.kinds = [kind for kind in KINDS if kind.name.startswith(tuple(options.only.split(",")))]
    if not any(kind.suits(sweep) for kind in options.kinds for sweep in options.sweeps):
        parser.error("no attack is left: there are " + ", ".join(kind.name for kind in KINDS))
    return options


def _facts(attack: Attack) -> dict[str, Any]:
    return {
        "seed": attack.seed,
        "number": attack.number,
        "attack": attack.kind.name,
        "sweep": attack.sweep.name,
        "stored": attack.stored,
        "delay_s": attack.delay_s,
    }


def _outcome(found: Found) -> dict[str, Any]:
    breaks = broken(found)
    return {
        "outcome": outcome(found),
        "first_s": round(found.first.seconds, 1),
        "second_s": round(found.second.seconds, 1),
        "broken": breaks,
        "news": [name for name, why in breaks.items() if known(found.attack, name, why) is None],
    }


def _line(attack: Attack, line: dict[str, Any], filters: str) -> str:
    breaks = "".join(
        f"\n    {'BROKEN' if promise in line['news'] else 'known'}: {promise}: {why}"
        for promise, why in line["broken"].items()
    )
    again = f"\n    again: --seed {attack.seed} --number {attack.number} {filters}" if line["news"] else ""
    return f"{attack}: {line['outcome']}{breaks}{again}"


def table(told: Sequence[dict[str, Any]]) -> str:
    """What came of the attacks, by kind, as Markdown; news and known breaks are counted by themselves."""
    lines = [
        "",
        "| attack | times | how the sweep ended | held | broke as known | broke |",
        "|---|---:|---|---:|---:|---:|",
    ]
    order = [kind.name for kind in KINDS]
    groups = [*sorted({line["attack"] for line in told}, key=order.index), "all"]
    for name in groups:
        mine = [line for line in told if name in (line["attack"], "all")]
        endings = Counter(line["outcome"] for line in mine)
        news = sum(bool(line["news"]) for line in mine)
        as_known = sum(bool(line["broken"]) and not line["news"] for line in mine)
        skipped = sum(line["outcome"].startswith("skipped") for line in mine)
        how = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
        held = len(mine) - news - as_known - skipped
        lines.append(f"| {name} | {len(mine)} | {how} | {held} | {as_known} | {news} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
