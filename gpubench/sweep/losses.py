"""GPUs that were lost while a sweep ran, and what that means for the units that are still to run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.basics.errors import UnusableError
from gpubench.node.environment import Gpu
from gpubench.node.node import Node


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One GPU that can't be used any more."""

    gpu: Gpu
    since: str
    """When it was noticed: 12:01, by the clock on the wall."""
    said: str
    """The driver's words."""

    @property
    def words(self) -> str:
        return (
            f"GPU {self.gpu.index} ({self.gpu.uuid}) has been lost since {self.since}; the driver says: {self.said}; "
            "reset it or reboot"
        )


def look(node: Node, gpus: Sequence[Gpu], since: str) -> list[Loss]:
    """Those of these GPUs that the driver has lost."""
    said = node.lost_gpus([gpu.uuid for gpu in gpus])
    return [Loss(gpu=gpu, since=since, said=said[gpu.uuid]) for gpu in gpus if gpu.uuid in said]


def none_left(lost: Iterable[Loss]) -> UnusableError:
    """How a sweep ends that has no GPU left."""
    told = "; ".join(loss.words for loss in lost)
    return UnusableError(f"no GPU is left: {told}; then the same command goes on where this one stopped")
