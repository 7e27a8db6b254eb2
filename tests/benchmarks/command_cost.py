"""What watching costs a command of a user's: the same training loop in turn with gpubench at work and at a standstill.

    python tests/benchmarks/command_cost.py [--pairs 40] [--window 2] [--patterns] [--batch-size 128]

Starts `gpubench sweep -- python …` of a plain torch loop, mobilenet_v2 on one GPU, or on the CPU with all its threads.
The loop itself stops all processes of gpubench above it (SIGSTOP) for one window of each pair, so that nobody watches
it then, and lets them go on for the other; the order within pairs alternates. With --patterns it prints two lines at
the end of each window, and what it prints of those that are watched is looked for: an epoch, and a figure. Prints the
median change of a window's time with its 95 % interval, and the CPU time of gpubench's processes as a share of one
core. Bound: 0.5 % of time; exits 1 where it is broken.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from statistics_of_pairs import median_interval

MOST_PCT = 0.5
SETTLE_S = 0.3
"""After each signal: what has been held up is done, and first readings are taken."""
PATTERNS = ("--epoch-pattern", r"Epoch (\d+)", "--metric", r"figure=([\d.]+)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--window", type=float, default=2.0, help="seconds")
    parser.add_argument("--patterns", action="store_true")
    parser.add_argument("--batch-size", type=int, default=None, help="128; on a CPU 16")
    parser.add_argument("--sweep-above", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sweep_above:
        train_in_pairs(options, options.sweep_above)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report")
        looked_for = PATTERNS if options.patterns else ()
        subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "gpubench",
                    "sweep",
                    "--rounds",
                    "1",
                    "--quiet",
                    "--out",
                    f"{folder}/out",
                ),
                *(*looked_for, "--", sys.executable, __file__, *sys.argv[1:], "--sweep-above", str(report)),
            ],
            check=True,
            stdout=sys.stderr,
        )
        print(report.read_text(), end="")
        return int("BROKEN" in report.read_text())


def train_in_pairs(options: argparse.Namespace, report: Path) -> None:
    """The command: trains in pairs of windows, and writes what they took."""
    train, device = make_training(options.batch_size)
    # The leader, its fork server and the sweep are above; what started the sweep stands above them.
    above = [parent for parent in psutil.Process().parents() if "gpubench" in " ".join(parent.cmdline()[1:4])]
    assert above, "no process of gpubench is above: this is not run by a sweep"
    train(10)
    began = time.perf_counter()
    train(5)
    steps = max(2, round(5 * options.window / (time.perf_counter() - began)))
    train(steps)
    changes: list[float] = []
    spent = wall_s = 0.0
    for number in range(options.pairs):
        took: dict[bool, float] = {}
        for is_watched in (True, False) if number % 2 else (False, True):
            signal_all(above, signal.SIGCONT if is_watched else signal.SIGSTOP)
            used = read_cpu_s(above)
            # Lines of windows that nobody watches are read together, later: as epochs they would have no length.
            word = "Epoch" if is_watched else "Pause"
            took[is_watched] = time_window(train, steps, f"{word} {number}" if options.patterns else "")
            if is_watched:
                spent += read_cpu_s(above) - used
                wall_s += took[True]
        changes.append(100 * (took[True] / took[False] - 1))
    signal_all(above, signal.SIGCONT)
    middle, low, high = median_interval(changes)
    report.write_text(
        f"{device}, {len(above)} processes of gpubench, {options.pairs} pairs of windows of {steps} steps, "
        f"{took[False]:.2f} s{', two patterns' if options.patterns else ''}\n"
        "change of each pair, %: " + " ".join(f"{change:+.2f}" for change in changes) + "\n"
        f"time watched against not: median {middle:+.3f} %, 95 % interval {low:+.3f} … {high:+.3f} %\n"
        f"gpubench's CPU time: {100 * spent / wall_s:.2f} % of one core\n"
        f"bound: {MOST_PCT:g} % of time: {'kept' if middle <= MOST_PCT else 'BROKEN'}\n"
    )


def time_window(train: Callable[[int], None], steps: int, line: str) -> float:
    """Seconds of so many steps. `line`: printed behind them, with a figure; empty: nothing is printed."""
    began = time.perf_counter()
    train(steps)
    if line:
        print(f"{line}\nfigure=0.5", flush=True)
    return time.perf_counter() - began


def signal_all(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        os.kill(process.pid, number)
    time.sleep(SETTLE_S)


def read_cpu_s(processes: list[psutil.Process]) -> float:
    """User and system time of all."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def make_training(batch_size: int | None) -> tuple[Callable[[int], None], str]:
    """A function that trains so many steps, and the device's name."""
    import torch
    import torch.nn.functional as F
    import torchvision

    is_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if is_cuda else "cpu")
    batch_size, side = batch_size or (128 if is_cuda else 16), 224 if is_cuda else 64
    model = torchvision.models.mobilenet_v2(num_classes=16).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(batch_size, 3, side, side, device=device)
    labels = torch.randint(16, (batch_size,), device=device)

    def train(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
        if is_cuda:
            torch.cuda.synchronize()

    name = torch.cuda.get_device_name() if is_cuda else f"CPU, {torch.get_num_threads()} threads"
    return train, f"mobilenet_v2, {side} px, batch {batch_size}, {name}"


if __name__ == "__main__":
    sys.exit(main())
