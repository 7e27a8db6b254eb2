"""Transforms of one uint8 image in a loader worker: torchvision.transforms.v2, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torchvision.transforms import InterpolationMode, v2

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.schema.order import Transforms


def make_evaluation_transform(size: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """What validation images get: resize and centre crop; nothing where they have the right size already."""
    crop = v2.Compose([v2.Resize(round(size * 256 / 224), antialias=True), v2.CenterCrop(size)])
    return lambda image: image if image.shape[-2:] == (size, size) else crop(image)


def list_transform_names() -> list[str]:
    """Every transform that can be asked for."""
    classes = inspect.getmembers(v2, inspect.isclass)
    return [name for name, cls in classes if issubclass(cls, v2.Transform) and cls is not v2.Transform]


def build_cpu_transforms(transforms: Transforms) -> v2.Transform:
    """The named transforms in order. Raises UsageError for an unknown name or a wrong argument."""
    return v2.Compose(
        [_build_transform(name, arguments) for name, arguments in transforms] or [v2.Identity()]
    )


def _build_transform(name: str, arguments: dict[str, Any]) -> v2.Transform:
    valid = list_transform_names()
    if name not in valid:
        raise make_unknown_name_error("transform", name, valid)
    cls = getattr(v2, name)
    try:
        mode = arguments.get("interpolation")
        named = {"interpolation": InterpolationMode(mode)} if isinstance(mode, str) else {}
        return cls(**arguments | named)
    except (TypeError, ValueError) as error:
        raise UsageError(f"transform {name}: {error}") from error
