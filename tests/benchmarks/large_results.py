"""How long the table and the exports of a large results folder take, and how much memory. Run by hand:

    python tests/benchmarks/large_results.py [--trials 1000,10000] [--what table,csv] [--seeds] [--keep FOLDER]

A folder of so many trials of ten epochs is written, quickly: each record is a real one's text with other figures. Then
each command runs once in a fresh process, with the folder's files in the kernel's cache. Printed: seconds, CPU time,
peak memory, and CPU time for 1,000 trials, which should not grow with the number of trials.

Machines are noisy, and other work on one slows a command by half. So a reference runs before each command, in a process
of its own: every record is read and parsed by `json.loads`, and nothing else. The command's CPU time is printed as a
multiple of that, too, which moves less.

Last, how long `import gpubench` takes, beyond Python's own start.

Targets for 100,000 trials: table 15 s, CSV 20 s, XLSX 120 s, and each in less than 1.5 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpubench.plan import experiment_file
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import Plan, derive_plan_id, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results

REAL = Path(__file__).parents[2] / "results" / "h200-cpus-2026" / "records"
EPOCHS = 10
TARGETS_S = {"table": 15.0, "csv": 20.0, "trials": 20.0, "epochs": 20.0, "json": 20.0, "xlsx": 120.0}
MOST_MB = 1500.0

COMMANDS: dict[str, tuple[str, ...]] = {
    "table": ("table",),
    "csv": ("export", "--format", "csv"),
    "trials": ("export", "--format", "csv", "--sheet", "trials"),
    "epochs": ("export", "--format", "csv", "--sheet", "epochs"),
    "json": ("export", "--format", "json"),
    "xlsx": ("export", "--format", "xlsx"),
}


def planned(trials: int, *, seeds: bool = False) -> Plan:
    """So many trials, rounded down to hundreds: batch sizes, five numbers of workers, and twenty learning rates, each
    trial a row of its own; or twenty seeds, which are merged."""
    text = "name = 'large'\n[fixed]\nmodel = 'lenet'\ngpus = 1\nvariant = 'synthetic'\ntrain_images = 10240\n"
    text += f"[run]\nrounds = 1\nepochs = {EPOCHS}\n"
    twenty = {"seed": "1:20:1"} if seeds else {"lr": ",".join(f"{n / 100}" for n in range(1, 21))}
    axes = {"batch_size": f"1:{max(trials // 100, 1)}:1", **twenty, "workers": "0,1,2,4,8"}
    asked = apply_options(parse_experiment(text, "large"), ExperimentOptions(fields=axes))
    return expand_experiment(asked, device="cuda", sources=DiskSources(), cpus=64)


def write(folder: Path, plan: Plan) -> None:
    """The folder as a sweep would have left it, but for samples, logs and its own tables."""
    results = Results(folder)
    facts = {
        "stored_at": "2026-11-20T09:00:00.000000+00:00", "number": 1, "device": plan.device, "gpus": 1, "cpus": 64,
    }  # fmt: skip
    sources = DiskSources()
    sources.find_data_facts("procedural")
    toml = experiment_file.format_experiment(plan.experiment, facts | sources.encode_sources())
    results.save_plan("large", derive_plan_id(plan.units), toml)
    real = _real()
    made = set()
    for job in plan.jobs:
        path = results.make_attempt_file_path("records", job.trial_id, 1, "json")
        if path.parent not in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            made.add(path.parent)
        path.write_text(_record(real, job), encoding="utf-8")


def _real() -> dict[str, Any]:
    """A record that was measured, with as much in each of its parts as records have."""
    for path in sorted(REAL.glob("*/t*.json")):
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if told["status"] == "ok":
            return told
    raise SystemExit(f"no record in {REAL}")


def _record(real: dict[str, Any], job: Any) -> str:
    asked = job.trial.as_json_dict()
    batch = asked["batch_size"]
    # Anything that is always the same for a trial, and differs between trials by some per cent.
    noise = 1 + int.from_bytes(hashlib.blake2s(job.trial_id.encode(), digest_size=2).digest(), "big") / 2**21
    epoch_s = (2.0 + 80.0 / batch) * noise
    result = {
        **real["result"],
        "epoch_time_s": epoch_s,
        "epochs_measured": EPOCHS - 1,
        "epoch_time_iqr_s": 0.01 * epoch_s,
        "images_per_epoch": 10240,
        "images_per_s": 10240 / epoch_s,
        "gpu_mem_mib": 900.0 + 4 * batch,
        "top1_pct": 50 * noise,
    }
    one = dict(real["epochs"][-1])
    epochs = [
        {**one, "epoch": n, "warmup": n == 0, "epoch_time_s": epoch_s * (1 + 0.01 * (n % 3)), "steps": 10240 // batch}
        for n in range(EPOCHS)
    ]  # fmt: skip
    told = {
        **real,
        "trial_id": job.trial_id,
        "config_id": job.config_id,
        "experiment": "large",
        "trial": asked,
        "variant_definition": {"files": "none", "cpu": [], "gpu": []},
        "data": {"fingerprint": "none"},
        "resolved": {**real["resolved"], "train_images": 10240, "workers": asked["workers"]},
        "result": result,
        "epochs": epochs,
        "windows": [{"epoch": n, "t0": 100.0 + 3 * n, "t1": 102.9 + 3 * n} for n in range(EPOCHS)],
        "provenance": {
            name: {**one, "samples": 20 + int(5000 * noise) % 50} if isinstance(one, dict) else one
            for name, one in real["provenance"].items()
        },
        "phases": {name: seconds * noise for name, seconds in real["phases"].items()},
        "doubts": {},
    }
    # What stands in a part is on one line, so that it is written in a tenth of the time. It is as large as with an
    # indent, but for some blanks.
    parts = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in told.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def measured(command: tuple[str, ...], folder: Path) -> tuple[float, float, float]:
    """Seconds, seconds of CPU time (which other work on the machine moves less) and megabytes (10^6 bytes) at most.

    Both of all its processes: of the memory that several have at a time, each counts what it shares with others, too.
    """
    began = time.perf_counter()
    process = os.fork()
    if not process:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), 1)
        out = ("--out", os.fspath(folder.parent / "exported")) if command[0] == "export" else ()
        os.execv(
            sys.executable, [sys.executable, "-m", "gpubench", command[0], str(folder), *command[1:], *out]
        )
    together = 0
    while not (ended := os.wait4(process, os.WNOHANG))[0]:
        together = max(together, sum(map(_resident, [process, *_children(process)])))
        time.sleep(0.05)
    _, status, usage = ended
    if status:
        raise SystemExit(f"gpubench {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    most = max(usage.ru_maxrss * 1024, together)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, most / 1e6


def _children(process: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))
    except OSError:  # it has just ended
        return []


def _resident(process: int) -> int:
    """Bytes of memory that a process has now."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):  # likewise
        return 0


