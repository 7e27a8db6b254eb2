"""`gpubench data …`: folders of images."""

from __future__ import annotations

from pathlib import Path

import typer

from gpubench.cli.options import declare_text, declare_whole_number
from gpubench.cli.parameters import delegate_to_function


@delegate_to_function("data.make")
def make(
    folder: Path | None = typer.Argument(
        None, metavar="FOLDER", help="Where; none: the place where sweeps look."
    ),
    images: int = declare_whole_number("--images", "Training images, 1 or more.", 10_240, least=1),
    val_images: int | None = declare_whole_number(
        "--val-images", "Validation images, 1 or more; none: a tenth as many, 64 at least.", None, least=1
    ),
    classes: int = declare_whole_number("--classes", "Classes, 1 or more.", 16, least=1),
    seed: int = declare_whole_number("--seed", "Seed of every image, 0 or more.", 0),
) -> None:
    """Build the procedural JPEG images."""


@delegate_to_function("data.resize")
def resize(
    source: Path = typer.Argument(metavar="SRC", help="Image folder."),
    target: Path = typer.Argument(metavar="DST", help="New folder."),
    size: int = declare_whole_number(
        "--size", "Side of the square copies in pixels, 8 or more.", 224, least=8
    ),
    bad: str = declare_text(
        "--bad-images", "POLICY", "fail, or skip: leave images out that can't be decoded.", default="fail"
    ),
) -> None:
    """Make the pre-resized copy of an image folder."""


@delegate_to_function("data.print_known_names")
def print_known_names() -> None:
    """List the variants, data sets and models known by name."""
