"""Transforms of a user's own variants: the names and arguments that there are, known without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.basics.errors import UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.schema import catalog


def check_transforms(name: str, variant: catalog.Variant) -> None:
    """Raises UsageError for a transform of variant `name` that there is not, and for a wrong argument on the GPU.

    Arguments on the CPU are torchvision's own: only torchvision knows them.
    """
    for transform in variant.cpu:
        _check_name(name, "on the CPU", transform, catalog.TORCHVISION_TRANSFORMS)
    for transform in variant.gpu:
        transform_name = _check_name(name, "on the GPU", transform, tuple(catalog.DEVICE_TRANSFORMS))
        valid = catalog.DEVICE_TRANSFORMS[transform_name]
        for argument in transform[transform_name]:
            if argument not in valid:
                raise UsageError(
                    f"variant {shown(name)}: {unknown(f'argument of {transform_name} on the GPU', argument, valid)}"
                )


def _check_name(
    name: str, where: str, transform: Mapping[str, Mapping[str, Any]], valid: tuple[str, ...]
) -> str:
    """The name of the transform, if it is one of `valid`."""
    if len(transform) != 1:
        raise UsageError(
            f"variant {shown(name)}: a transform reads Name or {{ Name = {{ argument = value }} }}, "
            f"one for each brace, not {', '.join(transform) or 'nothing'}"
        )
    (transform_name,) = transform
    if transform_name not in valid:
        raise UsageError(f"variant {shown(name)}: {unknown(f'transform {where}', transform_name, valid)}")
    return transform_name
