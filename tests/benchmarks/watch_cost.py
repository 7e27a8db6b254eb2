"""What watching costs the training, and the watcher: the same training in turn with gpubench's watcher and without.

    python tests/benchmarks/watch_cost.py [--gpus 1|4] [--pairs 20] [--window 2] [--workers 16] [--device cuda|cpu]

Both windows of a pair run gpubench's own loop in the same processes (a rank for each GPU, in DDP from two on); only in
one of them does the parent run gpubench's watcher at its default rates, as a sweep does. The order within pairs
alternates. The watched tree holds idle processes besides, as many as a sweep has loader workers (16 a GPU unless
told otherwise). Prints the median change of a window's time (that of its slowest rank) with its 95 % interval, and
the watcher's own CPU time as a share of one core. Bounds: 0.5 % and 2 %; exits 1 where one is broken.

The watcher's clock stands still while it is off, so that it does in its windows just what it does in a trial whose
window is as long as they. With --device cpu, --gpus counts ranks.
"""

from __future__ import annotations

import argparse
import os
import resource
import select
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statistics_of_pairs import median_interval

from gpubench.basics import linux
from gpubench.node import environment
from gpubench.node.launch.channel import Channel, make_socket_pair
from gpubench.node.watch import host
from gpubench.node.watch.nvml import Nvml, open_nvml
from gpubench.node.watch.nvml_calls import CALLS
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.missing import Unmeasured

MOST_PCT = 0.5
MOST_CORE_PCT = 2.0
ANSWER_S = 300.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--window", type=float, default=2.0, help="seconds")
    parser.add_argument("--workers", type=int, default=None, help="idle processes in the watched tree")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--model", default=None, help="mobilenet_v2; on a CPU lenet")
    parser.add_argument("--batch-per-gpu", type=int, default=128)
    options = parser.parse_args()
    options.model = options.model or ("mobilenet_v2" if options.device == "cuda" else "lenet")
    options.size = 224 if options.device == "cuda" else 32
    options.workers = 16 * options.gpus if options.workers is None else options.workers
    with tempfile.TemporaryDirectory() as folder:
        return measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> int:
    leader, channels = start(options, folder)  # before NVML is opened: it doesn't survive a fork
    nvml = open_nvml()
    here = environment.make_machine(nvml)
    cuda = options.device == "cuda"
    if cuda and len(here.gpus) < options.gpus:
        sys.exit(f"{options.gpus} GPUs are asked for, this machine shows {len(here.gpus)}")
    uuids = [gpu.uuid for gpu in here.gpus[: options.gpus]] if cuda else []
    print(
        f"{options.model}, {options.size} px, {options.gpus} {'GPUs' if cuda else 'CPU ranks'}, "
        f"{options.batch_per_gpu} images each, {options.workers} idle processes, {options.pairs} pairs of windows "
        f"of {options.window:g} s\n{here.gpus[0].name if here.gpus else here.cpu_name}, driver {here.driver}, "
        f"{here.cpu_count} CPUs",
        flush=True,
    )
    ranks = Ranks(channels)
    ranks.run(12)  # kernels are compiled
    steps = max(4, round(options.window / ranks.run(10) * 10))
    ranks.run(steps)  # clocks and power settle
    clock = Stopped()
    watcher = Watcher(nvml, here, uuids, here.cpu_ids, clock)
    watcher.sample_before_trial()
    watcher.attach_to_trial(leader)
    changes: list[float] = []
    cpu_s = wall_s = 0.0
    for number in range(options.pairs):
        took: dict[bool, float] = {}
        for on in (True, False) if number % 2 == 0 else (False, True):
            if not on:
                took[on] = ranks.run(steps)
                continue
            clock.go()
            spent, began = cpu_seconds(), time.monotonic()
            took[on] = ranks.run(steps, watcher, clock)
            cpu_s += cpu_seconds() - spent
            wall_s += time.monotonic() - began
            clock.stop()
        changes.append(100 * (took[True] / took[False] - 1))
    ranks.stop()
    split = costs(nvml, uuids, leader, here.cpu_ids)
    os.kill(leader, 9)
    os.waitpid(leader, 0)
    middle, low, high = median_interval(changes)
    core = 100 * cpu_s / wall_s
    print(f"{steps} steps a window, off {took[False]:.3f} s, on {took[True]:.3f} s in the last pair")
    print("change of each pair, %: " + " ".join(f"{change:+.2f}" for change in changes))
    print(
        f"time with the watcher against without: median {middle:+.3f} %, 95 % interval {low:+.3f} … {high:+.3f} %"
    )
    print(f"the watcher's own CPU: {core:.2f} % of one core ({cpu_s:.3f} s in {wall_s:.1f} s)")
    print("CPU of one reading, µs: " + ", ".join(f"{name} {text}" for name, text in split.items()))
    good = middle <= MOST_PCT and core <= MOST_CORE_PCT
    print(f"bounds: {MOST_PCT:g} % of time, {MOST_CORE_PCT:g} % of one core: {'kept' if good else 'BROKEN'}")
    return 0 if good else 1


