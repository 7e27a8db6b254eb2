"""GPUs that were lost while a sweep ran, and what that means for the units that are still to run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpubench.basics.errors import UnusableError
from gpubench.node.environment import Gpu
from gpubench.node.watch import losses
from gpubench.node.watch.nvml import Nvml


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


def look(nvml: Nvml, gpus: Iterable[Gpu], since: str) -> list[Loss]:
    """Those of these GPUs that the driver has lost. Costs a few microseconds a GPU that is well."""
    said = ((gpu, losses.loss(nvml, gpu.uuid)) for gpu in gpus)
    return [Loss(gpu=gpu, since=since, said=words) for gpu, words in said if words is not None]


def none_left(lost: Iterable[Loss]) -> UnusableError:
    """How a sweep ends that has no GPU left."""
    told = "; ".join(loss.words for loss in lost)
    return UnusableError(f"no GPU is left: {told}; then the same command goes on where this one stopped")
