"""`gpubench data …`: folders of images. Imports nothing heavy at the top, so that --help answers at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli.options import declare_count


def make(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where; none: the place where sweeps look.")
    ] = None,
    images: Annotated[int, declare_count("--images", "Training images, 1 or more.", least=1)] = 10_240,
    val_images: Annotated[
        int | None,
        declare_count(
            "--val-images", "Validation images, 1 or more; none: a tenth as many, 64 at least.", least=1
        ),
    ] = None,
    classes: Annotated[int, declare_count("--classes", "Classes, 1 or more.", least=1)] = 16,
    seed: Annotated[int, declare_count("--seed", "Seed of every image, 0 or more.")] = 0,
) -> None:
    """Build the procedural JPEG images."""
    from gpubench.commands import data as command

    command.make(folder, images=images, val_images=val_images, classes=classes, seed=seed)


def resize(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="Image folder.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="New folder.")],
    size: Annotated[
        int, declare_count("--size", "Side of the square copies in pixels, 8 or more.", least=8)
    ] = 224,
    bad: Annotated[
        str,
        typer.Option(
            "--bad-images",
            metavar="POLICY",
            help="fail, or skip: leave images out that can't be decoded.",
        ),
    ] = "fail",
) -> None:
    """Make the pre-resized copy of an image folder."""
    from gpubench.commands import data as command

    command.resize(source, target, size=size, bad=bad)


def print_known_names() -> None:
    """List the variants, data sets and models known by name."""
    from gpubench.commands import data as command

    command.print_known_names()
