"""A trial's field `data`: what it means, and seeing to it that what a variant needs lies on disk.

procedural              the built-in images
procedural:640          fewer of them; a tenth more, 64 at least, for validation
procedural:640x96       the same with a longer side of 96 pixels
cifar10, mnist, …       torchvision's, by the names of `catalog.NAMED_DATA`
data/birds, ~/birds     an image folder
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.datasets import built, copies, folder, make, marker
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.marker import FolderMarker, make_data_home_path
from gpubench.datasets.pool import Progress
from gpubench.schema import catalog
from gpubench.schema.catalog import Files

_PROCEDURAL = re.compile(rf"{catalog.PROCEDURAL}(?::(\d+)(?:x(\d+))?)?")
NOTHING: frozenset[str] = frozenset()


def collect_data_facts(data: str, without: frozenset[str] = NOTHING) -> DataFacts:
    """Facts of what `data` names; nothing is made or downloaded. Images on disk are listed each time.

    `without`: paths, relative to a folder of the user's, of images that are left out.
    Raises UsageError for an unknown name, and for a folder that does not exist or has no images.
    """
    if (recipe := _parse_procedural_recipe(data)) is not None:
        return folder.make_facts_from_marker(recipe, data, make.make_procedural_root_path(recipe))
    if (known := catalog.NAMED_DATA.get(data)) is not None:
        return DataFacts(
            name=data,
            kind="named",
            fingerprint=data,
            train_images=known.train_images,
            val_images=known.val_images,
            num_classes=known.num_classes,
            size=known.size,
        )
    if "/" not in data and not Path(data).exists():
        raise make_unknown_name_error(
            "data", data, (catalog.PROCEDURAL, *catalog.NAMED_DATA, "or a path with a slash")
        )
    return folder.collect_folder_facts(Path(data).expanduser(), without)


def make_user_folder_path(data: str) -> Path | None:
    """The absolute path of the user's image folder that `data` names; None where it names something else."""
    if _parse_procedural_recipe(data) is not None or data in catalog.NAMED_DATA:
        return None
    return Path(data).expanduser().absolute()


def ensure_variant_files(
    data: str, files: Files, size: int, without: frozenset[str] = NOTHING, *, progress: Progress | None = None
) -> Path:
    """Sees to it that the files a variant reads lie on disk, and returns their folder.

    `size` is the side in pixels of resized and decoded images. torchvision's data sets are fetched by whoever
    reads them: theirs is the folder to fetch them into. `none` needs nothing on disk. Copies lack the images of
    `without`; a folder that is read itself has them still. Raises as `collect_data_facts`, `make_procedural_images`
    and `make_copy` do.
    """
    if data in catalog.NAMED_DATA:
        return make_data_home_path() / "torchvision"
    if files == "none":
        return make_data_home_path()
    if (recipe := _parse_procedural_recipe(data)) is not None:
        source = make.make_procedural_root_path(recipe)
        make.make_procedural_images(recipe, source, progress=progress)
    else:
        source = Path(str(collect_data_facts(data, without).root))
    if files == "full" or (files == "resized" and _is_resized_copy(source, size)):
        return source
    return copies.make_copy(files, source, size=size, progress=progress, without=without)


@dataclass(frozen=True, kw_only=True, slots=True)
class MakingStep:
    """Images that are to be made before a trial can read them."""

    what: str
    """`10,240 + 1,024 images to make`."""
    place: Path
    estimate_bytes: int

    def __str__(self) -> str:
        return f"{self.what} (about {built.format_bytes(self.estimate_bytes)})"


def plan_making_steps(
    data: str, files: Files, size: int, without: frozenset[str] = NOTHING
) -> list[MakingStep]:
    """What `ensure_variant_files` would have to make first, in that order; empty where all is there.

    Raises as `collect_data_facts` does, and where something else lies in a place that is needed.
    """
    if files == "none" or data in catalog.NAMED_DATA:
        return []
    facts = collect_data_facts(data, without)
    count = f"{facts.train_images:,} + {facts.val_images:,} images"
    steps = []
    if (recipe := _parse_procedural_recipe(data)) is not None:
        place = make.make_procedural_root_path(recipe)
        if not built.is_folder_built(place, recipe):
            need = make.estimate_procedural_bytes(recipe)
            steps.append(MakingStep(what=f"{count} to make", place=place, estimate_bytes=need))
    if files != "full" and not (files == "resized" and _is_resized_copy(Path(str(facts.root)), size)):
        place = copies.make_copy_path(files, facts, size)
        if not built.is_folder_built(place, copies.make_copy_marker(files, facts, size)):
            what = f"{count} to {'decode' if files == 'decoded' else 'resize'} to {size}×{size}"
            need = copies.estimate_copy_bytes(files, facts, size)
            steps.append(MakingStep(what=what, place=place, estimate_bytes=need))
    return steps


def _parse_procedural_recipe(data: str) -> FolderMarker | None:
    """The recipe that `data` names, or None where it names something else."""
    if data.partition(":")[0] != catalog.PROCEDURAL:
        return None
    match = _PROCEDURAL.fullmatch(data)
    if match is None:
        raise UsageError(
            f"unknown data {data!r}: write procedural, procedural:IMAGES or procedural:IMAGESxSIDE"
        )
    if match[1] is None:
        return make.make_procedural_marker()
    images, size = int(match[1]), make.SIZE
    if match[2] is not None:
        side = int(match[2])
        size = (side, round(side * make.SIZE[1] / make.SIZE[0]))
    return make.make_procedural_marker(images, make.choose_val_count(images), size=size)


def _is_resized_copy(source: Path, size: int) -> bool:
    """Whether the folder is itself such a copy."""
    copy_marker = marker.read_marker(source)
    return copy_marker is not None and copy_marker.recipe == "resized" and copy_marker.size == size
