"""One rank's images, opened: what the training loop sees."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import folder
from gpubench.schema.order import DataSpec
from gpubench.train.data import loaders
from gpubench.train.data.array_source import decoded_source, named_source
from gpubench.train.data.folder_source import FolderSource
from gpubench.train.data.source import Source
from gpubench.train.data.upload import Upload

SYNTHETIC_IMAGES = 10_240
"""Images of an epoch where the trial names no number: as many as the built-in data have."""
OnDevice = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), normalised, and labels (B,), int64."""


class Data(Protocol):
    """One rank's share of the images."""

    steps_per_epoch: int

    def train_epoch(self, epoch: int) -> Iterator[Any]:
        """Batches of an epoch: `iter(loader)` happens in this call, in the main thread.

        `next` raises UnusableError for an image that can't be read.
        """
        ...

    def stream(self) -> Iterator[Any]:
        """Batches of shuffled passes without end: `iter(loader)` happens with the first `next`, in the main thread.

        What is seeded by epoch follows the pass of the batch that was taken last. The loaders end with the iterator,
        after `close`.
        """
        ...

    def close(self) -> None:
        """No training batch is wanted any more: ends the loaders of epochs."""
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
    loader_cpus: Sequence[int] = (),
) -> Data:
    """Opens the images of `spec` for one rank, whose own are `batch_size` (images a step) and `workers`.

    `reads`: False for a rank that is given no images: it sees as many batches as the others, and all are empty.
    `val_batch_size`: images of a validation batch, which one device takes alone; None: as many as in training.
    `loader_cpus`: on which the loader workers stay; none: on those of the rank.

    `dtype` is that of the images on the device. Under autocast torch.float32 is always right; autocast's own
    dtype gives the same bits where the network begins with a convolution or a linear layer (which rounds the
    same float32 values) and saves that layer's cast.

    Raises UsageError for a batch larger than the data or unknown transforms, UnusableError where images can't
    be read.
    """
    if not reads:
        return NoData(spec, batch_size * world, device)
    if spec.kind == "none":
        return SyntheticData(
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
    settings = loaders.LoaderSettings(
        batch_size=batch_size,
        rank=rank,
        world=world,
        workers=workers,
        prefetch=prefetch,
        seed=seed,
        cpus=tuple(loader_cpus),
    )
    return LoadedData(
        spec,
        loaders.TrainLoaders(spec, source, settings, pin=device.type == "cuda"),
        Upload(spec, device=device, dtype=dtype, memory_format=memory_format),
        replace(settings, batch_size=val_batch_size or batch_size),
    )


def open_source(spec: DataSpec, split: str) -> Source:
    """Images of `split` (`train` or `val`)."""
    root = spec.root or ""
    limit = spec.train_images if split == "train" else None
    if spec.kind == "folder":
        without = json.loads(Path(spec.left_out).read_bytes()) if spec.left_out else ()
        return FolderSource(folder.list_images(root, split, limit, without), spec.channels)
    if spec.kind == "decoded":
        return decoded_source(root, split, limit)
    if spec.kind == "named":
        return named_source(spec.name or "", root, split, spec.channels, limit)
    raise UnusableError(f"a data spec of kind {spec.kind!r} has no images")


class LoadedData:
    """Images that are read, transformed and copied: every kind but synthetic."""

    def __init__(
        self,
        spec: DataSpec,
        train: loaders.TrainLoaders,
        upload: Upload,
        validation: loaders.LoaderSettings,
    ) -> None:
        """`validation`: how this rank's share of the validation split is loaded."""
        self._spec = spec
        self._train = train
        self._upload = upload
        self._validation = validation
        self.steps_per_epoch = train.steps_per_epoch

    def train_epoch(self, epoch: int) -> Iterator[loaders.Batch]:
        self._seed(epoch)
        return self._train.epoch(epoch)

    def stream(self) -> Iterator[loaders.Batch]:
        for number, batch in enumerate(self._train.stream()):
            if number % self.steps_per_epoch == 0:
                self._seed(number // self.steps_per_epoch)
            yield batch

    def _seed(self, number: int) -> None:
        """What is drawn on the device from now on is of this epoch, or pass."""
        self._upload.seed(self._validation.seed, self._validation.rank, number)

    def close(self) -> None:
        self._train.close()

    def to_device(self, batch: loaders.Batch, *, augment: bool = True) -> OnDevice:
        return self._upload(batch, augment=augment)

    def validation(self) -> Iterator[loaders.Batch] | None:
        source = open_source(self._spec, "val")
        return iter(loaders.val_loader(self._spec, source, self._validation)) if len(source) else None


class RepeatedBatch:
    """One batch that lies on the device already, again and again."""

    def __init__(self, batch: OnDevice, steps_per_epoch: int) -> None:
        self._batch = batch
        self.steps_per_epoch = steps_per_epoch

    def train_epoch(self, epoch: int) -> Iterator[OnDevice]:  # noqa: ARG002
        return itertools.repeat(self._batch, self.steps_per_epoch)

    def stream(self) -> Iterator[OnDevice]:
        return itertools.repeat(self._batch)

    def close(self) -> None:
        pass

    def to_device(self, batch: OnDevice, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return batch


class NoData(RepeatedBatch):
    """What a rank sees that reads no images."""

    def __init__(self, spec: DataSpec, whole_batch: int, device: torch.device) -> None:
        """`whole_batch`: images of a batch over all ranks."""
        self._spec = spec
        shape = (0, spec.channels, spec.input_size, spec.input_size)
        empty = torch.empty(shape, device=device), torch.empty(0, dtype=torch.int64, device=device)
        images = count_synthetic_images(spec) if spec.kind == "none" else len(open_source(spec, "train"))
        super().__init__(empty, images // whole_batch)

    def validation(self) -> Iterator[OnDevice] | None:
        has_images = self._spec.kind != "none" and len(open_source(self._spec, "val"))
        return iter(()) if has_images else None


def count_synthetic_images(spec: DataSpec) -> int:
    """Images of an epoch where they are synthetic."""
    return spec.train_images or SYNTHETIC_IMAGES


class SyntheticData(RepeatedBatch):
    """A random batch that stays on the device."""

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
        batch = random_batch(
            shape=(batch_size, spec.channels, spec.input_size, spec.input_size),
            num_classes=spec.num_classes,
            device=device,
            dtype=dtype,
            memory_format=memory_format,
            seed=seed,
        )
        super().__init__(batch, count_synthetic_images(spec) // (batch_size * world))

    def validation(self) -> None:
        return None


def random_batch(
    *,
    shape: tuple[int, int, int, int],
    num_classes: int,
    device: torch.device,
    dtype: torch.dtype,
    memory_format: torch.memory_format,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A random batch, already normalised, for every step: images of `shape` and labels (B,)."""
    generator = torch.Generator(device).manual_seed(seed)
    images = torch.randn(shape, device=device, generator=generator)
    labels = torch.randint(num_classes, shape[:1], device=device, generator=generator)
    return images.to(dtype=dtype, memory_format=memory_format), labels
