"""What the checks look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.node.environment import Gpu, Machine
from gpubench.node.watch.nvml import Nvml
from gpubench.plan.experiment import Experiment


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchReport:
    """What the child that tried torch said before it ended or came to hold its GPUs."""

    pid: int
    imported: Mapping[str, Any] | None = None
    """Versions; None: the imports failed, and `trouble` says how."""
    numbering: Sequence[str] | str | None = None
    """uuids in torch's order, or why they can't be had; None: not tried."""
    ranks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Backend -> what became of an all-reduce."""
    gpus: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """uuid -> what became of a matrix product."""
    holding: bool = False
    """Whether it holds its CUDA contexts still."""
    trouble: str = ""
    """Why it said no more; empty: it said all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckContext:
    """The machine, the surroundings, and a child that tries torch."""

    nvml: Nvml
    machine: Machine
    environ: Mapping[str, str]
    experiment: Experiment
    """What a plain `gpubench sweep` would run here."""
    ask_torch: Callable[[], TorchReport]
    """Starts the child at the first call, which takes seconds; later calls give the same answer."""

    def torch_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that torch is tried on."""
        return usable_together(self.machine.gpus)


def usable_together(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Those of the visible GPUs that one process can use at once: CUDA shows it a single MIG slice at most."""
    return tuple(gpu for gpu in gpus if not gpu.parent) or tuple(gpus[:1])


def name_gpus(gpus: Sequence[Gpu], uuids: Sequence[str]) -> str:
    """`all GPUs`, `GPU 2`, `GPUs 0, 1`: which of the visible ones, by the numbers that `--gpu-ids` takes."""
    if len(uuids) == len(gpus) > 1:
        return "all GPUs"
    numbers = [str(gpu.index) for gpu in gpus if gpu.uuid in uuids]
    return f"GPU{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
