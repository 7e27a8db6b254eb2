"""The file that says what a folder was made from: the last thing written, without it nothing is finished."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.home import make_data_home_path

NAME = "gpubench-data.json"


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


@dataclass(frozen=True, kw_only=True, slots=True)
class SquareCopyKind:
    """One way to make such copies."""

    recipe: str
    """What becomes of the images: they are `resized` or `decoded`."""
    version: int

    def make_marker(self, source: DataFacts, size: int) -> FolderMarker:
        """What the finished copy will say of itself. Raises UsageError for a size that can't be."""
        if size < 1:
            raise UsageError(f"images can't be {self.recipe} to {size} pixels: ask for 1 or more")
        return FolderMarker(
            recipe=self.recipe,
            version=self.version,
            parameters={"source": source.fingerprint, "size": size},
            train_images=source.train_images,
            val_images=source.val_images,
            num_classes=source.num_classes,
            size=size,
        )

    def make_root_path(self, source: DataFacts, size: int) -> Path:
        """Where the copy lies unless somebody names a folder."""
        return make_data_home_path() / f"{self.recipe}-{source.fingerprint}-{size}"
