"""What tests put in place of images, machines and processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Images:
    """Facts of images that lie nowhere."""

    fingerprint: str = "images-1"
    train_images: int = 10_240
    num_classes: int = 16
    size: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """`plan.Sources` by hand: name -> images, file -> hash. Any other name has the same plain images."""

    images: Mapping[str, Images] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)

    def data(self, name: str) -> Images:
        return self.images.get(name, Images())

    def model(self, name: str) -> str:
        return self.models.get(name, "")
