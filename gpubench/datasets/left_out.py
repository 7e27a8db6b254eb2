"""Images that are left out because they can't be used: how that is said, and the list of their names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.quoted import escaped
from gpubench.datasets.bad_images import BadImage

NAMED = 20
"""So many are named on a terminal; a file names them all."""


def describe_bad_images(bad: Sequence[BadImage], used: int, folder: Path, names: Path | None) -> list[str]:
    """What is said of a folder whose bad images are left out. `used`: its other images. `names`: where all stand."""
    if not bad:
        return []
    verb = "is" if len(bad) == 1 else "are"
    counted = f"{len(bad):,} of {len(bad) + used:,} images in {folder} can't be used and {verb} left out"
    text_lines = [f"{counted} (--bad-images skip):"]
    text_lines += [f"  {escaped(image.path)}: {escaped(image.reason)}" for image in bad[:NAMED]]
    where = f"; {names} names them all" if names else ""
    if len(bad) > NAMED:
        text_lines.append(f"  and {len(bad) - NAMED:,} more{where}")
    return text_lines


def as_text(bad: Sequence[BadImage]) -> str:
    """All of them as a text file: a path and the reason in a line, a tab between them."""
    return "".join(f"{escaped(image.path)}\t{escaped(image.reason)}\n" for image in bad)
