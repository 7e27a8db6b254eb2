"""Memory that batches are handed over in: written by loader workers, read by the rank, not copied in between.

torch's own way makes a new shared file for every batch, faults its pages in on both sides and copies it into
pinned memory on a thread that competes with the training loop. Here every batch has a slot in one anonymous
shared mapping that exists before the workers are forked, is pinned once, and isn't bound by /dev/shm's size.
"""

from __future__ import annotations

import mmap
from typing import Any

import torch

from gpubench.errors import UnusableError

_ALIGN = 4096
_MIB = 2**20


class Ring:
    """`slots` batches of uint8 images and int64 labels, used in turn."""

    def __init__(
        self,
        *,
        slots: int,
        batch_size: int,
        channels: int,
        size: int,
        memory_format: torch.memory_format,
        pin: bool,
    ) -> None:
        """Raises UnusableError where the host has too little memory for it, or won't pin as much."""
        self.slots = slots
        per_batch = _round_up(batch_size * channels * size * size)
        self._bytes = slots * (per_batch + _round_up(8 * batch_size))
        try:
            self._memory = mmap.mmap(-1, self._bytes)
        except OSError as error:
            raise UnusableError(f"no memory for batches: {self._explain()}: {error.strerror}") from error
        flat = torch.frombuffer(self._memory, dtype=torch.uint8)
        images = flat[: slots * per_batch].view(slots, per_batch)[:, : batch_size * channels * size * size]
        if memory_format == torch.channels_last:
            self.images = images.view(slots, batch_size, size, size, channels).permute(0, 1, 4, 2, 3)
        else:
            self.images = images.view(slots, batch_size, channels, size, size)
        """(slots, B, C, S, S), uint8."""
        labels = flat[slots * per_batch :].view(torch.int64).view(slots, -1)
        self.labels = labels[:, :batch_size]
        """(slots, B), int64."""
        self._copied: list[torch.cuda.Event | None] = [None] * slots
        self._address = flat.data_ptr()
        self._pinned = False
        if pin:
            self._pin()

    def copied(self, slot: int, event: torch.cuda.Event) -> None:
        """`event` marks the end of the copy of this slot to a device: until then nobody may write to it."""
        self._copied[slot] = event

    def claim(self, slot: int) -> None:
        """Returns once the slot may be written to again. Waits only for a copy to a device that hasn't ended."""
        event, self._copied[slot] = self._copied[slot], None
        if event is not None:
            event.synchronize()

    def close(self) -> None:
        """Unpins the memory. It is given back when the last view of it is gone."""
        for slot in range(self.slots):
            self.claim(slot)
        if self._pinned:
            self._pinned = False
            torch.cuda.check_error(_runtime().cudaHostUnregister(self._address))

    def _pin(self) -> None:
        error = _runtime().cudaHostRegister(self._address, self._bytes, 0)
        if int(error) != 0:
            raise UnusableError(
                f"can't pin host memory for batches (CUDA error {int(error)}): {self._explain()}"
            )
        self._pinned = True

    def _explain(self) -> str:
        need = f"{self._bytes / _MIB:,.0f} MiB for {self.slots} batches"
        return f"{need}; fewer workers or a smaller prefetch need less"


def _runtime() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]


def _round_up(count: int) -> int:
    return -(-count // _ALIGN) * _ALIGN
