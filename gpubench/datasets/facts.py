"""What the plan needs to know of a data set, and what stands beside every result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFacts:
    """A data set as the plan sees it, whether or not it lies on disk yet."""

    name: str
    """What the user called it: `procedural`, a torchvision name, or the path of a folder."""
    kind: Literal["folder", "named", "none"]
    """An image folder, a torchvision data set, or no data at all."""
    root: str | None = None
    """Absolute path of an image folder; None for any other kind."""
    fingerprint: str
    """Hash of the content, wherever it lies: part of a trial's identity."""
    train_images: int
    val_images: int
    """0 where there is no validation split."""
    num_classes: int
    size: int | None = None
    """Side in pixels where all images are squares of one size; None where they differ."""
    skipped_images: int = 0
    """Images of the folder that are left out because they can't be decoded. The other counts are without them."""

    def as_dict(self) -> dict[str, Any]:
        """The facts as plain JSON values."""
        return asdict(self)


NO_DATA = DataFacts(name="none", kind="none", fingerprint="none", train_images=0, val_images=0, num_classes=0)
"""Of a command: what it reads nobody knows."""