REFERENCE = """
import json, os, sys
for inside, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(inside, name), "rb") as file:
            json.loads(file.read())
"""
"""What no reader of records can do without."""


def parsed(folder: Path) -> float:
    """Seconds of CPU time in which every record is read and parsed, and nothing else."""
    return _cpu_s([sys.executable, "-c", REFERENCE, os.fspath(folder / "records")])


def imported() -> float:
    """Seconds of CPU time of `import gpubench`: the least of nine, less the least of an empty program."""
    programs = ("pass", "import gpubench")
    empty, ours = (min(_cpu_s([sys.executable, "-c", one]) for _ in range(9)) for one in programs)
    return ours - empty


def _cpu_s(command: list[str]) -> float:
    process = os.fork()
    if not process:
        os.execv(command[0], command)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{command[:3]} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", default="1000,10000,100000")
    parser.add_argument("--what", default="table,csv,trials,epochs,xlsx", help=", ".join(COMMANDS))
    parser.add_argument("--seeds", action="store_true", help="twenty trials make a row, in place of one")
    parser.add_argument("--keep", type=Path, help="where the folders are written, and stay for the next run")
    options = parser.parse_args()
    too_much = []
    with tempfile.TemporaryDirectory() as scratch:
        for trials in map(int, options.trials.split(",")):
            folder = (options.keep or Path(scratch)) / f"large-{trials}{'-seeds' * options.seeds}"
            if not folder.exists():
                began = time.perf_counter()
                write(folder, planned(trials, seeds=options.seeds))
                print(f"{trials:>9,} trials written in {time.perf_counter() - began:.1f} s")
            for name in options.what.split(","):
                reference = parsed(folder)
                took, cpu, memory = measured(COMMANDS[name], folder)
                each = 1000 * cpu / trials
                print(
                    f"{trials:>9,} trials  {name:<7} {took:7.1f} s  CPU {cpu:6.1f} s  {memory:7.0f} MB  "
                    f"CPU {each:.3f} s for 1,000, {cpu / reference:.1f} times json.loads ({reference:.1f} s)",
                    flush=True,
                )
                if memory > MOST_MB or (trials >= 100_000 and took > TARGETS_S[name] * trials / 100_000):
                    too_much.append(f"{name} of {trials:,}")
    print(f"import gpubench: CPU {imported():.3f} s")
    print(f"beyond the targets: {', '.join(too_much)}" if too_much else "within the targets")
    sys.exit(bool(too_much))


if __name__ == "__main__":
    main()
