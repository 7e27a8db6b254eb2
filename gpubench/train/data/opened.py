"""One rank's images, opened: what the training loop sees."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import folder
from gpubench.schema.order import DataSpec
from gpubench.train.data import loaders, resident
from gpubench.train.data.decoded_source import decoded_source
from gpubench.train.data.folder_source import FolderSource
from gpubench.train.data.named_source import named_source
from gpubench.train.data.source import Source
from gpubench.train.data.upload import Upload

OnDevice = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), normalised, and labels (B,), int64."""


class Data(Protocol):
    """One rank's share of the images."""

    steps_per_epoch: int

    def train_epoch(self, epoch: int, steps: int | None = None) -> Iterator[Any]:
        """Batches of an epoch, or of its first `steps`: `iter(loader)` happens in this call, in the main thread.

        No batch is loaded beyond these, so once they are taken the next call finds idle loaders.
        `next` raises UnusableError for an image that can't be read.
        """
        ...

    def to_device(self, batch: Any, *, augment: bool = True) -> OnDevice:
        """The batch, copied (without waiting), transformed and normalised. `augment`: False for validation."""
        ...

    def validation(self) -> Iterator[Any] | None:
        """Batches of this rank's share of the validation split; None where there is no such split."""
        ...


def open_data(
    spec: DataSpec,
    *,
    device: torch.device,
    rank: int,
    world: int,
    batch_size: int,
    val_batch_size: int | None = None,
    workers: int,
    prefetch: int,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
    seed: int,
    reads: bool = True,
) -> Data:
    """Opens the images of `spec` for one rank, whose own are `batch_size` (images a step) and `workers`.

    `reads`: False for a rank that is given no images: it sees as many batches as the others, and all are empty.
    `val_batch_size`: images of a validation batch, which one device takes alone; None: as many as in training.

    `dtype` is that of the images on the device. Under autocast torch.float32 is always right; autocast's own
    dtype gives the same bits where the network begins with a convolution or a linear layer (which rounds the
    same float32 values) and saves that layer's cast.

    Raises UsageError for a batch larger than the data or unknown transforms, UnusableError where images can't
    be read.
    """
    if not reads:
        return Unread(spec, batch_size * world, device)
    if spec.kind == "none":
        return Synthetic(
            spec,
            device=device,
            world=world,
            batch_size=batch_size,
            dtype=dtype,
            memory_format=memory_format,
            seed=seed,
        )
    source = open_source(spec, "train")
    if len(source) < batch_size * world:
        raise UsageError(
            f"{len(source):,} training images don't fill a batch of {batch_size * world:,}: "
            "choose a smaller batch_size"
        )
    if int(source.labels.max()) >= spec.num_classes:
        raise UsageError(
            f"num_classes is {spec.num_classes}, but the data have {int(source.labels.max()) + 1} classes: "
            "leave it out, or raise it"
        )
    return Loaded(
        spec,
        source,
        Upload(spec, device=device, dtype=dtype, memory_format=memory_format),
        {
            "batch_size": batch_size,
            "rank": rank,
            "world": world,
            "workers": workers,
            "prefetch": prefetch,
            "seed": seed,
        },
        pin=device.type == "cuda",
        val_batch_size=val_batch_size or batch_size,
    )


def open_source(spec: DataSpec, split: str) -> Source:
    """Images of `split` (`train` or `val`)."""
    root = spec.root or ""
    limit = spec.train_images if split == "train" else None
    if spec.kind == "folder":
        without = json.loads(Path(spec.left_out).read_bytes()) if spec.left_out else ()
        return FolderSource(folder.listing(root, split, limit, without), spec.channels)
    if spec.kind == "decoded":
        return decoded_source(root, split, limit)
    if spec.kind == "named":
        return named_source(spec.name or "", root, split, spec.channels, limit)
    raise UnusableError(f"a data spec of kind {spec.kind!r} has no images")


class Loaded:
    """Images that are read, transformed and copied: every kind but synthetic."""

    def __init__(
        self,
        spec: DataSpec,
        source: Source,
        upload: Upload,
        share: dict[str, int],
        *,
        pin: bool,
        val_batch_size: int,
    ) -> None:
        self._spec = spec
        self._upload = upload
        self._share = share
        self._val_batch_size = val_batch_size
        self._train, self._sampler = loaders.train_loader(spec, source, pin=pin, **share)
        self.steps_per_epoch = len(self._train)

    def train_epoch(self, epoch: int, steps: int | None = None) -> Iterator[loaders.Batch]:
        self._upload.seed(self._share["seed"], self._share["rank"], epoch)
        self._sampler.begin(epoch, None if steps is None else steps * self._share["batch_size"])
        return iter(self._train)

    def to_device(self, batch: loaders.Batch, *, augment: bool = True) -> OnDevice:
        return self._upload(batch, augment=augment)

    def validation(self) -> Iterator[loaders.Batch] | None:
        source = open_source(self._spec, "val")
        share = {**self._share, "batch_size": self._val_batch_size}
        return iter(loaders.val_loader(self._spec, source, **share)) if len(source) else None


class Unread:
    """What a rank sees that reads no images."""

    def __init__(self, spec: DataSpec, whole_batch: int, device: torch.device) -> None:
        """`whole_batch`: images of a batch over all ranks."""
        self._spec = spec
        shape = (0, spec.channels, spec.input_size, spec.input_size)
        self._batch = torch.empty(shape, device=device), torch.empty(0, dtype=torch.int64, device=device)
        images = synthetic_images(spec) if spec.kind == "none" else len(open_source(spec, "train"))
        self.steps_per_epoch = images // whole_batch

    def train_epoch(self, epoch: int, steps: int | None = None) -> Iterator[OnDevice]:  # noqa: ARG002
        return itertools.repeat(self._batch, self.steps_per_epoch if steps is None else steps)

    def to_device(self, batch: OnDevice, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return batch

    def validation(self) -> Iterator[OnDevice] | None:
        has_images = self._spec.kind != "none" and len(open_source(self._spec, "val"))
        return iter(()) if has_images else None


def synthetic_images(spec: DataSpec) -> int:
    """Images of an epoch where they are synthetic."""
    return spec.train_images or resident.IMAGES


class Synthetic:
    """One batch that stays on the device."""

    def __init__(
        self,
        spec: DataSpec,
        *,
        device: torch.device,
        world: int,
        batch_size: int,
        dtype: torch.dtype,
        memory_format: torch.memory_format,
        seed: int,
    ) -> None:
        self._resident = resident.Resident(
            shape=(batch_size, spec.channels, spec.input_size, spec.input_size),
            num_classes=spec.num_classes,
            device=device,
            dtype=dtype,
            memory_format=memory_format,
            seed=seed,
        )
        self.steps_per_epoch = synthetic_images(spec) // (batch_size * world)

    def train_epoch(self, epoch: int, steps: int | None = None) -> Iterator[OnDevice]:  # noqa: ARG002
        return self._resident.epoch(self.steps_per_epoch if steps is None else steps)

    def to_device(self, batch: OnDevice, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return batch

    def validation(self) -> None:
        return None
