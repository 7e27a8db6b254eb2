"""How much of the CPUs' own speed the crop-resize loader delivers. Run by hand:

    python tests/benchmarks/loader.py --workers 16 [--images FOLDER] [--seconds 5] [--pairs 15]

Loader: N workers and their consumer share N CPUs, in one stream, as a window is measured. Bare: N plain processes, each
pinned to one of the same CPUs, read, decode and transform the same files in a loop and throw the result away. The two
alternate in pairs, their order drawn by lot. Printed: images/s of each, and the ratio's median with a
distribution-free 95 % interval.
Target: 0.85 or more.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from statistics_of_pairs import median_interval

from gpubench.datasets import folder, make
from gpubench.schema import catalog
from gpubench.schema.order import DataSpec, parse_transforms
from gpubench.train.data import LoaderSettings, on_cpu
from gpubench.train.data.decoders import DECODER
from gpubench.train.data.folder_source import FolderSource
from gpubench.train.data.opened import LoadedData

SIZE = 224
TARGET = 0.85


def main() -> None:
    options = parse()
    cpus = sorted(os.sched_getaffinity(0))[: options.workers]
    if len(cpus) < options.workers:
        raise SystemExit(f"{options.workers} workers need as many CPUs; {len(cpus)} may be used")
    os.sched_setaffinity(0, cpus)
    with image_folder(options.images) as root:
        files = [path for path, _ in folder.list_images(root, "train")]
        for path in files:
            Path(path).read_bytes()  # both sides read from the page cache
        spec = crop_resize(root)
        transform = on_cpu.build_cpu_transforms(spec.cpu)
        ahead = options.workers * (options.prefetch + 1)
        print(f"{options.workers} CPUs, batch {options.batch_size}, {DECODER.name}")

        def loader() -> float:
            data = LoadedData(
                spec,
                FolderSource(folder.list_images(root, "train")),
                LoaderSettings(
                    batch_size=options.batch_size,
                    val_batch_size=options.batch_size,
                    rank=0,
                    world=1,
                    workers=options.workers,
                    prefetch=options.prefetch,
                    seed=0,
                ),
                device=torch.device("cuda" if options.pin else "cpu"),
                memory_format=torch.channels_last,
            )
            stream = data.iterate_stream()
            for _ in range(ahead):  # workers start together, and hold batches ready meanwhile
                next(stream)
            start, images = time.perf_counter(), 0
            while time.perf_counter() < start + options.seconds:
                for _ in range(options.workers):  # in whole waves
                    images += len(next(stream)[1])
            rate = images / (time.perf_counter() - start)
            data.close()
            return rate

        def bare() -> float:
            return bare_loops(files, transform, cpus, options.seconds)

        ratios = compare(loader, bare, options.pairs)
    median, low, high = median_interval(ratios)
    verdict = "reached" if low >= TARGET else "not shown" if high >= TARGET else "missed"
    print(f"loader / bare: median {median:.3f}, 95 % interval {low:.3f} to {high:.3f}, {len(ratios)} pairs")
    print(f"target {TARGET}: {verdict}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="N")
    parser.add_argument("--images", type=Path, help="image folder; a small procedural one is made without it")
    parser.add_argument("--seconds", type=float, default=5, help="of each run")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--pin", action="store_true", help="pin the batches' memory, as on a GPU (needs one)")
    return parser.parse_args()


@contextmanager
def image_folder(given: Path | None) -> Iterator[str]:
    if given is not None:
        yield str(given)
        return
    with tempfile.TemporaryDirectory() as folder_:
        recipe = make.make_procedural_marker(images=2048, val_images=16)
        make.make_procedural_images(recipe, Path(folder_) / "images")
        yield str(Path(folder_) / "images")


def crop_resize(root: str) -> DataSpec:
    classes = folder.collect_folder_facts(root).num_classes
    cpu = parse_transforms(catalog.VARIANTS["crop-resize"].cpu, SIZE)
    return DataSpec(kind="folder", root=root, input_size=SIZE, num_classes=classes, cpu=cpu)


def bare_loops(
    files: Sequence[str],
    transform: Callable[[torch.Tensor], torch.Tensor],
    cpus: Sequence[int],
    seconds: float,
) -> float:
    """Images a second of one pinned process on each CPU."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(cpus))
    rates = context.SimpleQueue()

    def loop(cpu: int) -> None:
        os.sched_setaffinity(0, [cpu])
        torch.set_num_threads(1)
        torch.manual_seed(cpu)
        order = np.random.default_rng(cpu).permutation(len(files)).tolist()
        barrier.wait()
        start, images = time.perf_counter(), 0
        while time.perf_counter() < start + seconds:
            path = files[order[images % len(order)]]
            transform(DECODER.decode(np.fromfile(path, np.uint8), "RGB"))
            images += 1
        rates.put(images / (time.perf_counter() - start))

    processes = [context.Process(target=loop, args=(cpu,)) for cpu in cpus]
    for process in processes:
        process.start()
    total = sum(rates.get() for _ in processes)
    for process in processes:
        process.join()
    return total


def compare(loader: Callable[[], float], bare: Callable[[], float], pairs: int) -> list[float]:
    """Ratio loader / bare of each pair, after one pair that only warms up."""
    lot = random.Random(0)
    ratios = []
    for pair in range(pairs + 1):
        sides = [("loader", loader), ("bare", bare)]
        lot.shuffle(sides)
        rate = {name: run() for name, run in sides}
        ratio = rate["loader"] / rate["bare"]
        note = "" if pair else "  (warm-up)"
        print(
            f"loader {rate['loader']:8.0f} images/s   bare {rate['bare']:8.0f}   ratio {ratio:.3f}{note}",
            flush=True,
        )
        if pair:
            ratios.append(ratio)
    return ratios


if __name__ == "__main__":
    main()
