"""What a sweep in rounds costs, and how right its answer is, against the truth of five processes of five full epochs.

    python tests/benchmarks/cost_of_certainty.py truth  FOLDER [SWEEP OPTIONS]
    python tests/benchmarks/cost_of_certainty.py rounds FOLDER [SWEEP OPTIONS]
    python tests/benchmarks/cost_of_certainty.py tell FOLDER...

`truth` goes on where it was interrupted, so it may be measured in parts, with `--repeats 2` first and the rounds in the
midst of it: what drifts on the machine is then in both. `tell` compares the two, row by row: the error of the rounds'
epoch time, and whether its 95 % interval holds the truth (the geometric mean of all processes of whole epochs). The
truth's cost is the wall time of its trials, that of the rounds is of the whole command.

    for each of mobilenet_v2 and resnet50, synthetic and crop-resize:
    … truth  /tmp/m-s --model mobilenet_v2 --variant synthetic --precision bf16 --batch-size 16:512:x2
    … rounds /tmp/m-s --model mobilenet_v2 --variant synthetic --precision bf16 --batch-size 16:512:x2
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WARM_UP, EPOCHS, PROCESSES = 1, 5, 5
NEAR = 0.02
"""An answer counts as right within so much of the truth."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("truth", "rounds", "tell"))
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    options, sweep = parser.parse_known_args()
    if options.part == "tell":
        tell(options.folders)
        return 0
    (folder,) = options.folders
    if options.part == "truth":
        repeats = [] if "--repeats" in sweep else ["--repeats", str(PROCESSES)]
        epochs = ["--epochs", str(WARM_UP + EPOCHS), "--rounds", "1"]
        return run(folder / "truth", [*epochs, *repeats, *sweep])
    began = time.monotonic()
    code = run(folder / "rounds", ["--epochs", str(WARM_UP + 1), *sweep])
    seconds = time.monotonic() - began
    if code == 0:
        (folder / "rounds.json").write_text(json.dumps({"seconds": seconds}))
    return code


def run(folder: Path, sweep: Sequence[str]) -> int:
    """The command's exit code."""
    return subprocess.run(
        [sys.executable, "-m", "gpubench", "sweep", "--yes", *sweep, "--out", folder],
        stdout=subprocess.DEVNULL,
        check=False,
    ).returncode


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the rounds say of one row, in s, and what is true."""

    name: str
    said: float
    low: float
    high: float
    processes: int
    true: tuple[float, ...]
    """Epoch time of each process of whole epochs."""

    @property
    def truth(self) -> float:
        return math.exp(sum(map(math.log, self.true)) / len(self.true))

    @property
    def error(self) -> float:
        return self.said / self.truth - 1

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def between(self) -> float:
        """Coefficient of variation between the processes that are the truth."""
        logs = [math.log(value) for value in self.true]
        middle = sum(logs) / len(logs)
        return math.sqrt(sum((log - middle) ** 2 for log in logs) / (len(logs) - 1))


def tell(folders: Sequence[Path]) -> None:
    """Prints each row, and the sums."""
    answers: list[Answer] = []
    true_s = rounds_s = 0.0
    for folder in folders:
        found, cost_s = in_folder(folder)
        spent_s = json.loads((folder / "rounds.json").read_text())["seconds"]
        print(f"{folder.name}: rounds {spent_s:.0f} s, truth {cost_s:.0f} s, ratio {spent_s / cost_s:.3f}")
        for one in found:
            print(
                f"  {one.name}: truth {one.truth:.4g} s ({len(one.true)} processes, CV {one.between:.1%}), rounds "
                f"{one.said:.4g} s ({one.low:.4g} to {one.high:.4g}, {one.processes} processes), error "
                f"{one.error:+.1%}, {'holds' if one.holds else 'DOES NOT HOLD'} the truth"
            )
        answers += found
        true_s += cost_s
        rounds_s += spent_s
    shares("all rows", answers)
    quiet = [one for one in answers if one.between <= NEAR / 2]
    shares(f"rows whose processes differ by {NEAR / 2:.0%} or less", quiet)
    print(f"cost: rounds {rounds_s:.0f} s, truth {true_s:.0f} s, ratio {rounds_s / true_s:.3f}")


def shares(whose: str, answers: Sequence[Answer]) -> None:
    """One line; nothing where there are none."""
    if answers:
        near = sum(abs(one.error) <= NEAR for one in answers)
        held = sum(one.holds for one in answers)
        print(f"{whose}: {near} of {len(answers)} within {NEAR:.0%} of the truth, {held} hold it")


def in_folder(folder: Path) -> tuple[list[Answer], float]:
    """An answer for each row of the rounds, and the seconds that the truth took."""
    true: dict[str, list[float]] = {}
    for row in rows(folder / "truth" / "trials.csv"):
        if row["status"] == "ok":
            true.setdefault(name_of(row), []).append(float(row["epoch_time_s"]))
    found = [
        Answer(
            name=name_of(row),
            said=float(row["epoch_time_s"]),
            low=float(row["epoch_time_low_s"]),
            high=float(row["epoch_time_high_s"]),
            processes=int(row["repeats"]),
            true=tuple(true[name_of(row)]),
        )
        for row in rows(folder / "rounds" / "table.csv")
        if row["status"] == "ok" and name_of(row) in true
    ]
    walls = [json.loads(path.read_text())["phases"]["wall"] for path in folder.glob("truth/records/*/*.json")]
    return found, sum(walls)


def rows(path: Path) -> list[Mapping[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def name_of(row: Mapping[str, str]) -> str:
    return f"batch {row['batch_size']}"


if __name__ == "__main__":
    sys.exit(main())
