"""Whether a continuous stream is as fast as whole epochs whose fill is taken off. Run by hand:

    python tests/benchmarks/stream_against_epochs.py [--data procedural:20480] [--variants crop-resize,cached]
        [--batch-sizes 32,256] [--pairs 5] [--ranks 2] [--links 4]

Both are trained in turns in one process (with --ranks in several, over gloo on the CPU), so that the host's speed is
the same for both: an epoch, whose steps are taken without its first waves of the loaders (a quarter of all, one at
least) and without those at its end for which nothing was loaded any more; then a stream's warm-up and half as many
steps. Printed for each pair: images/s of each; for each variant and batch size: their medians, and the ratio stream /
epochs, its geometric mean with a 95 % interval over pairs (t).
Target: 0.98 to 1.02.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing

from gpubench.datasets import locate
from gpubench.schema import catalog
from gpubench.schema.order import DataSpec, transforms
from gpubench.schema.window import blocks, warm_up_steps
from gpubench.stats.distributions import t_quantile
from gpubench.train import loop, models
from gpubench.train.data import Data, LoaderSettings, open_data
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.step import Step, make_optimizer
from gpubench.train.strategies.contract import Strategy
from gpubench.train.strategies.ddp import DistributedDataParallel
from gpubench.train.timing import step_clock

PREFETCH = 2


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="procedural:20480")
    parser.add_argument("--variants", default="crop-resize,cached")
    parser.add_argument("--batch-sizes", default="32,256")
    parser.add_argument("--model", default="mobilenet_v2")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--links", type=int, default=1, help="how often an epoch takes each image file")
    parser.add_argument("--ranks", type=int, default=0, help="processes on the CPU; 0: one GPU")
    options = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    for variant, batch in itertools.product(options.variants.split(","), options.batch_sizes.split(",")):
        files = catalog.VARIANTS[variant].files
        root = locate.make_ready(options.data, files, options.size)
        with tempfile.TemporaryDirectory() as folder:
            if options.links > 1:
                root = _linked(root, Path(folder) / "images", options.links)
            arguments = (options, variant, int(batch), str(root), cpus, Path(folder))
            if options.ranks:
                torch.multiprocessing.spawn(_rank, arguments, nprocs=options.ranks)  # type: ignore[no-untyped-call]
            else:
                _rank(0, *arguments)


def _rank(
    rank: int, options: argparse.Namespace, variant: str, batch: int, root: str, cpus: int, folder: Path
) -> None:
    """Measures both in turns; the first rank prints."""
    world = options.ranks or 1
    device = torch.device("cpu" if options.ranks else "cuda")
    assignment = DeviceAssignment(rank=rank, world=world, devices=(device,), rendezvous=folder / "meeting")
    strategy: Strategy = DistributedDataParallel(assignment) if options.ranks else Strategy(assignment)
    strategy.open()
    workers = max(1, cpus // world // (1 if device.type == "cuda" else 2))
    torch.set_num_threads(max(1, cpus // world))
    model = models.build_model(options.model, num_classes=16, input_size=options.size)
    trained = strategy.prepare(model, torch.channels_last, lambda module: module)
    trained.train()
    optimizer = strategy.optimizer(lambda module: make_optimizer("sgd", 0.01, module, graph=False))
    precision = "bf16" if device.type == "cuda" else "fp32"
    step = Step(trained, optimizer, strategy, precision=precision)
    opened = functools.partial(
        open_data,
        _spec(variant, root, options.size),
        LoaderSettings(
            batch_size=batch // world,
            val_batch_size=batch // world,
            rank=rank,
            world=world,
            workers=workers,
            prefetch=PREFETCH,
            seed=0,
        ),
        device=device,
        memory_format=torch.channels_last,
    )
    numbers = itertools.count()
    ratios, rates = [], []
    for pair in range(options.pairs + 1):
        times = []
        for measure in (_epoch, _stream):
            data = opened()  # what was closed makes no further batch
            training = loop.Loop(data, step, strategy, step_clock(assignment), lambda _: None, lambda: None)
            times.append(measure(training, data, numbers, workers))
        epoch_s, stream_s = times
        if pair:  # the first one warms up libraries and the page cache
            ratios.append(math.log(epoch_s / stream_s))
            rates.append((batch / stream_s, batch / epoch_s))
            if rank == 0:
                print(f"pair {pair}: {batch / stream_s:,.0f} / {batch / epoch_s:,.0f} images/s", flush=True)
    if rank == 0:
        middle = statistics.fmean(ratios)
        half = t_quantile(0.975, len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
        stream, epochs = (statistics.median(column) for column in zip(*rates, strict=True))
        ratio, low, high = (math.exp(log) for log in (middle, middle - half, middle + half))
        print(
            f"{variant}, batch {batch}, {world} rank(s), {workers} workers each: stream {stream:,.0f} images/s, epochs "
            f"{epochs:,.0f}; ratio {ratio:.4f} ({low:.4f} to {high:.4f}), {len(ratios)} pairs",
            flush=True,
        )


def _linked(root: Path, copy: Path, links: int) -> Path:
    """The images in `copy`, each `links` times: an epoch of many waves, of which its first ones are a small part.

    All loaders begin an epoch at once, so that its first waves arrive together and later ones do not; where loaders
    are the limit, an epoch of five waves seems up to a tenth faster for it.
    """
    for file in (file for file in root.rglob("*") if file.is_file()):
        for number in range(links):
            link = copy / file.relative_to(root).with_stem(f"{file.stem}-{number}")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file.resolve())
    return copy


def _spec(variant: str, root: str, size: int) -> DataSpec:
    definition = catalog.VARIANTS[variant].definition()
    kind = "decoded" if catalog.VARIANTS[variant].files == "decoded" else "folder"
    return DataSpec(
        kind=kind,
        root=root,
        input_size=size,
        num_classes=16,
        cpu=transforms(definition["cpu"], size),
        gpu=transforms(definition["gpu"], size),
    )


def _epoch(training: loop.Loop, data: Data, numbers: Iterator[int], workers: int) -> float:
    """Seconds of a step of an epoch, without its fill and its end."""
    window = training.run(loop.Segment(number=next(numbers), steps=data.steps_per_epoch, measured=True))
    data.close()
    wave, ahead = max(1, workers), workers * PREFETCH
    first = wave * max(1, data.steps_per_epoch // wave // 4)
    last = max(first + wave, (data.steps_per_epoch - ahead) // wave * wave)
    return _mean(window.step_s[first:last])


def _stream(training: loop.Loop, data: Data, numbers: Iterator[int], workers: int) -> float:
    """Seconds of a step of a stream, in whole waves, after a warm-up."""
    block, _ = blocks(workers, None, breakdown=False)
    stream: Iterator[Any] | None = data.stream()
    warm = max(warm_up_steps(workers * PREFETCH), workers * PREFETCH + block)
    training.run(loop.Segment(number=next(numbers), steps=warm, measured=False), stream)
    whole = math.ceil(data.steps_per_epoch / 2 / block) * block
    window = training.run(loop.Segment(number=next(numbers), steps=whole, measured=True, seconds=1.0), stream)
    data.close()
    del stream
    return window.seconds / whole


def _mean(seconds: Sequence[float]) -> float:
    return statistics.fmean(seconds)


if __name__ == "__main__":
    main()