def cpu_seconds() -> float:
    """User and system time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Stopped:
    """A monotonic clock that runs between `go` and `stop`; it begins at a standstill."""

    def __init__(self) -> None:
        self._shown = self._at = time.monotonic()
        self._runs = False

    def __call__(self) -> float:
        return self._shown + (time.monotonic() - self._at if self._runs else 0.0)

    def go(self) -> None:
        self._at, self._runs = time.monotonic(), True

    def stop(self) -> None:
        self._shown, self._runs = self(), False


@dataclass(frozen=True, slots=True)
class Ranks:
    """The parent's side of the training processes."""

    channels: list[Channel]

    def run(
        self,
        steps: int,
        watcher: Watcher | None = None,
        clock: Callable[[], float] | None = None,
        **more: Any,
    ) -> float:
        """One window of all ranks: seconds of the slowest. `watcher`: looks on, as in `launch/attempt.py`."""
        for channel in self.channels:
            channel.send({"steps": steps, **more})
        seconds: dict[int, float] = {}
        deadline = time.monotonic() + ANSWER_S
        while len(seconds) < len(self.channels):
            if watcher and clock:
                watcher.sample_due()
                wait = watcher.next_deadline() - clock()
            else:
                wait = deadline - time.monotonic()
            readable, _, _ = select.select(self.channels, [], [], max(0.0, wait))
            for channel in readable:
                received = channel.receive()
                assert received is not None
                event, rank = received, self.channels.index(channel)
                if event.get("event") in ("begin", "end") and rank == 0 and watcher:
                    watcher.sample_counters_at_edge()
                if "took_s" in event:  # an answer; a window that begins tells "seconds", too
                    seconds[rank] = event["took_s"]
            if time.monotonic() > deadline:
                sys.exit(f"the ranks said nothing for {ANSWER_S:g} s")
        return max(seconds.values())

    def stop(self) -> None:
        for channel in self.channels:
            channel.send({"steps": 0})


def costs(nvml: Nvml, uuids: list[str], leader: int, cpu_ids: tuple[int, ...]) -> dict[str, str]:
    """CPU time of each kind of reading, once, by name."""
    tree = host.ProcessTree(leader)
    reads: dict[str, Callable[[], Any]] = {
        "tree": tree.read_cpu_s,
        "/proc/stat": lambda: host.read_cpu_time(cpu_ids),
    }
    if uuids:
        one = uuids[0]
        reads |= {call.name: lambda call=call: nvml.ask(call, one) for call in CALLS.values()}
        reads["history of utilisation, 10 s"] = lambda: nvml.read_driver_samples(
            one, "gpu_util_pct", time.time() - 10
        )
        reads["history of power, 1.5 s"] = lambda: nvml.read_driver_samples(one, "power_w", time.time() - 1.5)
    told = {}
    for name, read in reads.items():
        spent: list[float] = []
        try:
            for _ in range(20):
                began = time.process_time()
                read()
                spent.append(time.process_time() - began)
        except Unmeasured as reason:
            told[name] = f"none ({reason})"
            continue
        told[name] = f"{1e6 * statistics.mean(spent):.0f}"
    return told


