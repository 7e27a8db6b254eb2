"""Makes a chunk of a batch: reads and transforms its images and writes them into the batch's slot.

Runs in a loader worker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from gpubench.errors import GpubenchError, UsageError
from gpubench.train.data.order import Job
from gpubench.train.data.ring import Ring
from gpubench.train.data.source import Source

Transform = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker sends back: where the chunk is, or why there is none. Pixels never travel."""

    slot: int
    error: GpubenchError | None = None


class Batches(Dataset[Done]):
    """`__getitems__` gets a Job from the batch sampler in place of a list of positions."""

    def __init__(self, source: Source, transform: Transform | None, ring: Ring) -> None:
        """`transform`: None where images are taken as they are."""
        self._source = source
        self._transform = transform
        self._ring = ring

    def __len__(self) -> int:
        return len(self._source)

    def __getitems__(self, job: Job) -> Done:
        try:
            with _draws_from(job.seed):
                self._fill(job)
        except GpubenchError as error:  # raised again by the rank, without the worker's stack around it
            return Done(job.slot, error)
        return Done(job.slot)

    def _fill(self, job: Job) -> None:
        chunk = slice(job.start, job.start + len(job.indices))
        images = self._ring.images[job.slot, chunk]
        self._ring.labels[job.slot, chunk] = torch.from_numpy(self._source.labels[job.indices])
        gathered = self._source.gather(job.indices, images)
        if gathered and self._transform is None:
            return
        for out, index in zip(images.unbind(), job.indices.tolist(), strict=True):
            image = out if gathered else self._source.image(index)
            made = self._checked(self._transformed(image, index), out, index)
            if made is not out:
                out.copy_(made.clone() if _same_memory(made, out) else made)

    def _transformed(self, image: torch.Tensor, index: int) -> torch.Tensor:
        if self._transform is None:
            return image
        try:
            return self._transform(image)
        except (RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"a transform failed on {self._source.place(index)}: {error}") from error

    def _checked(self, image: torch.Tensor, out: torch.Tensor, index: int) -> torch.Tensor:
        kind = getattr(image, "dtype", type(image).__name__)
        if kind == torch.uint8 and image.shape == out.shape:
            return image
        what = f"{self._source.place(index)} is {{}} after its transforms, not {{}}: "
        if kind != torch.uint8:
            raise UsageError(what.format(kind, "uint8") + "leave conversions to the device")
        raise UsageError(
            what.format(_times(image), _times(out))
            + f"add {{ RandomResizedCrop = {{ size = {out.shape[-1]} }} }} to the variant's cpu list, "
            "or resize the files beforehand"
        )


def _same_memory(made: torch.Tensor, out: torch.Tensor) -> bool:
    """Whether a transform returned a view of the slot itself, which can't be copied onto it."""
    return made.untyped_storage().data_ptr() == out.untyped_storage().data_ptr()


def _times(image: torch.Tensor) -> str:
    return " × ".join(map(str, image.shape))


@contextlib.contextmanager
def _draws_from(seed: tuple[int, ...]) -> Iterator[None]:
    """torch draws from `seed`; outside a worker its state is put back, for the model draws too."""
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    if get_worker_info() is not None:
        torch.default_generator.manual_seed(number)
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(number)
        yield
