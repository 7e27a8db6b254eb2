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
import sys
import time
from pathlib import Path

from statistics_of_pairs import median_interval

from gpubench.node.launch.channel import Channel, make_socket_pair

WINDOW_S = 0.5
"""About as long as each window is made."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-sizes", default="32,128,512")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--size", type=int, default=224)
    options = parser.parse_args()
    precision = "bf16" if options.device == "cuda" else "fp32"
    print(
        f"{options.model}, {options.size} px, {precision}, channels-last, resident batch, {options.pairs} pairs"
    )
    print(f"{'batch':>5}  {'steps':>5}  {'bare images/s':>13}  {'gpubench/bare':>13}  95 % interval")
    for batch in (int(text) for text in options.batch_sizes.split(",")):
        steps, rates = measure(options, batch, precision)
        ratios = [inside / bare for bare, inside in rates]
        middle, low, high = median_interval(ratios)
        bare = median_interval([rate for rate, _ in rates])[0]
        print(f"{batch:>5}  {steps:>5}  {bare:>13,.0f}  {middle:>13.4f}  {low:.4f} … {high:.4f}", flush=True)


def measure(options: argparse.Namespace, batch: int, precision: str) -> tuple[int, list[tuple[float, float]]]:
    """Steps of a window, and (bare, gpubench) images/s of each pair."""
    from gpubench.node import environment
    from gpubench.node.watch.nvml import open_nvml
    from gpubench.node.watch.watcher import Watcher

    ours, theirs = make_socket_pair()
    pid = os.fork()  # before NVML: it doesn't survive a fork
    if pid == 0:
        ours.close()
        child(Channel(theirs), options, batch, precision)
        os._exit(0)
    theirs.close()
    channel = Channel(ours)
    nvml = open_nvml()
    machine = environment.make_machine(nvml)
    uuids = [machine.gpus[0].uuid] if options.device == "cuda" else []
    rates: list[tuple[float, float]] = []
    steps = receive(channel)["steps"]
    for _ in range(options.pairs):
        channel.send({"run": "bare"})
        bare = receive(channel)["images_per_s"]
        watcher = Watcher(nvml, machine, uuids, machine.cpu_ids)
        watcher.sample_before_trial()
        watcher.attach_to_trial(pid)
        channel.send({"run": "gpubench"})
        inside = None
        while inside is None:
            watcher.sample_due()
            received = channel.receive(max(0.0, watcher.next_deadline() - time.monotonic()))
            if received is None:
                continue
            event = received
            if event.get("event") in ("begin", "end"):
                watcher.sample_counters_at_edge(first=event["event"] == "begin")
            inside = event.get("images_per_s")
        rates.append((bare, inside))
    channel.send({"run": "stop"})
    os.waitpid(pid, 0)
    return steps, rates


def receive(channel: Channel) -> dict[str, float]:
    received = channel.receive(300)
    if received is None:
        sys.exit("the child said nothing for five minutes")
    return received


def child(channel: Channel, options: argparse.Namespace, batch: int, precision: str) -> None:
    import torch

    from gpubench.train.step import set_tf32_mode

    set_tf32_mode(precision)
    device = torch.device(options.device, 0) if options.device == "cuda" else torch.device("cpu")
    bare = bare_loop(options, batch, precision, device)
    inside = gpubench_loop(options, batch, precision, device, channel)
    bare(12)
    inside(12, quiet=True)
    steps = max(10, round(WINDOW_S / bare(10) * 10))
    channel.send({"steps": steps})
    while True:
        received = channel.receive(300)
        if received is None or received["run"] == "stop":
            return
        seconds = bare(steps) if received["run"] == "bare" else inside(steps)
        channel.send({"images_per_s": steps * batch / seconds})


def bare_loop(options: argparse.Namespace, batch: int, precision: str, device):  # type: ignore[no-untyped-def]
    """What one writes by hand, timed from synchronisation to synchronisation."""
    import torch
    import torch.nn.functional as F
    import torchvision

    model = torchvision.models.get_model(options.model, num_classes=16).to(device)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images = torch.randn(batch, 3, options.size, options.size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(16, (batch,), device=device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None

    def run(steps: int) -> float:
        wait()
        began = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
                loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        wait()
        return time.perf_counter() - began

    return run


def gpubench_loop(options: argparse.Namespace, batch: int, precision: str, device, channel: Channel):  # type: ignore[no-untyped-def]
    """gpubench's own loop, as a rank of a trial runs it: its step, its clock, its data, its events."""
    import torch

    from gpubench.schema.order import DataSpec
    from gpubench.train import models, step
    from gpubench.train.data import LoaderSettings, open_data
    from gpubench.train.device_assignment import DeviceAssignment
    from gpubench.train.loop import Segment, TrainingLoop
    from gpubench.train.strategies.contract import Strategy
    from gpubench.train.timing import make_step_clock

    assignment = DeviceAssignment(rank=0, world=1, devices=(device,), rendezvous=Path(os.devnull))
    strategy = Strategy(assignment)
    model = models.build_model(options.model, num_classes=16, input_size=options.size).to(device)
    model = model.to(memory_format=torch.channels_last).train()
    optimizer = step.make_optimizer("sgd", 0.05, model, graph=False)
    training_step = step.TrainStep(model, optimizer, strategy, precision=precision)
    data = open_data(
        DataSpec(kind="none", input_size=options.size, num_classes=16, train_images=10**9),
        LoaderSettings(
            batch_size=batch, val_batch_size=batch, rank=0, world=1, workers=0, prefetch=2, seed=0
        ),
        device=device,
        memory_format=torch.channels_last,
    )

    def run(steps: int, *, quiet: bool = False) -> float:
        report = (lambda _: None) if quiet else channel.send
        loop = TrainingLoop(data, training_step, strategy, make_step_clock(assignment), report, lambda: None)
        segment = Segment(number=0, steps=steps, measured=True, seconds=WINDOW_S)
        return loop.train_segment(segment, data.iterate_stream()).seconds

    return run


if __name__ == "__main__":
    main()
