"""Image folders: which images belong to which split and class. Imports nothing heavy; the child reads it too.

Two layouts are understood, with images anywhere below their class:

    ROOT/train/CLASS/…   and   ROOT/val/CLASS/…   (or valid, validation, test)
    ROOT/CLASS/…         every tenth image of a class, by name, is held out for validation

A `train` folder without a partner is split in the second way.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import marker
from gpubench.datasets.facts import DataFacts

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".ppm", ".pgm", ".tif", ".tiff")
VALIDATION = ("val", "valid", "validation", "test")
HOLD_OUT = 10
"""Without a split, the last of every ten images of a class is for validation."""

Images = dict[str, list[str]]
"""Class name -> sorted paths relative to the class's folder."""
Layout = dict[str, tuple[str, Images]]
"""`train` and `val` -> the folder that holds the classes, and the images of that split."""


def list_images_by_split(root: str | os.PathLike[str], without: Collection[str] = ()) -> Layout:
    """All images of a folder, as if those of `without` (paths relative to it) were not there.

    Raises UsageError where it does not exist or has none, where none is left of a class, and for an image that is no
    file or a link that goes round in circles; UnusableError where the folder, or one below it, can't be read.
    """
    top = Path(root).absolute()
    return _list_images_by_split(top, frozenset(f"{top}/{path}" for path in without))


def list_image_named_files(root: str | os.PathLike[str]) -> list[str]:
    """Paths, relative to the folder, of all that is named like an image, dead links and pipes included; in order.

    Raises as `list_images_by_split` does, but for an image that is no file.
    """
    top = Path(root).absolute()
    cut = len(str(top)) + 1
    return [path[cut:] for path in _list_image_paths(_list_images_by_split(top, None))]


def _list_images_by_split(top: Path, left_out: AbstractSet[str] | None) -> Layout:
    """`left_out`: absolute paths; None: nothing is, not even what is no file."""
    try:
        if not top.is_dir():
            problem = "is a file, not a folder" if top.exists() else "does not exist"
            raise UsageError(f"the image folder {top} {problem}")
        train = _list_images_by_class(top / "train", left_out)
        if not any(train.values()):
            splits = _hold_out_validation(str(top), _list_images_by_class(top, left_out))
        else:
            partners = ((str(top / name), _list_images_by_class(top / name, left_out)) for name in VALIDATION)
            partner = next((p for p in partners if any(p[1].values())), None)
            within = str(top / "train")
            splits = (
                {"train": (within, train), "val": partner} if partner else _hold_out_validation(within, train)
            )
    except OSError as error:
        raise UnusableError(
            f"can't read the image folder {top}: {error.strerror} ({error.filename})"
        ) from error
    if not any(splits["train"][1].values()):
        raise UsageError(
            f"no images in {top}: expected train/CLASS/*.jpg and val/CLASS/*.jpg, or CLASS/*.jpg"
        )
    return splits


def list_images(
    root: str | os.PathLike[str], split: str, limit: int | None = None, without: Collection[str] = ()
) -> list[tuple[str, int]]:
    """Images of `split` (`train` or `val`) as (absolute path, class index), by class, then by name.

    With `limit` only that many, spread evenly over the classes. `without` and errors: as in `list_images_by_split`.
    """
    splits = list_images_by_split(root, without)
    labels = {name: label for label, name in enumerate(_list_class_names(splits))}
    folder, by_class = splits[split]
    images = [
        (f"{folder}/{name}/{path}", labels[name])
        for name, paths in sorted(by_class.items())
        for path in paths
    ]
    if limit is None:
        return images
    return [images[place] for place in select_evenly_over_classes([label for _, label in images], limit)]


def select_evenly_over_classes(labels: Sequence[int], limit: int) -> list[int]:
    """Positions of the first `limit` images, taken from the classes in turn; in ascending order."""
    seen: dict[int, int] = {}
    rounds = []
    for position, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        rounds.append((seen[label], label, position))
    return sorted(position for _, _, position in sorted(rounds)[:limit])


