"""What `gpubench data` does."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

from gpubench.basics.errors import UsageError
from gpubench.basics.stopping import unwind_on_signals
from gpubench.datasets import bad_images, copies, locate
from gpubench.datasets import make as making
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.folder import collect_folder_facts
from gpubench.plan.experiment import parse_bad_images_policy
from gpubench.render.progress_bar import show_progress
from gpubench.results.whole_file import write_whole
from gpubench.schema import catalog

NAMES = "left-out.txt"
"""In a resized copy: the images of its source that it lacks."""

STOPPED = (
    "stopped; what was half made is removed, and the same command begins it anew",
    "gpubench: ended at once; what is half made stays until the same command runs again",
)
"""What is said after a first and after a second signal."""


def _print_data_facts(facts: DataFacts) -> None:
    classes = f"{facts.num_classes} class{'es' if facts.num_classes > 1 else ''}"
    print(f"{facts.root}: {facts.train_images:,} + {facts.val_images:,} images, {classes}")


def make(folder: Path | None, *, images: int, val_images: int | None, classes: int, seed: int) -> None:
    """`gpubench data make`. `val_images`: None: as many as go with so many for training."""
    val_images = making.choose_val_count(images) if val_images is None else val_images
    recipe = making.make_procedural_marker(images, val_images, classes, seed)
    where = folder or making.make_procedural_root_path(recipe)
    with (
        unwind_on_signals(*STOPPED),
        show_progress("making images", work=f"making images in {where}") as progress,
    ):
        facts = making.make_procedural_images(recipe, where, progress=progress)
    _print_data_facts(facts)


def resize(source: Path, target: Path, *, size: int, bad: str = "fail") -> None:
    """`gpubench data resize`. `bad`: what becomes of images that can't be used."""
    if os.path.realpath(target) == os.path.realpath(source):
        raise UsageError("SRC and DST are the same folder; name a new one")
    unusable: tuple[bad_images.BadImage, ...] = ()
    if parse_bad_images_policy(bad) == "skip":
        with (
            unwind_on_signals(*STOPPED),
            show_progress("trying all images", work=f"trying all images of {source}") as progress,
        ):
            unusable = bad_images.find_bad_images(source.absolute(), progress)
    without = [image.path for image in unusable]
    work = f"resizing {source} to {size} pixels a side in {target}"
    with unwind_on_signals(*STOPPED), show_progress("resizing", work=work) as progress:
        copies.make_copy("resized", source, target, size=size, progress=progress, without=without)
        facts = collect_folder_facts(target.absolute())
    names = target / NAMES if unusable else None
    if names is not None:
        write_whole(names, bad_images.format_bad_images_file(unusable))
    used = facts.train_images + facts.val_images
    for line in bad_images.describe_bad_images(unusable, used, source, names):
        print(f"gpubench: {line}" if not line.startswith(" ") else line, file=sys.stderr)
    _print_data_facts(facts)


def print_known_names() -> None:
    """`gpubench data list`."""
    out = ["variants (--variant):"]
    out += [f"  {name:<12}  {variant.answers}" for name, variant in catalog.VARIANTS.items()]
    out += ["", "data (--data):"]
    facts = locate.collect_data_facts(catalog.PROCEDURAL)
    counts = f"{facts.train_images:,} + {facts.val_images:,} images, {facts.num_classes} classes"
    out += [f"  {catalog.PROCEDURAL:<13}  {counts}, made here; procedural:640 makes 640 of them"]
    for name, named in catalog.NAMED_DATA.items():
        out += [
            f"  {name:<13}  {named.train_images:,} + {named.val_images:,} images of {named.size}×{named.size}"
        ]
    out += ["  PATH           any folder of CLASS/*.jpg, or train/CLASS/*.jpg and val/CLASS/*.jpg"]
    out += ["", "models (--model):"]
    out += textwrap.wrap(
        ", ".join(name for name in catalog.list_model_names() if name not in catalog.LOADS),
        78,
        initial_indent="  ",
        subsequent_indent="  ",
    )
    out += ["  FILE.py:FUNCTION  a model of your own"]
    out += ["", "known loads (--model), and what their size is (--batch-size):"]
    out += [
        f"  {name:<12}  {load.size}, {load.usual_size:,} if not given; a step: {load.work}"
        for name, load in catalog.LOADS.items()
    ]
    sys.stdout.write("\n".join(out) + "\n")
