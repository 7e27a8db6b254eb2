"""An image folder as plain arrays on disk: one memory map that all ranks and jobs share.

    FOLDER/train.u8, val.u8                    uint8, N×3×S×S, RGB, without a header
    FOLDER/train-labels.npy, val-labels.npy    int64, N

in the order of `folder.list_images`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpubench.basics.errors import UnusableError
from gpubench.datasets import built, folder, marker
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.marker import SquareCopyKind
from gpubench.datasets.pool import Progress, map_on_cpus

COPY = SquareCopyKind(recipe="decoded", version=1)
SPLITS = ("train", "val")


def estimate_bytes(source: DataFacts, size: int) -> int:
    """How much disk the images take."""
    return (source.train_images + source.val_images) * 3 * size * size


def decode_folder(
    src: Path,
    dst: Path | None = None,
    *,
    size: int,
    progress: Progress | None = None,
    processes: int | None = None,
    without: Collection[str] = (),
) -> Path:
    """Decodes every image of the folder `src` to a square of `size` pixels a side; returns where they lie.

    `without`: paths, relative to `src`, of images that are left out. At once where it is done already. Raises as
    `resize_folder` does.
    """
    facts = folder.collect_folder_facts(src, without)
    dst = COPY.make_root_path(facts, size) if dst is None else dst.absolute()

    def fill(partial: Path) -> None:
        tasks: list[tuple[str, str, int]] = []
        for split in SPLITS:
            images = folder.list_images(src, split, without=without)
            file = partial / f"{split}.u8"
            _reserve_file_space(file, len(images) * 3 * size * size)
            np.save(partial / f"{split}-labels.npy", np.array([label for _, label in images], np.int64))
            tasks += [(path, str(file), position) for position, (path, _) in enumerate(images)]
        target = "gpubench.datasets.square:store_square"
        reasons = map_on_cpus(target, tasks, shared={"size": size}, processes=processes, progress=progress)

        from gpubench.datasets.square import check_none_broken

        check_none_broken([path for path, _, _ in tasks], reasons)

    wanted = COPY.make_marker(facts, size)
    built.ensure_folder_built(
        dst,
        wanted,
        complete=is_complete,
        fill=fill,
        progress=progress,
    )
    return dst


def open_decoded_split(path: Path, split: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Images (uint8 N×3×S×S, a read-only memory map) and labels (int64 N) of `split`, `train` or `val`.

    Raises UnusableError where `path` is not a folder that `decode_folder` made.
    """
    data = marker.read_marker(path)
    if data is None or data.recipe != COPY.recipe or data.size is None or not is_complete(path):
        raise UnusableError(
            f"{path} holds no decoded images, or not all of them: remove it, and it is made again"
        )
    labels: npt.NDArray[np.int64] = np.load(path / f"{split}-labels.npy")
    shape = (len(labels), 3, data.size, data.size)
    if len(labels) == 0:  # nothing can't be mapped
        return np.empty(shape, np.uint8), labels
    images: np.memmap[Any, np.dtype[np.uint8]] = np.memmap(path / f"{split}.u8", np.uint8, "r", shape=shape)
    return images, labels


def is_complete(path: Path) -> bool:
    """Whether all four arrays are there in full length."""
    data = marker.read_marker(path)
    if data is None or data.size is None:
        return False
    counts = {"train": data.train_images, "val": data.val_images}
    files = [(path / f"{split}.u8", count * 3 * data.size**2) for split, count in counts.items()]
    labels = [path / f"{split}-labels.npy" for split in counts]
    return all(f.is_file() and f.stat().st_size == n for f, n in files) and all(f.is_file() for f in labels)


def _reserve_file_space(file: Path, length: int) -> None:
    with file.open("wb") as out:
        if length:
            os.posix_fallocate(out.fileno(), 0, length)  # a full disk says so here, not half-way
