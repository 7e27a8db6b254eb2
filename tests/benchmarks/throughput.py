"""Throughput inside gpubench against a bare loop: same model, batch, precision, layout, resident batch, machine.

    python tests/benchmarks/throughput.py [--batch-sizes 32,128,512] [--pairs 20] [--device cuda]

Prints, for each batch size, the median ratio gpubench / bare of images/s over alternating pairs, with its 95 %
interval. Target: at least 0.99.

One child process holds two models of the same kind, each with an optimizer and a resident batch of its own, and
trains them in turn: a window of the bare loop, a window of gpubench's loop, and so on. So both meet the same clocks,
the same process and the same memory. In gpubench's windows the parent runs gpubench's watcher at its default rates,
as a sweep does, and answers its events; in bare windows it sleeps.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from statistics_of_pairs import median_interval
from watch_cost import Ranks, training

from gpubench.node import environment
from gpubench.node.launch.channel import Channel, make_socket_pair
from gpubench.node.watch.nvml import open_nvml
from gpubench.node.watch.watcher import Watcher

WINDOW_S = 0.5
"""About as long as each window is made."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-sizes", default="32,128,512")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args(namespace=argparse.Namespace(gpus=1, window=WINDOW_S))
    precision = "bf16" if options.device == "cuda" else "fp32"
    print(
        f"{options.model}, {options.size} px, {precision}, channels-last, resident batch, {options.pairs} pairs"
    )
    print(f"{'batch':>5}  {'steps':>5}  {'bare images/s':>13}  {'gpubench/bare':>13}  95 % interval")
    for batch in (int(text) for text in options.batch_sizes.split(",")):
        options.batch_per_gpu = batch
        steps, seconds = measure(options)
        middle, low, high = median_interval([bare / inside for bare, inside in seconds])
        rate = steps * batch / median_interval([bare for bare, _ in seconds])[0]
        print(f"{batch:>5}  {steps:>5}  {rate:>13,.0f}  {middle:>13.4f}  {low:.4f} … {high:.4f}", flush=True)


def measure(options: argparse.Namespace) -> tuple[int, list[tuple[float, float]]]:
    """Steps of a window, and (bare, gpubench) seconds of each pair."""
    ours, theirs = make_socket_pair()
    pid = os.fork()  # before NVML: it doesn't survive a fork
    if pid == 0:
        ours.close()
        train_in_turn(Channel(theirs), options)
        os._exit(0)
    theirs.close()
    rank = Ranks([Channel(ours)])
    nvml = open_nvml()
    machine = environment.make_machine(nvml)
    uuids = [machine.gpus[0].uuid] if options.device == "cuda" else []
    rank.run(12, bare=True)
    rank.run(12, bare=False)
    steps = max(10, round(WINDOW_S / rank.run(10, bare=True) * 10))
    pairs = []
    for _ in range(options.pairs):
        bare = rank.run(steps, bare=True)
        watcher = Watcher(nvml, machine, uuids, machine.cpu_ids)
        watcher.sample_before_trial()
        watcher.attach_to_trial(pid)
        pairs.append((bare, rank.run(steps, watcher, time.monotonic, bare=False)))
    rank.stop()
    os.waitpid(pid, 0)
    return steps, pairs


def train_in_turn(channel: Channel, options: argparse.Namespace) -> None:
    """The child: a window by the loop that is asked for, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        inside = training(options, Path(folder), 0, channel)
        bare = bare_loop(options)
        while (asked := channel.receive()) and (steps := asked["steps"]):
            channel.send({"took_s": bare(steps) if asked["bare"] else inside(steps)})


def bare_loop(options: argparse.Namespace) -> Callable[[int], float]:
    """What one writes by hand, timed from synchronisation to synchronisation: seconds of so many steps."""
    import torch
    import torch.nn.functional as F
    import torchvision

    device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
    model = torchvision.models.get_model(options.model, num_classes=16).to(device)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images = torch.randn(options.batch_per_gpu, 3, options.size, options.size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(16, (options.batch_per_gpu,), device=device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def run(steps: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        wait()
        return time.perf_counter() - began

    return run


if __name__ == "__main__":
    main()
