"""How long a sweep takes of which every trial is measured already, beside the start of the libraries that it needs.

    python tests/benchmarks/finished_sweep.py [--trials 2,1000] [--pairs 5]

The first trial is measured here, on the CPU; the other records are copies of its record under the ids of the plan.
Then that sweep, given again, and an interpreter that imports the libraries alone run in turn. Target: 1,000 trials
within 2 s on two quiet cores. It ends with an error where a sweep measures anything.
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

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources

LIBRARIES = [sys.executable, "-c", "import msgspec, pandas, psutil, rich.console, typer.main"]
EXPERIMENT = """
name = "finished"
[fixed]
model = "lenet"
device = "cpu"
input_size = 28
variant = "synthetic"
data = "procedural:2048x32"
[axes]
batch_size = "{sizes}"
[run]
rounds = 1
epochs = 2
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="2,1000")
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    for trials in map(int, options.trials.split(",")):
        with tempfile.TemporaryDirectory() as home:
            folder = measure_all(Path(home), trials)
            pairs = [(seconds(sweep_command(folder)), seconds(LIBRARIES)) for _ in range(options.pairs)]
            if len(list(folder.glob("records/*/*.json"))) != trials:
                raise SystemExit("the finished sweep has measured something")
        sweep_s, libraries_s = (statistics.median(values) for values in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{trials:,} trials: {sweep_s:.2f} s, libraries {libraries_s:.2f} s, ratio {ratio:.2f}")


def measure_all(home: Path, trials: int) -> Path:
    """A results folder in which so many trials of a plan are measured, that is one, and copies of its record."""
    file, folder = home / "finished.toml", home / "results"
    file.write_text(EXPERIMENT.format(sizes="8"))
    seconds(sweep_command(folder))
    (measured,) = folder.glob("records/*/*.json")
    record = json.loads(measured.read_text("utf-8"))
    file.write_text(EXPERIMENT.format(sizes=f"8:{trials + 7}:1"))
    plan = expand_experiment(
        parse_experiment(file.read_text(), "finished"), device="cpu", sources=DiskSources()
    )
    for job in plan.jobs:
        if job.trial_id == record["trial_id"]:
            continue
        path = (
            folder / "records" / job.trial_id[1:3] / measured.name.replace(record["trial_id"], job.trial_id)
        )
        path.parent.mkdir(exist_ok=True)
        copy = {
            **record,
            "trial_id": job.trial_id,
            "config_id": job.config_id,
            "trial": job.trial.as_json_dict(),
        }
        path.write_text(
            json.dumps({**copy, "claim": record["claim"].replace(record["trial_id"], job.trial_id)})
        )
    seconds(sweep_command(folder))  # writes the tables, and what Python compiles
    return folder


def sweep_command(folder: Path) -> list[str]:
    file = folder.parent / "finished.toml"
    return [sys.executable, "-m", "gpubench", "sweep", str(file), "--out", str(folder), "-q"]


def seconds(command: list[str]) -> float:
    """Of wall time. Raises subprocess.CalledProcessError where the command fails."""
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
