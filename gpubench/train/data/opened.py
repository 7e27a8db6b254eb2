"""One rank's images, opened: what the training loop sees."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler

from gpubench.basics.errors import UsageError
from gpubench.datasets import folder
from gpubench.schema.order import DataSpec
from gpubench.train.data import loaders, on_cpu, on_device
from gpubench.train.data.array_source import open_decoded_source, open_or_fetch_named_source
from gpubench.train.data.folder_source import FolderSource
from gpubench.train.data.loaders import Batch, LoaderSettings, Source

SYNTHETIC_IMAGES = 10_240
"""Images of an epoch where the trial names no number: as many as the built-in data have."""
OnDevice = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), normalised, and labels (B,), int64."""


def open_data(
    spec: DataSpec, settings: LoaderSettings, *, device: torch.device, memory_format: torch.memory_format
) -> Data:
    """Opens the images of `spec` for one rank.

    Raises UsageError for a batch larger than the data or unknown transforms, UnusableError where images can't
    be read.
    """
    if spec.kind == "none":
        every = spec.train_images or SYNTHETIC_IMAGES
        return ResidentBatch(
            make_synthetic_batch(spec, settings, device=device, memory_format=memory_format),
            steps_per_epoch=every // (settings.batch_size * settings.world),
        )
    source = open_source(spec, "train")
    whole_batch = settings.batch_size * settings.world
    if len(source) < whole_batch:
        raise UsageError(
            f"{len(source):,} training images don't fill a batch of {whole_batch:,}: choose a smaller batch_size"
        )
    if int(source.labels.max()) >= spec.num_classes:
        raise UsageError(
            f"num_classes is {spec.num_classes}, but the data have {int(source.labels.max()) + 1} classes: "
            "leave it out, or raise it"
        )
    return LoadedData(spec, source, settings, device=device, memory_format=memory_format)


def open_source(spec: DataSpec, split: str) -> Source:
    """Images of `split` (`train` or `val`)."""
    root = spec.root or ""
    limit = spec.train_images if split == "train" else None
    if spec.kind == "folder":
        without = json.loads(Path(spec.left_out).read_bytes()) if spec.left_out else ()
        return FolderSource(folder.list_images(root, split, limit, without), spec.channels)
    if spec.kind == "decoded":
        return open_decoded_source(root, split, limit)
    return open_or_fetch_named_source(spec.name or "", root, split, spec.channels, limit)


class LoadedData:
    """One rank's share of images that are read, transformed and copied: every kind but synthetic.

    Epochs and a stream read the same images in the same order. Iterate over them in the main thread: the workers are
    tied to the thread that forks them. All ranks of a step together read the same images, whatever their number.
    """

    def __init__(
        self,
        spec: DataSpec,
        source: Source,
        settings: LoaderSettings,
        *,
        device: torch.device,
        memory_format: torch.memory_format,
    ) -> None:
        self._spec = spec
        self._settings = settings
        self._images = loaders.ImageDataset(spec, source, on_cpu.build_cpu_transforms(spec.cpu))
        self._order: DistributedSampler[Any] = DistributedSampler(
            self._images,
            num_replicas=settings.world,
            rank=settings.rank,
            shuffle=True,
            seed=settings.seed,
            drop_last=True,
        )
        self._make_loader = functools.partial(
            loaders.make_loader, self._images, settings, pin_memory=device.type == "cuda"
        )
        self.steps_per_epoch = len(self._order) // settings.batch_size
        self._device = device
        self._transforms = on_device.build_device_transforms(spec.gpu)
        self._generator = torch.Generator(device)
        self._normalise = on_device.Normalise(
            channels=spec.channels, device=device, memory_format=memory_format
        )

    @functools.cached_property
    def _epochs(self) -> DataLoader[Batch]:
        return self._make_loader(
            batch_size=self._settings.batch_size,
            sampler=self._order,
            drop_last=True,
            persistent_workers=self._settings.workers > 0,
        )

    def iterate_epoch(self, epoch: int) -> Iterator[Batch]:
        """Batches of an epoch: `iter(loader)` happens in this call, in the main thread.

        `next` raises UnusableError for an image that can't be read.
        """
        self._seed_generator(epoch)
        self._order.set_epoch(epoch)
        return iter(self._epochs)

    def iterate_stream(self) -> Iterator[Batch]:
        """Batches of shuffled passes without end: `iter(loader)` happens with the first `next`, in the main thread.

        What is seeded by epoch follows the pass of the batch that was taken last. The loaders end with the iterator,
        after `close`.
        """
        batches = loaders.EndlessBatchSampler(self._order, self._settings.batch_size)
        for number, batch in enumerate(self._make_loader(batch_sampler=batches)):
            if number % self.steps_per_epoch == 0:
                self._seed_generator(number // self.steps_per_epoch)
            yield batch

    def _seed_generator(self, number: int) -> None:
        """What is drawn on the device from now on is of this epoch, or pass."""
        numbers = (self._settings.seed, self._settings.rank, number)
        self._generator.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))

    def close(self) -> None:
        """No training batch is wanted any more: ends the workers of epochs, and those of a stream as soon as it goes.
        None makes its batch to the end."""
        self._images.stop_loading()
        self.__dict__.pop("_epochs", None)

    def move_and_transform(self, batch: Batch, *, augment: bool = True) -> OnDevice:
        """The batch, copied in one go, transformed and normalised. Never waits for the device.

        `augment`: False for validation.
        """
        images, labels = (part.to(self._device, non_blocking=True) for part in batch)
        if augment:
            for transform in self._transforms:
                images = transform(images, self._generator)
        return self._normalise(images), labels

    def iterate_validation(self) -> Iterator[Batch] | None:
        """Batches of this rank's share of the validation split; None where there is no such split."""
        source = open_source(self._spec, "val")
        return iter(loaders.make_val_loader(self._spec, source, self._settings)) if len(source) else None


def make_synthetic_batch(
    spec: DataSpec, settings: LoaderSettings, *, device: torch.device, memory_format: torch.memory_format
) -> OnDevice:
    """A random batch, normalised already."""
    generator = torch.Generator(device).manual_seed(settings.seed)
    shape = (settings.batch_size, spec.channels, spec.input_size, spec.input_size)
    images = torch.randn(shape, device=device, generator=generator)
    labels = torch.randint(spec.num_classes, shape[:1], device=device, generator=generator)
    return images.to(memory_format=memory_format), labels


class ResidentBatch:
    """Two tensors that stay on the device, again and again."""

    def __init__(self, batch: OnDevice, *, steps_per_epoch: int) -> None:
        self._batch = batch
        self.steps_per_epoch = steps_per_epoch

    def iterate_epoch(self, epoch: int) -> Iterator[OnDevice]:  # noqa: ARG002
        return itertools.repeat(self._batch, self.steps_per_epoch)

    def iterate_stream(self) -> Iterator[OnDevice]:
        return itertools.repeat(self._batch)

    def close(self) -> None:
        pass

    def move_and_transform(self, batch: OnDevice, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return batch

    def iterate_validation(self) -> None:
        return None


Data = LoadedData | ResidentBatch
