"""Loaders: torch's DataLoader (its workers, order and watchdogs) around batches that are written in place."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader

from gpubench.train.data import on_cpu, order
from gpubench.train.data.batches import Batches, Done, Transform
from gpubench.train.data.order import Jobs
from gpubench.train.data.ring import Ring
from gpubench.train.data.source import Source
from gpubench.train.data.spec import DataSpec
from gpubench.train.data.worker_start import WorkerStart

SPARE = 3
"""Batches that stay valid, the newest included: those of two steps in flight, and the next."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A batch on the host. A view of the ring: valid until SPARE − 1 further batches have been taken."""

    images: torch.Tensor
    """(B, C, S, S), uint8, pinned where the loader was asked to."""
    labels: torch.Tensor
    """(B,), int64."""
    slot: int
    ring: Ring

    def __len__(self) -> int:
        return len(self.labels)


class Loader:
    """Batches of one rank. `iter()` begins a pass: in the main thread, which workers live by."""

    def __init__(
        self,
        source: Source,
        transform: Transform | None,
        *,
        spec: DataSpec,
        batch_size: int,
        steps: int,
        rank: int,
        workers: int,
        prefetch: int,
        pin: bool,
        persistent: bool,
        seed: int,
    ) -> None:
        """`steps`: the most batches of a pass."""
        self.ring = Ring(
            slots=min(workers * prefetch, steps) + SPARE,
            batch_size=batch_size,
            channels=spec.channels,
            size=spec.input_size,
            memory_format=source.memory_format,
            pin=pin,
        )
        self._chunk_size = source.chunk
        self.jobs = Jobs(self.ring, source.chunk)
        # DataLoader draws a number for its workers in every pass: not from the generator that the model uses.
        start = WorkerStart(seed=seed, rank=rank, parent=os.getpid())
        self._chunks: Iterator[Any] = iter(())
        self._loader: DataLoader[Any] = DataLoader(
            Batches(source, transform, self.ring),
            batch_sampler=self.jobs,  # type: ignore[arg-type]  # yields jobs in place of lists of positions
            collate_fn=_as_it_is,
            num_workers=workers,
            prefetch_factor=prefetch * order.chunk_count(batch_size, source.chunk) if workers else None,
            persistent_workers=persistent and workers > 0,
            multiprocessing_context="fork" if workers else None,
            worker_init_fn=start,
            generator=torch.Generator().manual_seed(seed),
        )

    def __len__(self) -> int:
        return len(self.jobs.batches)

    def __iter__(self) -> Iterator[Batch]:
        # Not a generator: the workers' first jobs are to be dealt out now, not with the first next().
        self._chunks = iter(self._loader)
        return self._batches(self._chunks, self.jobs.batches)

    def close(self) -> None:
        """Ends the workers and unpins the ring."""
        # DataLoader ends its workers when its iterator is collected. An error's traceback may hold that for long.
        if hasattr(self._chunks, "_shutdown_workers"):
            self._chunks._shutdown_workers()
        self.ring.close()

    def _batches(self, chunks: Iterator[Done], batches: Sequence[order.Indices]) -> Iterator[Batch]:
        for batch in batches:
            slot, count = 0, len(batch)
            for done in itertools.islice(chunks, order.chunk_count(count, self._chunk_size)):
                if done.error is not None:
                    raise done.error
                slot = done.slot
            yield Batch(self.ring.images[slot, :count], self.ring.labels[slot, :count], slot, self.ring)


class TrainLoader(Loader):
    """Full batches in an order that is drawn anew for every epoch."""

    def __init__(
        self,
        source: Source,
        transform: Transform | None,
        *,
        batch_size: int,
        rank: int,
        world: int,
        seed: int,
        **kwargs: Any,
    ) -> None:
        self._order = (len(source), batch_size, rank, world, seed)
        self._rank, self._seed = rank, seed
        steps = len(source) // (batch_size * world)
        super().__init__(
            source,
            transform,
            batch_size=batch_size,
            rank=rank,
            seed=seed,
            steps=steps,
            persistent=True,
            **kwargs,
        )
        self.set_epoch(0)

    def set_epoch(self, epoch: int, steps: int | None = None) -> None:
        """What the next pass goes through: all of the epoch or its first `steps` batches.

        The order depends on (seed, epoch), the pixels also on rank and step.
        """
        batches = order.training_order(*self._order, epoch)
        self.jobs.set(list(batches[:steps]), (self._seed, epoch, self._rank))


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
) -> TrainLoader:
    """Training batches of one rank, whose own are `batch_size` and `workers`."""
    transform = on_cpu.chain(spec.cpu)
    return TrainLoader(
        source,
        transform if len(transform) else None,
        spec=spec,
        batch_size=batch_size,
        rank=rank,
        world=world,
        workers=workers,
        prefetch=prefetch,
        pin=pin,
        seed=seed,
    )


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
) -> Loader:
    """Validation batches of one rank, once through; over all ranks every image exactly once."""
    batches = order.validation_order(len(source), batch_size, rank, world)
    loader = Loader(
        source,
        on_cpu.Evaluation(spec.input_size),
        spec=spec,
        batch_size=batch_size,
        steps=len(batches),
        rank=rank,
        workers=min(workers, len(batches)),
        prefetch=prefetch,
        pin=False,  # used once, outside the timed window: pinning would take longer than it saves
        persistent=False,
        seed=seed,
    )
    loader.jobs.set(batches, (seed,))
    return loader


def _as_it_is(done: T) -> T:
    return done
