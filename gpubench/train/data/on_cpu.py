"""Transforms of one uint8 image in a loader worker: torchvision.transforms.v2, by name."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

from gpubench.errors import UsageError, unknown
from gpubench.train.data.spec import Transforms


class RandomResizedCrop(v2.RandomResizedCrop):  # type: ignore[misc]  # torchvision has no types
    """torchvision's own, draw for draw and pixel for pixel, in two thirds of the time.

    The crop of a decoded image has gaps between its rows. Packed first, it is resized without being split
    into planes, and the result keeps the decoder's layout, which is also the batch's.
    """

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        crop = F.crop_image(image, **self.make_params([image]))
        if _interleaved(image):
            crop = crop.unsqueeze(0).contiguous(memory_format=torch.channels_last).squeeze(0)
        resized: torch.Tensor = F.resize_image(
            crop, self.size, interpolation=self.interpolation, antialias=self.antialias
        )
        return resized


class RandomHorizontalFlip(v2.RandomHorizontalFlip):  # type: ignore[misc]
    """torchvision's own without the search for images in nested inputs, which takes longer than the flip."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return F.horizontal_flip_image(image) if torch.rand(1) < self.p else image


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


QUICKER: dict[str, type[v2.Transform]] = {
    "RandomResizedCrop": RandomResizedCrop,
    "RandomHorizontalFlip": RandomHorizontalFlip,
}
"""Ours that stand in for torchvision's: the same pixels from the same draws."""


class Chain:
    """Transforms one after the other. Empty, it is false and returns its input."""

    def __init__(self, steps: list[v2.Transform]) -> None:
        self._steps = steps
        # A module's own __call__ looks for hooks that nobody sets.
        self._calls = [step.forward for step in steps]

    def __len__(self) -> int:
        return len(self._steps)

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        for call in self._calls:
            image = call(image)
        return image


def names() -> list[str]:
    """Every transform that can be asked for."""
    classes = inspect.getmembers(v2, inspect.isclass)
    return [name for name, cls in classes if issubclass(cls, v2.Transform) and cls is not v2.Transform]


def chain(transforms: Transforms) -> Chain:
    """The named transforms in order. Raises UsageError for an unknown name or a wrong argument."""
    return Chain([_build(name, arguments) for name, arguments in transforms])


def _build(name: str, arguments: dict[str, Any]) -> v2.Transform:
    valid = names()
    if name not in valid:
        raise unknown("transform", name, valid)
    cls = QUICKER.get(name) or getattr(v2, name)
    try:
        return cls(**{key: _value(key, value) for key, value in arguments.items()})
    except (TypeError, ValueError) as error:
        raise UsageError(f"transform {name}: {error}") from error


def _value(key: str, value: Any) -> Any:
    return InterpolationMode(value) if key == "interpolation" and isinstance(value, str) else value


def _interleaved(image: torch.Tensor) -> bool:
    return image.stride(0) == 1 and image.shape[0] > 1
