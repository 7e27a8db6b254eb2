"""GPUs that are lost while a sweep runs: which units that keeps from running, and when it ends the sweep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpubench.basics.errors import UnusableError
from gpubench.node.node import Node


@dataclass(frozen=True, kw_only=True, slots=True)
class LostGpu:
    """A GPU that can't be used any more."""

    index: int
    """As --gpu-ids takes it."""
    uuid: str
    since: str
    """When it was noticed: 12:01, by the clock on the wall."""
    reason: str
    """The driver's words."""

    @property
    def words(self) -> str:
        return (
            f"GPU {self.index} ({self.uuid}) has been lost since {self.since}; the driver says: {self.reason}; "
            "reset it or reboot"
        )


@dataclass(kw_only=True, slots=True)
class LostGpus:
    """The GPUs of a machine that its driver has lost since the sweep began."""

    node: Node
    lost: dict[int, LostGpu] = field(default_factory=dict)
    """By index."""
    checked: set[int] | None = None
    """Indices of the GPUs on which others' work would have kept the sweep from starting; None: nobody looked."""
    _announced: set[int] = field(default_factory=set)

    def look(self) -> None:
        """Asks the driver for the GPUs that it has lost since it was asked last."""
        gpus = [gpu for gpu in self.node.machine.gpus if gpu.index not in self.lost]
        reasons = self.node.lost_gpus([gpu.uuid for gpu in gpus])
        now = time.strftime("%H:%M")
        self.lost |= {
            gpu.index: LostGpu(index=gpu.index, uuid=gpu.uuid, since=now, reason=reasons[gpu.uuid])
            for gpu in gpus
            if gpu.uuid in reasons
        }

    @property
    def is_any_left(self) -> bool:
        return len(self.lost) < len(self.node.machine.gpus)

    def among(self, indices: Iterable[int]) -> list[LostGpu]:
        """The lost ones among these GPUs."""
        return [self.lost[index] for index in dict.fromkeys(indices) if index in self.lost]

    def list_unusable(self) -> set[int]:
        """GPUs that no trial is moved onto: lost ones, and those that nobody has looked at: others may work there."""
        if not self.lost:
            return set()
        all_gpus = {gpu.index for gpu in self.node.machine.gpus}
        return {*self.lost, *(all_gpus - (all_gpus if self.checked is None else self.checked))}

    def announce(self, say: Callable[[str], None]) -> None:
        """Names each lost GPU, once."""
        for index in sorted(self.lost.keys() - self._announced):
            self._announced.add(index)
            say(
                f"{self.lost[index].words}. Trials that need it are skipped, the others go on "
                "with the GPUs that are left"
            )

    def refuse(self) -> UnusableError:
        """How a sweep ends that has no GPU left."""
        losses = "; ".join(gpu.words for gpu in self.lost.values())
        return UnusableError(
            f"no GPU is left: {losses}; then the same command goes on where this one stopped"
        )
