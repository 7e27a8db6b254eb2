"""Which images each batch holds: the same for every number of workers, a partition over the ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpubench.train.data.ring import Ring

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A chunk of a batch: these images, into that slot from place `start` on, drawing from that seed."""

    slot: int
    start: int
    seed: tuple[int, ...]
    indices: Indices


def training_order(images: int, batch_size: int, rank: int, world: int, seed: int, epoch: int) -> Indices:
    """Positions of this rank's images, (steps, batch_size): drawn from (seed, epoch), full batches only.

    Step k of all ranks together holds the same images for every `world` of the same world × batch_size.
    """
    steps = images // (batch_size * world)
    order = np.random.default_rng((seed, epoch)).permutation(images)[: steps * batch_size * world]
    return order.reshape(steps, world, batch_size)[:, rank]


def validation_order(images: int, batch_size: int, rank: int, world: int) -> Sequence[Indices]:
    """Every image once over all ranks. The last batch may be partial, and ranks may differ by one image."""
    mine = np.arange(rank, images, world)
    return [mine[start : start + batch_size] for start in range(0, len(mine), batch_size)]


def chunk_count(images: int, size: int) -> int:
    """How many chunks of at most `size` a batch of `images` is made in."""
    return -(-images // size)


class Jobs:
    """The batch sampler: the jobs of one pass.

    A batch is made in chunks by several workers. Were each made by one, as is usual, the first batch would take
    as long as all its images on one CPU, and 20 large batches would keep 16 workers busy for two rounds.
    """

    def __init__(self, ring: Ring, chunk: int) -> None:
        self._ring = ring
        self._chunk = chunk
        self._next_slot = 0
        self._seed: tuple[int, ...] = ()
        self.batches: Sequence[Indices] = []

    def set(self, batches: Sequence[Indices], seed: tuple[int, ...]) -> None:
        """What the next pass goes through. Each chunk draws from `seed`, its batch's number and its own."""
        self.batches, self._seed = batches, seed

    def __len__(self) -> int:
        return sum(chunk_count(len(batch), self._chunk) for batch in self.batches)

    def __iter__(self) -> Iterator[Job]:
        for number, batch in enumerate(self.batches):
            # Slots go on where the pass before ended: its last batches may still be in use.
            slot, self._next_slot = self._next_slot, (self._next_slot + 1) % self._ring.slots
            self._ring.claim(slot)
            start = 0
            for part, indices in enumerate(np.array_split(batch, chunk_count(len(batch), self._chunk))):
                yield Job(slot=slot, start=start, seed=(*self._seed, number, part), indices=indices)
                start += len(indices)
