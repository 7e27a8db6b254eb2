"""A copy of an image folder as squares of one size: what it says of itself once it is finished, and where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpubench.basics.errors import UsageError
from gpubench.datasets.facts import DataFacts
from gpubench.datasets.home import data_home
from gpubench.datasets.marker import Marker


@dataclass(frozen=True, kw_only=True, slots=True)
class SquareCopy:
    """One way to make such copies."""

    recipe: str
    """What becomes of the images: they are `resized` or `decoded`."""
    version: int

    def marker(self, source: DataFacts, size: int) -> Marker:
        """What the finished copy will say of itself. Raises UsageError for a size that can't be."""
        if size < 1:
            raise UsageError(f"images can't be {self.recipe} to {size} pixels: ask for 1 or more")
        return Marker(
            recipe=self.recipe,
            version=self.version,
            parameters={"source": source.fingerprint, "size": size},
            train_images=source.train_images,
            val_images=source.val_images,
            num_classes=source.num_classes,
            size=size,
        )

    def root(self, source: DataFacts, size: int) -> Path:
        """Where the copy lies unless somebody names a folder."""
        return data_home() / f"{self.recipe}-{source.fingerprint}-{size}"
