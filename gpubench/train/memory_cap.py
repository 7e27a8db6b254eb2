"""`--gpu-mem-cap`: makes a big card answer like a small one, by the driver's count of this process's memory.

torch's own limit binds only its allocator, so it is set to the cap less what CUDA, NCCL and libraries take beside it.
That is asked of the parent, which reads it from the driver: after a rehearsal that makes the libraries take theirs,
and again after the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from gpubench.train.device_assignment import DeviceAssignment

MIB = 2**20
MARGIN_MIB = 48
"""Kept free below the cap, for what libraries take beside torch's allocator after the last look."""
CONTEXT_GUESS_MIB = 650
"""What a CUDA context takes, until the driver says (614 MiB were measured on an H200)."""


class MemoryCap:
    """The cap of one rank. Does nothing where none is set."""

    def __init__(
        self,
        cap_mib: int | None,
        assignment: DeviceAssignment,
        uuids: Sequence[str],
        ask: Callable[[], Mapping[str, float] | None],
    ) -> None:
        """`ask`: the driver's MiB of the trial's processes on each GPU, by uuid; None where it does not tell."""
        self.cap_mib = cap_mib if assignment.is_cuda else None
        self._assignment = assignment
        self._uuids = uuids
        self._ask = ask

    def set_first_limit(self) -> None:
        """A first limit, before anything is allocated."""
        if self.cap_mib is not None:
            for device in self._assignment.devices:
                self._set_allocator_limit(device, CONTEXT_GUESS_MIB)

    def warm_up_and_fit_limit(
        self, trained: torch.nn.Module, size: int, channels: int, dtype: torch.dtype | None
    ) -> None:
        """One pass forward and back of two images a device sets libraries up; then `fit_allocator_limit`.

        Normalisation layers keep their statistics, the gradients are dropped, and the allocator counts its peaks anew.
        """
        if self.cap_mib is None:
            return
        trained.eval()
        images = torch.zeros(
            2 * len(self._assignment.devices), channels, size, size, device=self._assignment.device
        )
        with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None):
            total = trained(images).sum()
        total.backward()
        trained.zero_grad(set_to_none=True)
        del images, total
        self._assignment.synchronize()
        torch.cuda.empty_cache()
        for device in self._assignment.devices:
            torch.cuda.reset_peak_memory_stats(device)
            torch.cuda.reset_accumulated_memory_stats(device)
        self.fit_allocator_limit()

    def fit_allocator_limit(self) -> None:
        """Sets the allocator's limit by what the driver says. Raises torch.OutOfMemoryError over the cap."""
        if self.cap_mib is None:
            return
        self._assignment.synchronize()
        used_by_uuid = self._ask() or {}
        for device in self._assignment.devices:
            used = used_by_uuid.get(self._uuids[device.index or 0])
            if used is not None and used > self.cap_mib:
                raise torch.OutOfMemoryError(
                    f"{used:,.0f} MiB by the driver, over the cap of {self.cap_mib:,} MiB"
                )
            reserved = torch.cuda.memory_reserved(device) / MIB
            self._set_allocator_limit(device, CONTEXT_GUESS_MIB if used is None else used - reserved)

    def _set_allocator_limit(self, device: torch.device, outside_mib: float) -> None:
        assert self.cap_mib is not None
        mib = self.cap_mib - outside_mib - MARGIN_MIB
        if mib <= 0:
            raise torch.OutOfMemoryError(
                f"the cap of {self.cap_mib:,} MiB is less than CUDA and its libraries take ({outside_mib:,.0f} MiB)"
            )
        total = torch.cuda.get_device_properties(device).total_memory / MIB
        torch.cuda.set_per_process_memory_fraction(min(1.0, mib / total), device)
