"""Transforms of a batch on the device, and its normalisation. Nothing here makes the host wait.

Images come as uint8 or float B × C × H × W in 0 … 255. Every image gets draws of its own from a generator
that lives on the same device (torchvision's v2 transforms draw once for a whole batch).
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.schema.order import Transforms

Step = Callable[[torch.Tensor, torch.Generator], torch.Tensor]

TRIES = 10
"""Draws of a crop before the fallback, as in torchvision."""


def random_horizontal_flip(
    images: torch.Tensor, generator: torch.Generator, *, p: float = 0.5
) -> torch.Tensor:
    """Each image mirrored with probability `p`."""
    chosen = torch.rand(len(images), 1, 1, 1, device=images.device, generator=generator) < p
    return torch.where(chosen, images.flip(-1), images)


def random_resized_crop(
    images: torch.Tensor,
    generator: torch.Generator,
    *,
    size: int | None = None,
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> torch.Tensor:
    """From each image a random part, resized to `size` (its own where None) bilinearly, as float32.

    Draws as torchvision does. Antialiasing is not needed where the part is no larger than `size`, which holds
    for images that were resized beforehand.
    """
    side = _read_square_side(images)
    out = size or side
    first, extent = (
        v.unsqueeze(2) for v in sample_crop_boxes(len(images), side, generator, scale=scale, ratio=ratio)
    )
    centres = torch.arange(0.5, out, device=images.device) * (1 / out)
    # Clamped to the part's own pixels: a crop that is resized knows nothing of its surroundings.
    at = torch.clamp(first + centres * extent - 0.5, first, first + extent - 1)
    y, x = (at * (2 / side) + (1 / side - 1)).unbind()  # as grid_sample counts: −1 to 1 from edge to edge
    grid = torch.stack((x[:, None, :].expand(-1, out, -1), y[:, :, None].expand(-1, -1, out)), dim=-1)
    return F.grid_sample(images.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)


def sample_crop_boxes(
    count: int,
    side: int,
    generator: torch.Generator,
    *,
    scale: tuple[float, float],
    ratio: tuple[float, float],
) -> tuple[torch.Tensor, torch.Tensor]:
    """(top, left) and (height, width) of `count` crops of squares, each (2, count), whole numbers.

    Distributed as torchvision's: a box that doesn't fit is drawn again; after ten draws the largest centred
    one is taken. Both sides go through each kernel together, for it is their number that costs.
    """
    device = generator.device
    draws = torch.rand(2, count, TRIES, device=device, generator=generator)
    edge = torch.sqrt(draws[0] * (scale[1] - scale[0]) + scale[0]) * side
    low, high = math.log(ratio[0]) / 2, math.log(ratio[1]) / 2
    stretch = torch.exp(draws[1] * (high - low) + low)
    tried = torch.round(torch.stack((edge / stretch, edge * stretch)))
    fits = ((tried > 0) & (tried <= side)).all(0)
    chosen = fits.to(torch.uint8).argmax(1, keepdim=True)  # the first that fits; 0 where none does
    has_fit = fits.gather(1, chosen)[:, 0]
    extent = tried.gather(2, chosen.expand(2, -1, -1))[..., 0]
    spare = side - extent
    # The minimum is for a draw so near to 1 that the product rounds up.
    first = torch.floor(torch.rand(2, count, device=device, generator=generator) * (spare + 1)).minimum(spare)
    # The largest part that has an allowed ratio, where no draw fits; as torchvision rounds it.
    for k, last in enumerate((round(side / max(1.0, ratio[0])), round(side * min(1.0, ratio[1])))):
        extent[k].masked_fill_(~has_fit, last)
        first[k].masked_fill_(~has_fit, (side - last) // 2)
    return first, extent


def _read_square_side(images: torch.Tensor) -> int:
    height, width = images.shape[-2:]
    if height != width:
        raise UsageError(f"images on the device are squares, not {height} × {width}")
    return int(height)


def random_crop(
    images: torch.Tensor, generator: torch.Generator, *, size: int | None = None, padding: int = 0
) -> torch.Tensor:
    """From each image with `padding` black pixels around it a random square of `size` (None: its own)."""
    side = _read_square_side(images)
    out = size or side
    spare = side + 2 * padding - out
    if spare < 0:
        raise UsageError(f"RandomCrop: a square of {out} doesn't fit into one of {side} padded by {padding}")
    count, device = len(images), images.device
    padded = F.pad(images, (padding,) * 4)
    steps = torch.arange(out, device=device)
    top_edge = torch.randint(spare + 1, (count, 1), device=device, generator=generator)
    left_edge = torch.randint(spare + 1, (count, 1), device=device, generator=generator)
    rows, columns = (top_edge + steps)[:, None, :, None], (left_edge + steps)[:, None, None, :]
    which = torch.arange(count, device=device)[:, None, None, None]
    channel = torch.arange(images.shape[1], device=device)[None, :, None, None]
    return padded[which, channel, rows, columns]


TRANSFORMS: dict[str, Callable[..., torch.Tensor]] = {
    "RandomCrop": random_crop,
    "RandomHorizontalFlip": random_horizontal_flip,
    "RandomResizedCrop": random_resized_crop,
}


def build_device_transforms(transforms: Transforms) -> list[Step]:
    """The named transforms in order. Raises UsageError for an unknown name or a wrong argument."""
    return [_make_device_transform(name, arguments) for name, arguments in transforms]


def _make_device_transform(name: str, arguments: dict[str, object]) -> Step:
    if name not in TRANSFORMS:
        raise make_unknown_name_error("transform on the device", name, TRANSFORMS)
    function = TRANSFORMS[name]
    try:
        inspect.signature(function).bind(None, None, **arguments)
    except TypeError as error:
        raise UsageError(f"transform {name} on the device: {error}") from error
    return functools.partial(function, **arguments)


MEAN_STD: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {
    3: ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),  # ImageNet's, which torchvision's models expect
    1: ((0.449,), (0.226,)),  # the same, averaged over colours
}


class Normalise:
    """(x / 255 − mean) / std in float32, laid out anew: one kernel on a GPU."""

    def __init__(self, *, channels: int, device: torch.device, memory_format: torch.memory_format) -> None:
        mean, std = (torch.tensor(v, dtype=torch.float64).view(1, channels, 1, 1) for v in MEAN_STD[channels])
        self._scale = (1 / (255 * std)).float().to(device)
        self._offset = (-mean / std).float().to(device)
        self._memory_format = memory_format

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Images as uint8 or float in 0 … 255, any layout. Returns a new tensor."""
        out = torch.empty(
            images.shape, dtype=torch.float32, device=images.device, memory_format=self._memory_format
        )
        return torch.addcmul(self._offset, images, self._scale, out=out)
