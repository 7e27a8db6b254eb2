"""Transforms of one uint8 image in a loader worker: torchvision.transforms.v2, by name."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

from gpubench.basics.errors import UsageError, unknown
from gpubench.schema.order import Transforms


class Evaluation:
    """What validation images get: resize and centre crop; nothing where they have the right size already."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._short_side = round(size * 256 / 224)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        if image.shape[-2:] == (self._size, self._size):
            return image
        resized = F.resize_image(image, [self._short_side], antialias=True)
        cropped: torch.Tensor = F.center_crop_image(resized, [self._size, self._size])
        return cropped


def names() -> list[str]:
    """Every transform that can be asked for."""
    classes = inspect.getmembers(v2, inspect.isclass)
    return [name for name, cls in classes if issubclass(cls, v2.Transform) and cls is not v2.Transform]


def build_transforms(transforms: Transforms) -> v2.Transform:
    """The named transforms in order. Raises UsageError for an unknown name or a wrong argument."""
    return v2.Compose([_build(name, arguments) for name, arguments in transforms] or [v2.Identity()])


def _build(name: str, arguments: dict[str, Any]) -> v2.Transform:
    valid = names()
    if name not in valid:
        raise unknown("transform", name, valid)
    cls = getattr(v2, name)
    try:
        return cls(**{key: _value(key, value) for key, value in arguments.items()})
    except (TypeError, ValueError) as error:
        raise UsageError(f"transform {name}: {error}") from error


def _value(key: str, value: Any) -> Any:
    return InterpolationMode(value) if key == "interpolation" and isinstance(value, str) else value
