"""What looks on beside gpubench and shares no line with it: nvidia-smi, /proc/stat, and a load of known kind."""

from __future__ import annotations

import contextlib
import csv
import datetime
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

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
