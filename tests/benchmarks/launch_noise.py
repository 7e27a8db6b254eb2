"""What makes processes of one launch-bound configuration differ, and what takes it away: knobs, in interleaved rounds.

    python tests/benchmarks/launch_noise.py [--knobs plain,one-cpu,…] [--rounds 5] [--model resnet18] [--batch-size 8]

Each round starts one process for every knob, in random order. A process trains a resident batch and times windows of
steps. Printed for each knob: its rate, how far its processes differ (coefficient of variation), how far the windows of
one process differ, and the ratio of its step time to that of `plain` with its 95 % interval over processes. A knob
earns its place where processes differ by less under it, or where they are faster for certain.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpubench.stats.estimates import compare_rounds, find_half_width


def _nothing() -> None:
    pass


def _one_cpu() -> None:
    """The launching thread alone on the CPU where it is now."""
    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})


def _last_cpu() -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _half_of_the_cpus() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cpus[: max(1, len(cpus) // 2)])


def _no_collector() -> None:
    gc.disable()
    gc.freeze()


def _busy_processes() -> list[subprocess.Popen[bytes]]:
    """One for every second CPU, which never sleeps and makes way for whoever else wants the CPU."""
    idle = ["nice", "-n", "19", sys.executable, "-c", "while True: pass"]
    return [subprocess.Popen(idle) for _ in range(max(1, len(os.sched_getaffinity(0)) // 2))]


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def _others_awake() -> None:
    """CPUs of a virtual machine that sleep are given away, and must be woken for each thread that goes on there."""
    atexit.register(_end, _busy_processes())


def _others_were_busy() -> None:
    """As they are just after other work has ended."""
    busy = _busy_processes()
    time.sleep(4.0)
    _end(busy)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Knob:
    """What one kind of process does otherwise."""

    early: Callable[[], None] = _nothing
    """Before CUDA starts."""
    late: Callable[[], None] = _nothing
    """Before the steps that are timed."""
    environment: tuple[tuple[str, str], ...] = ()
    started_by: tuple[str, ...] = ()
    """A command that starts it."""


KNOBS: dict[str, Knob] = {
    "plain": Knob(),
    "one-cpu": Knob(late=_one_cpu),
    "one-cpu-early": Knob(early=_one_cpu),
    "last-cpu": Knob(late=_last_cpu),
    "half-of-the-cpus": Knob(early=_half_of_the_cpus),
    "no-collector": Knob(late=_no_collector),
    "one-thread": Knob(early=_one_thread),
    "one-arena": Knob(environment=(("MALLOC_ARENA_MAX", "1"),)),
    "python-malloc": Knob(environment=(("PYTHONMALLOC", "malloc"),)),
    "huge-pages": Knob(environment=(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"),)),
    "others-awake": Knob(late=_others_awake),
    "others-were-busy": Knob(late=_others_were_busy),
    "same-addresses": Knob(started_by=("setarch", "-R")),
}
"""`same-addresses`: code and heap lie at the same places in each process."""


def train(knob: Knob, model_name: str, batch: int, windows: int, window_s: float) -> dict[str, object]:
    """One process: mean step time, in ms, of each window, and on which CPUs the launching thread was seen."""
    knob.early()
    import torch
    import torch.nn.functional as F
    import torchvision

    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    wait = torch.cuda.synchronize if cuda else _nothing
    model = torchvision.models.get_model(model_name, num_classes=16).to(
        device, memory_format=torch.channels_last
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    side = 224 if cuda else 64
    images = torch.randn(batch, 3, side, side, device=device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(16, (batch,), device=device)

    def steps(seconds: float) -> float:
        wait()
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            for _ in range(5):
                optimizer.zero_grad(set_to_none=True)
                with torch.autocast(device.type, dtype=torch.bfloat16):
                    loss = F.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
            wait()
            count += 5
        return 1e3 * (time.perf_counter() - began) / count

    steps(1.0)
    knob.late()
    steps(0.5)
    times, cpus = [], []
    for _ in range(windows):
        times.append(steps(window_s))
        with contextlib.suppress(OSError):
            cpus.append(int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[36]))
    return {"step_ms": times, "cpus": cpus}


def started(name: str, options: argparse.Namespace) -> dict[str, list[float]]:
    """A process under this knob, and what it printed."""
    own = [sys.executable, __file__, "--one", name, "--model", options.model]
    own += ["--batch-size", str(options.batch_size), "--windows", str(options.windows)]
    own += ["--window-s", str(options.window_s)]
    done = subprocess.run(
        [*KNOBS[name].started_by, *own],
        env=os.environ | dict(KNOBS[name].environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--knobs", default=",".join(KNOBS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--window-s", type=float, default=0.5)
    parser.add_argument(
        "--budget-s", type=float, default=900.0, help="no round begins that would end after it"
    )
    parser.add_argument("--one", choices=KNOBS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = train(
            KNOBS[options.one], options.model, options.batch_size, options.windows, options.window_s
        )
        print(json.dumps(found))
        return
    names = list(dict.fromkeys(["plain", *options.knobs.split(",")]))
    means: dict[str, list[float]] = {name: [] for name in names}
    inside: dict[str, list[float]] = {name: [] for name in names}
    chance = random.Random(0)
    began, round_s, number = time.monotonic(), 0.0, 0
    while number < options.rounds and time.monotonic() + round_s < began + options.budget_s:
        round_began = time.monotonic()
        number += 1
        for name in chance.sample(names, len(names)):
            found = started(name, options)
            times = found["step_ms"]
            means[name].append(statistics.fmean(times))
            inside[name].append(100 * statistics.stdev(times) / statistics.fmean(times))
            print(
                f"round {number} {name}: {statistics.fmean(times):.3f} ms a step, CPUs {found['cpus']}",
                flush=True,
            )
        round_s = time.monotonic() - round_began
    print(f"{options.model}, batch size {options.batch_size}, {number} processes of each")
    if number < 2:
        sys.exit("one round tells nothing of how far processes differ: give a longer --budget-s")
    for name in names:
        spread = 100 * statistics.stdev(means[name]) / statistics.fmean(means[name])
        line = f"{name}: {statistics.geometric_mean(means[name]):.3f} ms a step, processes differ by {spread:.1f} %"
        line += f", windows inside by {statistics.median(inside[name]):.1f} %"
        if name != "plain":
            against = compare_rounds(*(dict(enumerate(means[each])) for each in (name, "plain"))).welch
            assert against is not None, "two processes of each, and more"
            half = find_half_width(against, 0.025)
            center, low, high = (math.exp(against.center + by) for by in (0, -half, half))
            line += f"; time over plain {center:.3f} ({low:.3f} … {high:.3f})"
        print(line)


if __name__ == "__main__":
    main()