def collect_folder_facts(root: str | os.PathLike[str], without: Collection[str] = ()) -> DataFacts:
    """Facts of the folder at `root`. `without` and errors: as in `list_images_by_split`.

    The fingerprint of a folder that gpubench made, and that is still complete, is that of its recipe. Any
    other's is a hash of the sizes and relative paths of the images that are used: a copy elsewhere has the same, and
    so has a copy from which those of `without` were deleted.
    """
    top = Path(root).absolute()
    splits = list_images_by_split(top, without)
    counts = count_images(splits)
    made = marker.read_marker(top)
    if made is not None and made.counts == counts:
        return replace(make_facts_from_marker(made, str(root), top), skipped_images=len(without))
    lacks_bad_images_alone = (
        made is not None
        and len(without) > 0
        and sum(counts.values()) + len(without) == sum(made.counts.values())
    )
    return DataFacts(
        name=str(root),
        kind="folder",
        root=str(top),
        fingerprint=_hash_paths_and_sizes(top, splits),
        train_images=counts["train"],
        val_images=counts["val"],
        num_classes=len(_list_class_names(splits)),
        size=made.size if made is not None and lacks_bad_images_alone else None,
        skipped_images=len(without),
    )


def make_facts_from_marker(folder_marker: marker.FolderMarker, name: str, root: Path) -> DataFacts:
    """Facts of a folder that gpubench has made, or will make, at `root`."""
    return DataFacts(
        name=name,
        kind="folder",
        root=str(root),
        fingerprint=folder_marker.fingerprint,
        train_images=folder_marker.train_images,
        val_images=folder_marker.val_images,
        num_classes=folder_marker.num_classes,
        size=folder_marker.size,
    )


def _hold_out_validation(folder: str, images: Images) -> Layout:
    held_out = {name: paths[HOLD_OUT - 1 :: HOLD_OUT] for name, paths in images.items()}
    kept = {
        name: [path for place, path in enumerate(paths, 1) if place % HOLD_OUT]
        for name, paths in images.items()
    }
    return {"train": (folder, kept), "val": (folder, held_out)}


def count_images(splits: Layout) -> dict[str, int]:
    """Split -> how many images it has."""
    return {split: sum(map(len, images.values())) for split, (_, images) in splits.items()}


def _list_class_names(splits: Layout) -> list[str]:
    return sorted({name for _, images in splits.values() for name, paths in images.items() if paths})


def _list_images_by_class(folder: Path, left_out: AbstractSet[str] | None) -> Images:
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    paths_by_class = {name: sorted(_walk_image_paths(f"{folder}/{name}", "", (), left_out)) for name in names}
    for name, paths in paths_by_class.items():
        if not paths and any(path.startswith(f"{folder}/{name}/") for path in left_out or ()):
            raise UsageError(
                f"no image of the class {folder}/{name} can be decoded: repair them, or remove it"
            )
    return paths_by_class


def _walk_image_paths(
    folder: str, prefix: str, above: tuple[tuple[int, int], ...], left_out: AbstractSet[str] | None
) -> Iterator[str]:
    """Paths of the images below `folder`. `above`: device and inode of the folders that lead to it."""
    status = os.stat(folder)  # noqa: PTH116
    way = (*above, (status.st_dev, status.st_ino))
    if way[-1] in above:
        raise UsageError(f"the link {folder} leads back to a folder that it lies in: remove it")
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue  # an editor's or a file manager's own
            if _is_entry_kind(stat.S_ISDIR, entry):
                yield from _walk_image_paths(entry.path, f"{prefix}{entry.name}/", way, left_out)
            elif entry.name.lower().endswith(SUFFIXES):
                if left_out is not None and entry.path in left_out:
                    continue
                if left_out is not None and not _is_entry_kind(stat.S_ISREG, entry):
                    raise UsageError(
                        f"the image {entry.path} is no file: remove it, or leave it out with --bad-images skip"
                    )
                yield prefix + entry.name


def _is_entry_kind(is_kind: Callable[[int], bool], entry: os.DirEntry[str]) -> bool:
    """Whether an entry, or what it is a link to, is of a kind; no link that leads to itself or nowhere is."""
    try:
        return is_kind(entry.stat().st_mode)
    except OSError:
        return False


def _list_image_paths(splits: Layout) -> list[str]:
    """Absolute paths of all images, in order."""
    classes = [(f"{top}/{name}", paths) for top, images in splits.values() for name, paths in images.items()]
    return sorted({f"{folder}/{path}" for folder, paths in classes for path in paths})


def _hash_paths_and_sizes(top: Path, splits: Layout) -> str:
    """16 hex digits. Raises UnusableError for an image that can't be read."""
    cut = len(str(top)) + 1
    digest = hashlib.sha256()
    for path in _list_image_paths(splits):
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError as error:
            raise UnusableError(f"can't read the image {path}: {error.strerror}") from error
        # Only where the mode leaves it open: asking costs as much as all the rest.
        if not status.st_mode & stat.S_IROTH and not os.access(path, os.R_OK):
            raise UnusableError(f"can't read the image {path}: no permission")
        digest.update(f"{path[cut:]}\0{status.st_size}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]
