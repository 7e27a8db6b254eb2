"""torch's DataLoader, set up as one would by hand: the figures speak of what a user's own loop would get."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler, Subset

from gpubench.schema.order import DataSpec
from gpubench.train.data import on_cpu
from gpubench.train.data.images import Images
from gpubench.train.data.source import Source
from gpubench.train.data.worker_start import WorkerStart

Batch = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), uint8, pinned where the loader was asked to, and labels (B,), int64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderSettings:
    """How one rank loads its share of the images of a step."""

    batch_size: int
    """Of this rank, as are the workers."""
    rank: int
    world: int
    workers: int
    prefetch: int
    seed: int
    cpus: tuple[int, ...] = ()
    """On which the workers stay; none: on those of the rank."""


class ShuffledPasses(Sampler[list[int]]):
    """Full batches of one rank, without end: pass after pass over its images, each in a new random order.

    What does not fill a batch is dropped at the end of each pass, so that no batch straddles two.
    """

    def __init__(self, order: DistributedSampler[Any], batch_size: int) -> None:
        self._order = order
        self._batch_size = batch_size

    def __iter__(self) -> Iterator[list[int]]:
        for number in itertools.count():
            self._order.set_epoch(number)
            images = list(self._order)
            for first in range(0, len(images) - self._batch_size + 1, self._batch_size):
                yield images[first : first + self._batch_size]


class TrainLoaders:
    """Loaders of one rank's training batches, for epochs or a stream.

    Both read the same images in the same order. Iterate over them in the main thread: the workers are tied to the
    thread that forks them. All ranks of a step together read the same images, whatever their number.
    """

    def __init__(self, spec: DataSpec, source: Source, settings: LoaderSettings, *, pin: bool) -> None:
        self._images = Images(
            source, on_cpu.build_transforms(spec.cpu), (spec.channels, spec.input_size, spec.input_size)
        )
        self._order: DistributedSampler[Any] = DistributedSampler(
            self._images,
            num_replicas=settings.world,
            rank=settings.rank,
            shuffle=True,
            seed=settings.seed,
            drop_last=True,
        )
        self._settings = settings
        self._loader = functools.partial(_make_loader, self._images, settings, pin_memory=pin)
        self.steps_per_epoch = len(self._order) // settings.batch_size

    @functools.cached_property
    def _epochs(self) -> DataLoader[Batch]:
        return self._loader(
            batch_size=self._settings.batch_size,
            sampler=self._order,
            drop_last=True,
            persistent_workers=self._settings.workers > 0,
        )

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch."""
        self._order.set_epoch(number)
        return iter(self._epochs)

    def stream(self) -> Iterator[Batch]:
        """The batches of pass after pass, without end."""
        return iter(self._loader(batch_sampler=ShuffledPasses(self._order, self._settings.batch_size)))

    def close(self) -> None:
        """Ends the workers of epochs, and those of a stream as soon as it goes: none makes its batch to the end."""
        self._images.end()
        self.__dict__.pop("_epochs", None)


def val_loader(spec: DataSpec, source: Source, settings: LoaderSettings) -> DataLoader[Batch]:
    """Validation batches of one rank, the last perhaps partial; over all ranks every image exactly once."""
    images: Dataset[Any] = Images(
        source, on_cpu.Evaluation(spec.input_size), (spec.channels, spec.input_size, spec.input_size)
    )
    mine = range(settings.rank, len(source), settings.world)
    workers = min(settings.workers, -(-len(mine) // settings.batch_size))
    return _make_loader(
        Subset(images, mine), replace(settings, workers=workers), batch_size=settings.batch_size
    )


def _make_loader(images: Dataset[Any], settings: LoaderSettings, **more: Any) -> DataLoader[Batch]:
    """A loader with these workers. `more`: what torch's own takes besides."""
    workers = settings.workers
    return DataLoader(
        images,
        num_workers=workers,
        prefetch_factor=settings.prefetch if workers else None,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=WorkerStart(
            seed=settings.seed, rank=settings.rank, parent=os.getpid(), cpus=settings.cpus
        ),
        # The loader's draws are its own: the model's random numbers don't depend on how images are read.
        generator=torch.Generator().manual_seed(settings.seed),
        **more,
    )
