"""A copy of an image folder at the size that a network takes: what `pre-resized` trains on."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from gpubench.basics.errors import UsageError
from gpubench.datasets import built, folder
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.marker import SquareCopyKind
from gpubench.datasets.pool import Progress, map_on_cpus

COPY = SquareCopyKind(recipe="resized", version=1)
_BYTES_PER_PIXEL = 0.6


def estimate_bytes(source: DataFacts, size: int) -> int:
    """About how much disk the copy takes."""
    return round((source.train_images + source.val_images) * size * size * _BYTES_PER_PIXEL)


def resize_folder(
    src: Path,
    dst: Path | None = None,
    *,
    size: int,
    progress: Progress | None = None,
    processes: int | None = None,
    without: Collection[str] = (),
) -> DataFacts:
    """Copies every image as a square JPEG of `size` pixels a side, quality 95, 4:2:0.

    The copy has the same classes, names and split; a source without a split gives one with `train` and `val`.
    `without`: paths, relative to `src`, of images that are left out. At once where it is made already. Raises
    UsageError for a folder without images, where something else lies at `dst`, and for broken images (counted, the
    first named); UnusableError where it can't be written.
    """
    facts = folder.collect_folder_facts(src, without)
    dst = COPY.make_root_path(facts, size) if dst is None else dst.absolute()
    if Path(os.path.realpath(dst)).is_relative_to(os.path.realpath(src)):
        raise UsageError(f"the copy {dst} would lie in its own source: name a folder outside of {src}")
    wanted = COPY.make_marker(facts, size)

    def fill(partial: Path) -> None:
        pairs = [
            (f"{source_folder}/{name}/{path}", f"{partial}/{split}/{name}/{_make_jpeg_path(path)}")
            for split, (source_folder, images) in folder.list_images_by_split(src, without).items()
            for name, paths in images.items()
            for path in paths
        ]
        _check_target_collisions(pairs)
        for parent in {Path(target).parent for _, target in pairs}:
            parent.mkdir(parents=True, exist_ok=True)
        target = "gpubench.datasets.square:save_square"
        reasons = map_on_cpus(target, pairs, shared={"size": size}, processes=processes, progress=progress)

        from gpubench.datasets.square import check_none_broken

        check_none_broken([source for source, _ in pairs], reasons)

    built.ensure_folder_built(
        dst,
        wanted,
        complete=folder.has_all_marked_images,
        fill=fill,
        progress=progress,
    )
    return folder.collect_folder_facts(dst)


def _make_jpeg_path(path: str) -> str:
    # Longer, not replaced: a.png and a.jpg stay two images.
    return path if path.lower().endswith((".jpg", ".jpeg")) else path + ".jpg"


def _check_target_collisions(pairs: list[tuple[str, str]]) -> None:
    seen: dict[str, str] = {}
    for source, target in pairs:
        if target in seen:
            raise UsageError(f"{seen[target]} and {source} would become one file: rename one of them")
        seen[target] = source
