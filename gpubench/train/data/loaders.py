"""torch's DataLoader, set up as one would by hand: the figures speak of what a user's own loop would get."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

from gpubench.schema.order import DataSpec
from gpubench.train.data import on_cpu
from gpubench.train.data.images import Images
from gpubench.train.data.source import Source
from gpubench.train.data.worker_start import WorkerStart

Batch = tuple[torch.Tensor, torch.Tensor]
"""Images (B, C, S, S), uint8, pinned where the loader was asked to, and labels (B,), int64."""


def _generator(seed: int) -> torch.Generator:
    """The loader's draws are its own: the model's random numbers don't depend on how images are read."""
    return torch.Generator().manual_seed(seed)


class EpochSampler(DistributedSampler[Any]):
    """One rank's images of an epoch, in random order; or the first ones of them."""

    _images: int | None = None

    def begin(self, epoch: int, images: int | None) -> None:
        """What the next pass reads: of this epoch's order the rank's first `images`; None: all of them."""
        self.set_epoch(epoch)
        self._images = images

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(super().__iter__(), self._images)


def train_loader(
    spec: DataSpec,
    source: Source,
    *,
    batch_size: int,
    rank: int,
    world: int,
    workers: int,
    prefetch: int,
    pin: bool,
    seed: int,
) -> tuple[DataLoader[Batch], EpochSampler]:
    """Full training batches of one rank (`batch_size` and `workers` are this rank's), and their sampler.

    Begin a pass in the main thread: the workers are tied to the thread that forks them. All ranks of a step together
    read the same images, whatever their number.
    """
    images: Dataset[Any] = Images(
        source, on_cpu.chain(spec.cpu), (spec.channels, spec.input_size, spec.input_size)
    )
    sampler = EpochSampler(images, num_replicas=world, rank=rank, shuffle=True, seed=seed, drop_last=True)
    loader = _loader(
        images,
        batch_size=batch_size,
        sampler=sampler,
        drop_last=True,
        workers=workers,
        prefetch=prefetch,
        persistent_workers=workers > 0,
        pin_memory=pin,
        seed=seed,
        rank=rank,
    )
    return loader, sampler


def val_loader(
    spec: DataSpec,
    source: Source,
    *,
    batch_size: int,
    rank: int,
    world: int,
    workers: int,
    prefetch: int,
    seed: int,
) -> DataLoader[Batch]:
    """Validation batches of one rank, the last perhaps partial; over all ranks every image exactly once."""
    images: Dataset[Any] = Images(
        source, on_cpu.Evaluation(spec.input_size), (spec.channels, spec.input_size, spec.input_size)
    )
    mine = range(rank, len(source), world)
    share: Dataset[Any] = Subset(images, mine)
    workers = min(workers, -(-len(mine) // batch_size))
    return _loader(share, batch_size=batch_size, workers=workers, prefetch=prefetch, seed=seed, rank=rank)


def _loader(
    images: Dataset[Any], *, workers: int, prefetch: int, seed: int, rank: int, **more: Any
) -> DataLoader[Batch]:
    """A loader with these workers. `more`: what torch's own takes besides."""
    return DataLoader(
        images,
        num_workers=workers,
        prefetch_factor=prefetch if workers else None,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=WorkerStart(seed=seed, rank=rank, parent=os.getpid()),
        generator=_generator(seed),
        **more,
    )
