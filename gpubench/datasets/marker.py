"""What gpubench makes from images: the folder that holds it all, and the file that says what a folder was made from.

That file is the last thing written: without it nothing is finished.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UnusableError

NAME = "gpubench-data.json"


def make_data_home_path() -> Path:
    """Where data sets are made and kept: $GPUBENCH_DATA, else gpubench/data in the user's cache folder.

    The folder need not exist yet. Raises UnusableError where there is neither the variable nor a home.
    """
    if named := os.environ.get("GPUBENCH_DATA"):
        return Path(named).expanduser().absolute()
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache).absolute() / "gpubench" / "data"
    try:
        return Path.home() / ".cache" / "gpubench" / "data"
    except RuntimeError as error:
        raise UnusableError("no home folder to keep images in: set GPUBENCH_DATA to a folder") from error


def ensure_writable_folder(folder: Path) -> None:
    """Makes `folder` if need be. Raises UnusableError unless files can be written into it."""
    reason = "no permission"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return
    except OSError as error:
        reason = error.strerror or str(error)
    raise UnusableError(f"can't write into {folder} ({reason}): set GPUBENCH_DATA to a folder with room")


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderMarker:
    """How a folder was made, and what lies in it."""

    recipe: str
    """`procedural`, `resized` or `decoded`."""
    version: int
    """The recipe's version: goes up when the same parameters give other images."""
    parameters: Mapping[str, Any]
    """All that decides the content. Paths play no part."""
    train_images: int
    val_images: int
    num_classes: int
    size: int | None
    """Side of square images in pixels, None where they differ."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits that stand for the content."""
        content = {"recipe": self.recipe, "version": self.version, **self.parameters}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def counts(self) -> dict[str, int]:
        """Split -> how many images it has."""
        return {"train": self.train_images, "val": self.val_images}

    def write(self, folder: Path) -> None:
        """Leaves the marker in `folder`."""
        values = {**asdict(self), "fingerprint": self.fingerprint}
        (folder / NAME).write_text(json.dumps(values, indent=2) + "\n")


def read_marker(folder: Path) -> FolderMarker | None:
    """The marker in `folder`; None where there is none that this version of gpubench understands."""
    try:
        values = json.loads((folder / NAME).read_text())
        fingerprint = values.pop("fingerprint")
        marker = FolderMarker(**values)
        return marker if marker.fingerprint == fingerprint else None
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError, AttributeError):
        return None
