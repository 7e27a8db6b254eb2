"""Copies of an image folder as squares of the size that a network takes, made once on all CPUs.

    resized    FOLDER/train/CLASS/*.jpg, val/CLASS/*.jpg      what `pre-resized` trains on
    decoded    FOLDER/train.u8, val.u8                        uint8, N×3×S×S, RGB, without a header
               FOLDER/train-labels.npy, val-labels.npy        int64, N, in the order of `folder.list_images`

All ranks and jobs share a decoded copy as one memory map.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import built, folder, marker
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.marker import FolderMarker
from gpubench.datasets.pool import Progress, map_on_cpus

Kind = Literal["resized", "decoded"]
VERSIONS: dict[Kind, int] = {"resized": 1, "decoded": 1}
"""Each goes up when the same images give other copies."""
BYTES_PER_PIXEL = {"resized": 0.6, "decoded": 3.0}


def make_copy_marker(kind: Kind, source: DataFacts, size: int) -> FolderMarker:
    """What the finished copy will say of itself. Raises UsageError for a size that can't be."""
    if size < 1:
        raise UsageError(f"images can't be {kind} to {size} pixels: ask for 1 or more")
    return FolderMarker(
        recipe=kind,
        version=VERSIONS[kind],
        parameters={"source": source.fingerprint, "size": size},
        train_images=source.train_images,
        val_images=source.val_images,
        num_classes=source.num_classes,
        size=size,
    )


def make_copy_path(kind: Kind, source: DataFacts, size: int) -> Path:
    """Where the copy lies unless somebody names a folder."""
    return marker.make_data_home_path() / f"{kind}-{source.fingerprint}-{size}"


def estimate_copy_bytes(kind: Kind, source: DataFacts, size: int) -> int:
    """How much disk the copy takes; of resized images about."""
    return round((source.train_images + source.val_images) * size * size * BYTES_PER_PIXEL[kind])


def make_copy(
    kind: Kind,
    src: Path,
    dst: Path | None = None,
    *,
    size: int,
    progress: Progress | None = None,
    processes: int | None = None,
    without: Collection[str] = (),
) -> Path:
    """Makes every image of the folder `src` a square of `size` pixels a side; returns where the copy lies.

    A resized copy has JPEGs (quality 95, 4:2:0) of the same classes, names and split; a source without a split gives
    one with `train` and `val`. `without`: paths, relative to `src`, of images that are left out. At once where it is
    made already. Raises UsageError for a folder without images, where something else lies at `dst`, and for broken
    images (counted, the first named); UnusableError where it can't be written.
    """
    facts = folder.collect_folder_facts(src, without)
    dst = make_copy_path(kind, facts, size) if dst is None else dst.absolute()
    if kind == "resized" and Path(os.path.realpath(dst)).is_relative_to(os.path.realpath(src)):
        raise UsageError(f"the copy {dst} would lie in its own source: name a folder outside of {src}")

    def fill(partial: Path) -> None:
        tasks: list[Any]
        if kind == "resized":
            target, tasks = "save_square", _prepare_jpegs(src, partial, without)
        else:
            target, tasks = "store_square", _prepare_arrays(src, partial, size, without)
        target = f"gpubench.datasets.square:{target}"
        reasons = map_on_cpus(target, tasks, shared={"size": size}, processes=processes, progress=progress)
        broken = [
            f"{task[0]} ({reason})" for task, reason in zip(tasks, reasons, strict=True) if reason is not None
        ]
        if broken:
            raise UsageError(
                f"{len(broken)} broken image{'s' * (len(broken) > 1)}, first: {broken[0]}; repair or remove them, "
                "or leave them out with --bad-images skip"
            )

    built.ensure_folder_built(dst, make_copy_marker(kind, facts, size), fill, progress)
    return dst


def _prepare_jpegs(src: Path, dst: Path, without: Collection[str]) -> list[tuple[str, str]]:
    """Each image with the file that it becomes, whose folder is made."""
    sources: dict[str, str] = {}
    for split, (top, images) in folder.list_images_by_split(src, without).items():
        for name, paths in images.items():
            for path in paths:
                # Longer, not replaced: a.png and a.jpg stay two images.
                ending = "" if path.lower().endswith((".jpg", ".jpeg")) else ".jpg"
                source, target = f"{top}/{name}/{path}", f"{dst}/{split}/{name}/{path}{ending}"
                if target in sources:
                    raise UsageError(
                        f"{sources[target]} and {source} would become one file: rename one of them"
                    )
                sources[target] = source
    for parent in {Path(target).parent for target in sources}:
        parent.mkdir(parents=True, exist_ok=True)
    return [(source, target) for target, source in sources.items()]


def _prepare_arrays(src: Path, dst: Path, size: int, without: Collection[str]) -> list[tuple[str, str, int]]:
    """Each image with the array's file and its place there; the files have room for all, and labels are written."""
    tasks = []
    for split in ("train", "val"):
        images = folder.list_images(src, split, without=without)
        file = dst / f"{split}.u8"
        with file.open("wb") as out:
            if images:  # a full disk says so here, not half-way
                os.posix_fallocate(out.fileno(), 0, len(images) * 3 * size * size)
        np.save(dst / f"{split}-labels.npy", np.array([label for _, label in images], np.int64))
        tasks += [(path, str(file), position) for position, (path, _) in enumerate(images)]
    return tasks


def open_decoded_split(path: Path, split: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Images (uint8 N×3×S×S, a read-only memory map) and labels (int64 N) of `split`, `train` or `val`.

    Raises UnusableError where `path` is no decoded copy.
    """
    data = marker.read_marker(path)
    if data is None or data.recipe != "decoded" or data.size is None or not built.is_complete(path):
        raise UnusableError(
            f"{path} holds no decoded images, or not all of them: remove it, and it is made again"
        )
    labels: npt.NDArray[np.int64] = np.load(path / f"{split}-labels.npy")
    shape = (len(labels), 3, data.size, data.size)
    if len(labels) == 0:  # nothing can't be mapped
        return np.empty(shape, np.uint8), labels
    images: np.memmap[Any, np.dtype[np.uint8]] = np.memmap(path / f"{split}.u8", np.uint8, "r", shape=shape)
    return images, labels
