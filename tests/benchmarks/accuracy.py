"""gpubench's figures beside independent ones of the same run: memory, power, energy, CPU, time.

    python tests/benchmarks/accuracy.py [--seconds 60] [--model resnet50] [--batch-size 256] [--device cuda|cpu]

Runs real sweeps (one trial, bf16, resident batch, so that the load is steady) and beside them `nvidia-smi` as a poller
of its own, a reader of /proc/stat of its own, and a stopwatch around the whole command. Prints a line a figure and
exits 1 where one is out of its bound: memory 1 %, power and energy 3 %, CPU 2 points, time 1 %.

nvidia-smi reads the same sensors as gpubench does: for memory, power and energy this checks gpubench's bookkeeping
(whose processes, which windows, which unit), not the sensors.

The stopwatch takes two whole commands that differ in their number of epochs alone, the shorter one twice; what they
take beside their epochs cancels out, and half of what the shorter ones differ by there is the stopwatch's own doubt.
`--device cpu` leaves the GPU's lines out. CPU time of a process tree: tests/node/watch/test_known_load.py.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import datetime
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpubench.node import environment
from gpubench.schema.codes import decode_record

SHORT, LONG = 2, 17
"""Epochs of the two commands; the first one of each warms up."""
PAUSE_S = 5.0
"""Between two commands: clocks and the driver's averages settle."""
SAME_SENSOR = "nvidia-smi (same sensor: a check of bookkeeping)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One figure, ours and theirs."""

    figure: str
    ours: float | None
    theirs: float | None
    bound: float
    points: bool = False
    """The difference is meant in points, not relative."""
    by: str = ""
    """Whose figure it is compared with."""

    @property
    def difference(self) -> float | None:
        if self.ours is None or not self.theirs:
            return None
        return self.ours - self.theirs if self.points else 100 * (self.ours / self.theirs - 1)

    @property
    def within(self) -> bool:
        return self.difference is not None and abs(self.difference) <= self.bound

    def text(self) -> str:
        unit = "points" if self.points else "%"
        cells = [
            self.figure,
            *("none" if v is None else f"{v:,.3f}" for v in (self.ours, self.theirs)),
            "none" if self.difference is None else f"{self.difference:+.2f} {unit}",
            f"{self.bound:g} {unit}",
            "yes" if self.within else "NO",
            self.by,
        ]
        return " | ".join(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--model", default=None, help="resnet50; on a CPU lenet")
    parser.add_argument("--batch-size", type=int, default=None, help="256; on a CPU 64")
    parser.add_argument("--seconds", type=float, default=60.0, help="of measured windows, all together")
    parser.add_argument("--busy", type=int, default=None, help="processes that load the host meanwhile")
    options = parser.parse_args()
    options.model = options.model or ("resnet50" if options.device == "cuda" else "lenet")
    options.batch_size = options.batch_size or (256 if options.device == "cuda" else 64)
    if options.busy is None:
        options.busy = min(4, len(os.sched_getaffinity(0)) // 4)
    if options.device == "cuda" and not shutil.which("nvidia-smi"):
        sys.exit("there is no nvidia-smi here to compare with; --device cpu leaves the GPU's lines out")
    tell_machine(options)
    with tempfile.TemporaryDirectory() as folder:
        lines = sweep_lines(options, Path(folder))
    print("\nfigure | gpubench | outside | difference | bound | within | by")
    for line in lines:
        print(line.text())
    return 0 if all(line.within for line in lines) else 1


def tell_machine(options: argparse.Namespace) -> None:
    facts = environment.collect_environment_facts(environment.make_machine(None))
    print(
        f"{datetime.datetime.now():%Y-%m-%d %H:%M}, Linux {platform.release()}, Python {platform.python_version()}"
    )
    print(", ".join(f"{name} {facts[name]}" for name in ("gpubench", "torch", "torchvision")))
    print(
        f"{environment.read_cpu_name()}, {len(os.sched_getaffinity(0))} CPUs, {options.busy} of them "
        "loaded by busy loops"
    )
    if options.device == "cuda":
        fields = "--query-gpu=index,name,memory.total,driver_version"
        print(subprocess.check_output(["nvidia-smi", fields, "--format=csv,noheader"], text=True).strip())


# ---------------------------------------------------------------- the sweeps


def sweep_lines(options: argparse.Namespace, folder: Path) -> list[Line]:
    """Everything that is read beside real sweeps."""
    rate = sweep(options, folder / "rate", "--steps", "30")[1]["result"]["images_per_s"]
    per_epoch = options.seconds / (LONG - 1) * rate
    images = max(1, round(per_epoch / options.batch_size)) * options.batch_size
    size = ("--set", f"train_images={images}")
    already = processes_now() if options.device == "cuda" else set()
    with contextlib.ExitStack() as beside:
        beside.enter_context(busy_loops(options.busy))
        smi = [] if options.device == "cpu" else [beside.enter_context(poller(folder, *p)) for p in POLLERS]
        host = beside.enter_context(ProcStat())
        short = [sweep(options, folder / "short-1", *size, "--epochs", str(SHORT))]
        took, record = sweep(options, folder / "long", *size, "--epochs", str(LONG), tell=True)
        short.append(sweep(options, folder / "short-2", *size, "--epochs", str(SHORT)))
    result = record["result"]
    measured = measured_windows(record)
    length = sum(t1 - t0 for t0, t1 in measured)
    print(f"{len(measured)} measured windows, {length:.1f} s; sources: {sources(record)}")
    lines = [] if options.device == "cpu" else gpu_lines(record, measured, smi, already)
    lines.append(
        Line(
            figure="cpu_util_pct",
            ours=result["cpu_util_pct"],
            theirs=host.busy_pct(measured),
            bound=2.0,
            points=True,
            by="/proc/stat, read at 4 Hz by this script",
        )
    )
    # What a command takes beside its epochs is the same for both lengths; the epochs themselves are not, on a machine
    # with other work: so every epoch counts, the first ones too.
    beside_s = [seconds - trained_s(told) for seconds, told in short]
    ours = trained_s(record) - sum(trained_s(told) for _, told in short) / 2
    theirs = took - sum(seconds for seconds, _ in short) / 2
    print(f"stopwatch: {short[0][0]:.3f} s, {took:.3f} s, {short[1][0]:.3f} s")
    doubt = 100 * abs(beside_s[0] - beside_s[1]) / 2 / ours
    lines.append(
        Line(
            figure=f"{LONG - SHORT} epochs, s",
            ours=ours,
            theirs=theirs,
            bound=1.0,
            by=f"stopwatch around whole commands, itself within {doubt:.2f} %",
        )
    )
    return lines


def trained_s(record: dict[str, Any]) -> float:
    """Seconds of all epochs, the first one included."""
    return float(sum(epoch["epoch_time_s"] for epoch in record["epochs"]))


def sweep(
    options: argparse.Namespace, out: Path, *more: str, tell: bool = False
) -> tuple[float, dict[str, Any]]:
    """One sweep of one trial: seconds of the whole command, and the record that it left."""
    size, classes, precision = ("224", "16", "bf16") if options.device == "cuda" else ("28", "10", "fp32")
    command = [
        *(sys.executable, "-m", "gpubench", "sweep", "--quiet", "--device", options.device),
        *("--model", options.model, "--batch-size", str(options.batch_size), "--precision", precision),
        *("--variant", "synthetic", "--set", f"input_size={size}", "--set", f"num_classes={classes}"),
        *("--workers", "0", "--rounds", "1", "--out", str(out), *more),
    ]
    if tell:
        print("$", shlex.join(["gpubench", *command[3:]]))
    time.sleep(PAUSE_S)
    began = time.monotonic()
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    if done.returncode not in (0, 1):  # 1: the record says what went wrong
        sys.exit(f"the sweep ended with exit code {done.returncode}")
    (path,) = out.glob("records/*/*.json")
    record = decode_record(json.loads(path.read_text()))
    if record["status"] != "ok":
        sys.exit(f"the trial ended as {record['status']}: {record['reason']}")
    return seconds, record


def measured_windows(record: dict[str, Any]) -> list[tuple[float, float]]:
    warmup = {epoch["epoch"] for epoch in record["epochs"] if epoch["warmup"]}
    return [(w["t0"], w["t1"]) for w in record["windows"] if w["epoch"] not in warmup]


def sources(record: dict[str, Any]) -> str:
    r = record["result"]
    named = {name: r[name] for name in ("gpu_mem_source", "energy_source") if r.get(name)}
    named |= {
        name: record["provenance"][name]["source"]
        for name in ("power_w", "cpu_util_pct")
        if name in record["provenance"]
    }
    return "; ".join(f"{name}: {source}" for name, source in named.items())


# ---------------------------------------------------------------- the GPU's lines


def gpu_lines(
    record: dict[str, Any], measured: Sequence[tuple[float, float]], smi: Sequence[Path], already: set[int]
) -> list[Line]:
    result, (uuid,) = record["result"], record["resolved"]["gpu_uuids"]
    launched, finished = record["span"]["launched"], record["span"]["finished"]
    apps = [(t, cells) for t, cells in polled(smi[0]) if launched <= t <= finished and cells[0] == uuid]
    gpus = [(t, cells) for t, cells in polled(smi[1]) if len(cells) == 4 and cells[0] == uuid]
    lines = [memory_line(result, apps, gpus, already, (launched, finished))]
    epochs = len(measured)
    length = sum(t1 - t0 for t0, t1 in measured)
    for column, name in ((1, "power.draw.instant"), (2, "power.draw.average")):
        watts = [(t, w) for t, cells in gpus if (w := number(cells[column])) is not None]
        if not watts:
            print(f"nvidia-smi tells no {name} here")
            continue
        joules = integral(watts, measured)
        inside = sum(t0 <= t <= t1 for t, _ in watts for t0, t1 in measured)
        by = f"{name}, {inside} polls, {SAME_SENSOR}"
        lines.append(
            Line(figure="energy_j", ours=result.get("energy_j"), theirs=joules / epochs, bound=3.0, by=by)
        )
        if name == "power.draw.instant":
            sampled = result.get("energy_sampled_j")
            lines += [
                Line(figure="energy_sampled_j", ours=sampled, theirs=joules / epochs, bound=3.0, by=by),
                Line(figure="power_w", ours=result.get("power_w"), theirs=joules / length, bound=3.0, by=by),
            ]
    if len(lines) == 1:
        lines.append(
            Line(figure="energy_j", ours=result.get("energy_j"), theirs=None, bound=3.0, by=SAME_SENSOR)
        )
    return lines


def memory_line(
    result: dict[str, Any],
    apps: Sequence[tuple[float, list[str]]],
    gpus: Sequence[tuple[float, list[str]]],
    already: set[int],
    span: tuple[float, float],
) -> Line:
    """The trial's own process where nvidia-smi lists one, else the growth of the device's memory."""
    own = [(int(cells[1]), number(cells[2])) for _, cells in apps if int(cells[1]) not in already]
    told = [mib for _, mib in own if mib is not None]
    if told:
        pids = {pid for pid, _ in own}
        theirs, by = max(told), f"{SAME_SENSOR}, {len(told)} polls of {len(pids)} process(es)"
    else:
        before = [m for t, cells in gpus if t < span[0] and (m := number(cells[3])) is not None]
        during = [m for t, cells in gpus if span[0] <= t <= span[1] and (m := number(cells[3])) is not None]
        theirs = max(during) - before[-1] if before and during else None
        by = f"{SAME_SENSOR}, growth of the device's memory: it lists no process here"
    return Line(figure="gpu_mem_mib", ours=result.get("gpu_mem_mib"), theirs=theirs, bound=1.0, by=by)


# ---------------------------------------------------------------- nvidia-smi, polling by itself

POLLERS = (
    ("processes", "--query-compute-apps=timestamp,gpu_uuid,pid,used_memory", "500"),
    ("gpus", "--query-gpu=timestamp,uuid,power.draw.instant,power.draw.average,memory.used", "100"),
)
FORMAT = "--format=csv,noheader,nounits"


@contextlib.contextmanager
def poller(folder: Path, name: str, query: str, period_ms: str) -> Iterator[Path]:
    """nvidia-smi, writing what it sees into a file."""
    path = folder / f"{name}.csv"
    command = ["nvidia-smi", query, FORMAT, "-lms", period_ms]
    if shutil.which("stdbuf"):
        command = ["stdbuf", "-oL", *command]
    print("beside it:", shlex.join(command))
    with path.open("w") as file:
        running = subprocess.Popen(command, stdout=file)
        time.sleep(1.0)
        if running.poll() is not None:
            sys.exit(f"nvidia-smi ended at once: {path.read_text().strip()}")
        try:
            yield path
        finally:
            running.terminate()
            running.wait()


def processes_now() -> set[int]:
    """Pids that hold GPU memory before anything of ours runs."""
    query = ["nvidia-smi", "--query-compute-apps=pid", FORMAT]
    return {int(pid) for pid in subprocess.check_output(query, text=True).split() if pid.isdigit()}


def polled(path: Path) -> list[tuple[float, list[str]]]:
    """Its rows, each with its time on the host's monotonic clock, oldest first; a half-written last one is dropped."""
    ahead = time.time() - time.monotonic()
    rows = []
    for cells in csv.reader(path.read_text().splitlines(), skipinitialspace=True):
        try:
            at = datetime.datetime.strptime(cells[0], "%Y/%m/%d %H:%M:%S.%f").timestamp() - ahead
        except (ValueError, IndexError):
            continue
        rows.append((at, cells[1:]))
    return sorted(rows, key=lambda row: row[0])


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:  # [N/A], [Not Supported]
        return None


def integral(samples: Sequence[tuple[float, float]], windows: Sequence[tuple[float, float]]) -> float:
    """Value × seconds over the windows, by trapezoids, on lines between the samples."""
    times, values = np.array(samples).T
    total = 0.0
    for t0, t1 in windows:
        at = np.concatenate([[t0], times[(times > t0) & (times < t1)], [t1]])
        held = np.interp(at, times, values)
        total += float(np.sum((held[1:] + held[:-1]) / 2 * np.diff(at)))
    return total


# ---------------------------------------------------------------- /proc/stat


class ProcStat:
    """Busy and usable time of the CPUs that this process may use, read at 4 Hz by a thread."""

    def __init__(self) -> None:
        self._cpus = {f"cpu{i}" for i in os.sched_getaffinity(0)}
        self._rows: list[tuple[float, float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> ProcStat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.is_set():
            busy = idle = 0
            for line in Path("/proc/stat").read_text().splitlines():
                name, *rest = line.split()
                if name in self._cpus:
                    user, nice, system, idling, iowait, irq, softirq = map(int, rest[:7])
                    busy += user + nice + system + irq + softirq
                    idle += idling + iowait
            self._rows.append((time.monotonic(), busy, busy + idle))
            self._over.wait(0.25)

    def busy_pct(self, windows: Sequence[tuple[float, float]]) -> float:
        times, busy, usable = np.array(self._rows).T
        worked, had = (
            sum(float(np.interp(t1, times, total) - np.interp(t0, times, total)) for t0, t1 in windows)
            for total in (busy, usable)
        )
        return 100 * worked / had


# ---------------------------------------------------------------- a load


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that do nothing as fast as they can, so that the host's CPU share is worth comparing."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    sys.exit(main())
