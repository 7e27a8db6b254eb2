"""What `gpubench data` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gpubench import catalog
from gpubench.datasets import locate
from gpubench.datasets import make as making
from gpubench.datasets import resize as resizing
from gpubench.datasets.facts import DataFacts
from gpubench.errors import UsageError


@contextmanager
def _bar(label: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _say(facts: DataFacts) -> None:
    classes = f"{facts.num_classes} class{'es' if facts.num_classes > 1 else ''}"
    print(f"{facts.root}: {facts.train_images:,} + {facts.val_images:,} images, {classes}")


def make(folder: Path | None, *, images: int, val_images: int, classes: int, seed: int) -> None:
    """`gpubench data make`."""
    with _bar("making images") as progress:
        facts = making.make(
            folder, images=images, val_images=val_images, classes=classes, seed=seed, progress=progress
        )
    _say(facts)


def resize(source: Path, target: Path, *, size: int) -> None:
    """`gpubench data resize`."""
    if os.path.realpath(target) == os.path.realpath(source):
        raise UsageError("SRC and DST are the same folder; name a new one")
    with _bar("resizing") as progress:
        facts = resizing.resize(source, target, size=size, progress=progress)
    _say(facts)


def show() -> None:
    """`gpubench data list`."""
    out = ["variants (--variant):"]
    out += [f"  {name:<12}  {variant.answers}" for name, variant in catalog.VARIANTS.items()]
    out += ["", "data (--data):"]
    facts = locate.facts_of(catalog.PROCEDURAL)
    counts = f"{facts.train_images:,} + {facts.val_images:,} images, {facts.num_classes} classes"
    out += [f"  {catalog.PROCEDURAL:<13}  {counts}, made here; procedural:640 makes 640 of them"]
    for name, named in catalog.NAMED_DATA.items():
        out += [
            f"  {name:<13}  {named.train_images:,} + {named.val_images:,} images of {named.size}×{named.size}"
        ]
    out += ["  PATH           any folder of CLASS/*.jpg, or train/CLASS/*.jpg and val/CLASS/*.jpg"]
    sys.stdout.write("\n".join(out) + "\n")
