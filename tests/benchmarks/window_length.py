"""How a wall time is best divided between longer windows and more processes. Run by hand on results of steady rates:

    python tests/benchmarks/window_length.py RESULTS…

Two-stage sampling (Kalibera and Jones 2013): a process costs c seconds beside its window (start, warm-up, end), rates
inside it vary from second to second by s1, and those of processes by sb. A mean over processes of w seconds is the
surest for its wall time at w = sqrt(c * s1^2 / sb^2). Printed for each configuration of three processes or more: c, s1
(by the means of half seconds), sb (what the window's own variation does not explain of how far processes lie apart) and
w; and for all together, by the medians of c and of both variances.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HALF_S = 0.5
FEWEST = 3


def main(folders: Sequence[str]) -> None:
    rows = []
    for folder in map(Path, folders):
        processes: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in sorted(folder.glob("records/*/*.json")):
            record = json.loads(file.read_text())
            if record.get("status") == "ok" and record["result"].get("epoch_time_source") == "steady":
                processes[record["config_id"]].append(record)
        rows += [parts(folder, records) for records in processes.values() if len(records) >= FEWEST]
    if not rows:
        sys.exit("no configuration has three processes of a steady rate")
    print(f"{'':42}     c s   s1 %   sb %    w s")
    for name, cost_s, inside, between in rows:
        print(line(name, cost_s, inside, between))
    print(
        line("all, by medians", *(statistics.median(column) for column in list(zip(*rows, strict=True))[1:]))
    )


def line(name: str, cost_s: float, inside: float, between: float) -> str:
    best_s = math.sqrt(cost_s * inside / between) if between else math.inf
    return f"{name:42} {cost_s:7.2f} {100 * inside**0.5:6.1f} {100 * between**0.5:6.1f} {best_s:6.1f}"


def parts(folder: Path, records: Sequence[dict[str, Any]]) -> tuple[str, float, float, float]:
    """Name, seconds beside the window, and the relative variances: of a second inside, and between processes."""
    trial = records[0]["trial"]
    name = f"{trial['model']} {trial['variant']} {trial['precision']} {trial['batch_size']} ({len(records)})"
    cost_s = statistics.fmean(r["phases"]["wall"] - r["phases"]["measured"] for r in records)
    window_s = statistics.fmean(r["phases"]["measured"] for r in records)
    inside = HALF_S * statistics.fmean(variance_of_halves(step_times_s(folder, r)) for r in records)
    spread = statistics.variance(math.log(r["result"]["images_per_s"]) for r in records)
    return name, cost_s, inside, max(0.0, spread - inside / window_s)


def step_times_s(folder: Path, record: dict[str, Any]) -> list[float]:
    """Of the first rank's measured steps, in their order."""
    number = record["trial_id"]
    file = folder / "samples" / number[1:3] / f"{number}-{record['attempt']}.csv"
    with file.open(newline="") as lines:
        return [float(row["value"]) / 1e3 for row in csv.DictReader(lines) if row["device"] == "rank0"]


def variance_of_halves(steps_s: Sequence[float]) -> float:
    """Relative variance of the rates of half seconds."""
    rates, count, spent_s = [], 0, 0.0
    for step_s in steps_s:
        count, spent_s = count + 1, spent_s + step_s
        if spent_s >= HALF_S:
            rates.append(count / spent_s)
            count, spent_s = 0, 0.0
    return statistics.variance(rates) / statistics.fmean(rates) ** 2 if len(rates) > 1 else 0.0


if __name__ == "__main__":
    main(sys.argv[1:])
