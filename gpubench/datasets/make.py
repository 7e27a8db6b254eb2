"""The built-in images: a folder of procedural JPEGs, made once on all CPUs."""

from __future__ import annotations

from pathlib import Path

from gpubench.basics.errors import UsageError
from gpubench.datasets import built, folder
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.marker import FolderMarker, make_data_home_path
from gpubench.datasets.pool import Progress, map_on_cpus

RECIPE = "procedural"
VERSION = 1
"""Goes up when the same seed gives other images."""
IMAGES, VAL_IMAGES, CLASSES, SEED, SIZE = 10_240, 1_024, 16, 0, (500, 375)

MAX_CLASSES = 1000
MIN_SIDE = 16
_BYTES_PER_PIXEL = 0.53


def make_procedural_marker(
    images: int = IMAGES,
    val_images: int = VAL_IMAGES,
    classes: int = CLASSES,
    seed: int = SEED,
    size: tuple[int, int] = SIZE,
) -> FolderMarker:
    """What the finished folder will say of itself. Known before it is made.

    Raises UsageError for a recipe that can't be made.
    """
    if not 1 <= classes <= MAX_CLASSES:
        raise UsageError(f"procedural images come in 1 to {MAX_CLASSES} classes, not {classes}")
    if images < classes or val_images < 0:
        raise UsageError(
            f"{images} procedural images are too few for {classes} classes: ask for {classes} or more"
        )
    if min(size) < MIN_SIDE:
        raise UsageError(
            f"procedural images of {size[0]}×{size[1]} pixels are too small: {MIN_SIDE} a side at least"
        )
    return FolderMarker(
        recipe=RECIPE,
        version=VERSION,
        parameters={
            "images": images, "val_images": val_images, "classes": classes, "seed": seed, "size": list(size),
        },
        train_images=images,
        val_images=val_images,
        num_classes=classes,
        size=None,
    )  # fmt: skip


def choose_val_count(images: int) -> int:
    """How many validation images go with so many for training, unless somebody says otherwise: a tenth, 64 at least."""
    return max(64, images // 10)


def make_procedural_root_path(marker: FolderMarker) -> Path:
    """Where a procedural data set lies unless the user names a folder."""
    parameters = marker.parameters
    width, height = parameters["size"]
    side = "" if (width, height) == SIZE else f"-{width}x{height}"
    images = f"{parameters['images']}+{parameters['val_images']}"
    name = f"{RECIPE}-{images}-{parameters['classes']}{side}-s{parameters['seed']}-v{VERSION}"
    return make_data_home_path() / name


def estimate_procedural_bytes(marker: FolderMarker) -> int:
    """About how much disk a procedural data set takes."""
    width, height = marker.parameters["size"]
    return round((marker.train_images + marker.val_images) * float(width * height) * _BYTES_PER_PIXEL)


def make_procedural_images(
    recipe: FolderMarker,
    root: Path | None = None,
    *,
    progress: Progress | None = None,
    processes: int | None = None,
) -> DataFacts:
    """Makes ROOT/train/CLASS/*.jpg and ROOT/val/CLASS/*.jpg; at once where they are made already.

    `recipe`: of `make_procedural_marker`. `progress` is called with (images done, images in all). Raises UsageError
    where something else lies at `root`, UnusableError where it can't be written.
    """
    root = make_procedural_root_path(recipe) if root is None else root.absolute()
    classes = recipe.num_classes

    def fill(partial: Path) -> None:
        # Heavy (numpy, Pillow), and not needed where the images are there already.
        from gpubench.datasets.procedural import make_class_name

        for split, count in recipe.counts.items():
            for label in range(min(classes, count)):
                (partial / split / make_class_name(label, classes)).mkdir(parents=True)
        shared = {"root": str(partial), "seed": recipe.parameters["seed"], "classes": classes,
                  "size": recipe.parameters["size"]}  # fmt: skip
        tasks = [(split, index) for split, count in recipe.counts.items() for index in range(count)]
        target = "gpubench.datasets.procedural:write"
        map_on_cpus(target, tasks, shared=shared, processes=processes, progress=progress)

    built.ensure_folder_built(root, recipe, fill, progress)
    return folder.collect_folder_facts(root)