# ---------------------------------------------------------------- the watched tree


def start(options: argparse.Namespace, folder: Path) -> tuple[int, list[Channel]]:
    """Forks a leader, it the ranks, and each of them its share of idle processes. The leader's pid, and channels."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    pairs = [make_socket_pair() for _ in range(options.gpus)]
    parent = os.getpid()
    leader = os.fork()
    if leader:
        for _, theirs in pairs:
            theirs.close()
        return leader, [Channel(ours) for ours, _ in pairs]
    linux.die_with_parent(parent)
    me = os.getpid()
    for rank in range(options.gpus):
        if os.fork() == 0:
            linux.die_with_parent(me)
            for place, (ours, theirs) in enumerate(pairs):
                ours.close()
                if place != rank:
                    theirs.close()
            run_rank(options, folder, rank, pairs[rank][1])
            os._exit(0)
    while True:
        time.sleep(3600)


def run_rank(options: argparse.Namespace, folder: Path, rank: int, sock: socket.socket) -> None:
    """Trains so many steps as it is told to, again and again."""
    me = os.getpid()
    share = options.workers // options.gpus + (rank < options.workers % options.gpus)
    for _ in range(share):
        if os.fork() == 0:
            linux.die_with_parent(me)
            time.sleep(3600)
            os._exit(0)
    channel = Channel(sock)
    try:
        window = training(options, folder, rank, channel)
        while (received := channel.receive()) and (steps := received["steps"]):
            channel.send({"took_s": window(steps)})
    except ConnectionError:
        return  # the parent is gone
    time.sleep(3600)  # the tree is measured once more, whole


def training(
    options: argparse.Namespace, folder: Path, rank: int, channel: Channel
) -> Callable[[int], float]:
    """gpubench's own loop, as a rank of a trial runs it: its step, its clock, its data, its events."""
    import torch

    from gpubench.schema.order import DataSpec
    from gpubench.train import models, step
    from gpubench.train.data import LoaderSettings, open_data
    from gpubench.train.device_assignment import DeviceAssignment
    from gpubench.train.loop import Segment, TrainingLoop
    from gpubench.train.strategies.contract import Strategy
    from gpubench.train.strategies.ddp import DistributedDataParallel
    from gpubench.train.timing import make_step_clock

    cuda = options.device == "cuda"
    precision = "bf16" if cuda else "fp32"
    step.set_tf32_mode(precision)
    torch.set_num_threads(1)
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    assignment = DeviceAssignment(
        rank=rank, world=options.gpus, devices=(device,), rendezvous=folder / "rendezvous"
    )
    strategy = DistributedDataParallel(assignment) if options.gpus > 1 else Strategy(assignment)
    strategy.connect_ranks()
    model = models.build_model(options.model, num_classes=16, input_size=options.size)
    trained = strategy.prepare_model(model.train(), torch.channels_last, lambda module: module)
    optimizer = step.make_optimizer("sgd", 0.05, model, graph=False)
    training_step = step.TrainStep(trained, optimizer, strategy, precision=precision)
    data = open_data(
        DataSpec(kind="none", input_size=options.size, num_classes=16, train_images=10**9),
        LoaderSettings(
            batch_size=options.batch_per_gpu,
            val_batch_size=options.batch_per_gpu,
            rank=rank,
            world=options.gpus,
            workers=0,
            prefetch=2,
            seed=0,
        ),
        device=device,
        memory_format=torch.channels_last,
    )
    loop = TrainingLoop(
        data, training_step, strategy, make_step_clock(assignment), channel.send, lambda: None
    )
    stream = data.iterate_stream()

    def window(steps: int) -> float:
        segment = Segment(number=0, steps=steps, measured=True, seconds=options.window)
        return loop.train_segment(segment, stream).seconds

    return window


if __name__ == "__main__":
    sys.exit(main())
