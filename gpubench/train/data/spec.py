"""What a rank is told about its images. Arrives as JSON from the parent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from gpubench.basics.errors import UsageError

Kind = Literal["folder", "decoded", "named", "none"]
Transforms = tuple[tuple[str, dict[str, Any]], ...]
"""Name and arguments of each transform, in order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSpec:
    """Where the images lie and what is done to them on the way to the network."""

    kind: Kind
    """`folder`: image files; `decoded`: a memory map; `named`: torchvision's own; `none`: synthetic."""
    root: str | None = None
    """The folder or the memory map. Of a named data set: the folder that torchvision keeps it in."""
    left_out: str | None = None
    """A JSON list of paths, relative to `root`, of images that are left out; for `folder`."""
    name: str | None = None
    """Key of `catalog.NAMED_DATA`, for `named`."""
    input_size: int
    """Side of the square input in pixels."""
    num_classes: int
    channels: int = 3
    train_images: int | None = None
    """Use this many training images, spread evenly over the classes; None: all."""
    cpu: Transforms = ()
    """torchvision.transforms.v2 classes, applied to one uint8 image in a loader worker."""
    gpu: Transforms = ()
    """Functions of `on_device.TRANSFORMS`, applied to a batch on the device, drawing per image."""
    seed: int = 0

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DataSpec:
        """The spec of plain JSON values. Raises UsageError for unknown keys and malformed transforms."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise UsageError(f"a data spec has no {', '.join(unknown)}")
        size = int(values["input_size"])
        lists = {key: transforms(values.get(key, ()), size) for key in ("cpu", "gpu")}
        return cls(**{**values, **lists})


def transforms(items: Any, input_size: int) -> Transforms:
    """Names and arguments of ["Name", {"Name": {argument: value}}, …]; "$input_size" becomes the number."""
    return tuple(_transform(item, input_size) for item in items)


def _transform(item: Any, input_size: int) -> tuple[str, dict[str, Any]]:
    if isinstance(item, str):
        return item, {}
    if isinstance(item, Mapping) and len(item) == 1:
        ((name, arguments),) = item.items()
        if isinstance(arguments, Mapping):
            return str(name), {key: _fill(value, input_size) for key, value in arguments.items()}
    raise UsageError(f"a transform reads Name or {{Name = {{argument = value}}}}, not {item!r}")


def _fill(value: Any, input_size: int) -> Any:
    if value == "$input_size":
        return input_size
    return [_fill(v, input_size) for v in value] if isinstance(value, (list, tuple)) else value
