"""torch's DataLoader, set up as one would by hand: the figures speak of what a user's own loop would get."""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler, Subset

from gpubench.basics import linux, stacks
from gpubench.basics.errors import UsageError
from gpubench.schema.order import DataSpec
from gpubench.train.data import on_cpu
from gpubench.train.data.array_source import ArraySource
from gpubench.train.data.folder_source import FolderSource

Source = FolderSource | ArraySource
"""Images that can be read by position, with their classes."""
Batch = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), uint8, pinned where the loader was asked to, and labels (B,), int64."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderSettings:
    """How one rank loads its share of the images of a step."""

    batch_size: int
    """Of this rank, as are the workers."""
    val_batch_size: int
    """Images of a validation batch, which one device takes alone."""
    rank: int
    world: int
    workers: int
    prefetch: int
    seed: int
    cpus: tuple[int, ...] = ()
    """On which the workers stay; none: on those of the rank."""


class ImageDataset(Dataset[tuple[torch.Tensor, int]]):
    """Images of a source as uint8 (C, S, S) with their class, transformed and checked."""

    def __init__(
        self, spec: DataSpec, source: Source, transform: Callable[[torch.Tensor], torch.Tensor]
    ) -> None:
        self._source = source
        self._transform = transform
        self._shape = torch.Size((spec.channels, spec.input_size, spec.input_size))
        self._is_over = mmap.mmap(-1, 1)  # in memory that a rank shares with the workers forked from it

    def __len__(self) -> int:
        return len(self._source)

    def stop_loading(self) -> None:
        """No image is wanted any more. A worker drops the batch at hand, for which its rank would wait in vain."""
        self._is_over[0] = 1

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Raises UnusableError for an image that can't be read, UsageError for a transform that doesn't fit it."""
        if self._is_over[0]:
            raise RuntimeError("no image is wanted any more")
        image = self._source.load_image(index)
        try:
            image = self._transform(image)
        except (RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"a transform failed on {self._source.name_image(index)}: {error}") from error
        if not isinstance(image, torch.Tensor) or image.dtype != torch.uint8:
            kind = getattr(image, "dtype", type(image).__name__)
            raise UsageError(
                f"{self._source.name_image(index)} is {kind} after its transforms, not uint8: "
                "leave conversions to the device"
            )
        if image.shape != self._shape:
            raise UsageError(
                f"{self._source.name_image(index)} is {' × '.join(map(str, image.shape))} after its transforms, "
                f"not {' × '.join(map(str, self._shape))}: add RandomResizedCrop = {{ size = {self._shape[-1]} }} to "
                "the variant's cpu list, or resize the files beforehand"
            )
        return image, int(self._source.labels[index])


class EndlessBatchSampler(Sampler[list[int]]):
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


def make_val_loader(spec: DataSpec, source: Source, settings: LoaderSettings) -> DataLoader[Batch]:
    """Validation batches of one rank, the last perhaps partial; over all ranks every image exactly once."""
    images: Dataset[Any] = ImageDataset(spec, source, on_cpu.make_evaluation_transform(spec.input_size))
    mine = range(settings.rank, len(source), settings.world)
    workers = min(settings.workers, -(-len(mine) // settings.val_batch_size))
    return make_loader(
        Subset(images, mine), replace(settings, workers=workers), batch_size=settings.val_batch_size
    )


def make_loader(images: Dataset[Any], settings: LoaderSettings, **more: Any) -> DataLoader[Batch]:
    """A loader with the workers of `settings`. `more`: what torch's own takes besides."""
    workers = settings.workers
    return DataLoader(
        images,
        num_workers=workers,
        prefetch_factor=settings.prefetch if workers else None,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=functools.partial(_set_up_worker, settings, os.getpid()),
        # The loader's draws are its own: the model's random numbers don't depend on how images are read.
        generator=torch.Generator().manual_seed(settings.seed),
        **more,
    )


def _set_up_worker(settings: LoaderSettings, rank_process: int, worker: int) -> None:
    """What a loader worker does first: dies with its rank, has one thread, and seeds of its own.

    Workers must be forked from the rank's main thread: the signal by which they die follows the thread.
    """
    linux.die_with_parent(rank_process)
    if settings.cpus:
        os.sched_setaffinity(0, settings.cpus)
    # The rank hears of Ctrl-C and decides; a worker that it ends must not run the rank's handlers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):  # no room for a file: a hang will lack this worker's place
        stacks.install_handler_in_fork(f"loader_worker_{worker}_of_rank_{settings.rank}")
    torch.set_num_threads(1)
    state = np.random.SeedSequence((settings.seed, settings.rank, worker)).generate_state(3)
    random.seed(int(state[0]))
    np.random.seed(int(state[1]))
    torch.default_generator.manual_seed(int(state[2]))
