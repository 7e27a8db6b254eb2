"""Whether torchcodec makes a loader's images as fast as torchvision's decoders. Run by hand, with both installed:

    python tests/benchmarks/decoders.py [--images FOLDER] [--count 400] [--pairs 20]

One process reads, decodes and transforms (crop-resize) the same images by each, in pairs whose order is drawn by lot.
Printed: how many of the files give other pixels, images a second of CPU time (others may use this CPU meanwhile), and
the ratio's median with a distribution-free 95 % interval; both of decoding alone, too.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import loader
import numpy as np
import torch
from statistics_of_pairs import median_interval

from gpubench.datasets import folder
from gpubench.train.data import on_cpu
from gpubench.train.data.decoders import Decoder, _load_torchcodec, _load_torchvision


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, help="image folder; a procedural one is made without it")
    parser.add_argument("--count", type=int, default=400, help="images of each run")
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    decoders = (_load_torchcodec(), _load_torchvision())
    with loader.image_folder(options.images) as root:
        files = [path for path, _ in folder.list_images(root, "train")][: options.count]
        unlike = sum(len({digest(decoder, path) for decoder in decoders}) > 1 for path in files)
        print(f"{unlike} of {len(files)} files give other pixels")
        report("decoded", decoders, files, lambda image: image, options.pairs)
        report(
            "for the loader",
            decoders,
            files,
            on_cpu.build_cpu_transforms(loader.crop_resize(root).cpu),
            options.pairs,
        )


def digest(decoder: Decoder, path: str) -> bytes:
    return decoder.decode(np.fromfile(path, np.uint8), "RGB").contiguous().numpy().tobytes()


def report(
    what: str,
    decoders: tuple[Decoder, Decoder],
    files: Sequence[str],
    transform: Callable[[torch.Tensor], torch.Tensor],
    pairs: int,
) -> None:
    lot = random.Random(0)
    rates: dict[str, list[float]] = {decoder.name: [] for decoder in decoders}
    for pair in range(pairs + 1):
        for decoder in lot.sample(decoders, 2):
            torch.manual_seed(pair)  # the same crops
            began = time.process_time()
            for path in files:
                transform(decoder.decode(np.fromfile(path, np.uint8), "RGB"))
            rates[decoder.name].append(len(files) / (time.process_time() - began))
    codec, vision = (rates[decoder.name][1:] for decoder in decoders)  # the first pair only warms up
    median, low, high = median_interval([a / b for a, b in zip(codec, vision, strict=True)])
    print(
        f"{what}: "
        + ", ".join(f"{name} {statistics.median(of_it[1:]):.0f}" for name, of_it in rates.items())
        + f" images/s of CPU time; ratio {median:.3f}, 95 % interval {low:.3f} to {high:.3f}, {pairs} pairs"
    )


if __name__ == "__main__":
    main()
