"""`single`: one process, one device. Also the contract that every strategy keeps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from gpubench.train.place import Place


class Single:
    """One process, one device. Other strategies override what differs."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self) -> None:
        """Meets the other ranks, where there are any."""

    def wrap(self, model: torch.nn.Module) -> torch.nn.Module:
        """The model as it is trained. `model` lies on the rank's first device."""
        return model

    def unsynchronized(self, model: torch.nn.Module) -> AbstractContextManager[None]:  # noqa: ARG002
        """Around all micro-batches of a step but the last: gradients stay on this rank."""
        return nullcontext()

    @property
    def no_exchange(self) -> str | None:
        """Why ranks exchange no gradients; None where they do."""
        if self.place.world > 1:
            return None
        if len(self.place.devices) > 1:
            return "one process drives all devices: what these exchange is not told"
        return "one process: nothing is exchanged"

    def exchanged_bytes(self, trained: torch.nn.Module) -> int | None:  # noqa: ARG002
        """Bytes of gradients that each rank hands over in a step; None: not known, and told as that."""
        return None

    def watch_exchange(
        self, trained: torch.nn.Module, ready: Callable[[], Callable[[], None] | None]
    ) -> None:
        """Calls `ready` for each bucket of gradients when it is, and what that returned once they are averaged.

        To be called before the first step. A strategy that can't tell leaves this as it is: `ready` is then never
        called, and the times of the exchange stay empty with that reason.
        """

    def barrier(self) -> None:
        """Returns when every rank has come here."""

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """`values` (any shape, on the rank's device) summed over the ranks."""
        return values
