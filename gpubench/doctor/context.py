"""What the checks look at, and what each finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpubench.node.environment import Gpu, Machine
from gpubench.node.watch.nvml import Nvml
from gpubench.plan.experiment import Experiment

FindingVerdict = Literal["ok", "doubt", "no"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One line of the answer."""

    group: str = ""
    """The heading that it stands under; checks leave it to their registry."""
    name: str
    """What was looked at."""
    verdict: FindingVerdict
    """`ok`; `doubt`: it works, with something to know; `no`: it does not, and a figure or a feature is lost."""
    found: str
    """What was found, and what it costs where it is not ok."""
    remedy: str = ""
    """What to do about it; empty where nothing is wrong, or nothing can be done."""
    forbids: bool = False
    """Whether no plain `gpubench sweep` could measure anything here and now, on whichever of the GPUs."""


def make_ok(name: str, found: str) -> CheckResult:
    """It is as it should be."""
    return CheckResult(name=name, verdict="ok", found=found)


def make_doubt(name: str, found: str, remedy: str) -> CheckResult:
    """It works, with something to know."""
    return CheckResult(name=name, verdict="doubt", found=found, remedy=remedy)


def make_failure(name: str, found: str, remedy: str = "", *, forbids: bool = False) -> CheckResult:
    """It does not work, and a figure or a feature is lost."""
    return CheckResult(name=name, verdict="no", found=found, remedy=remedy, forbids=forbids)


@dataclass(kw_only=True, slots=True)
class TorchReport:
    """What the child that tried torch said before it ended or came to hold its GPUs."""

    pid: int = 0
    imported: Mapping[str, Any] | None = None
    """Versions; None: the imports failed, and `trouble` says how."""
    ranks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Backend -> what became of an all-reduce."""
    gpus: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """uuid -> what became of a matrix product."""
    holding: bool = False
    """Whether it holds its CUDA contexts still."""
    trouble: str = ""
    """Why it said no more; empty: it said all."""

    def add_line(self, line: Mapping[str, Any]) -> None:
        """Takes down a line of the child's."""
        if "ranks" in line:
            self.ranks[line["ranks"]] = line
        elif "gpu" in line:
            self.gpus[line["gpu"]] = line
        else:
            self.imported = line.get("imported", self.imported)
            self.trouble = line.get("failed", self.trouble)
            self.holding = line.get("holding", self.holding)


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

    def list_torch_gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that torch is tried on."""
        return select_gpus_usable_together(self.machine.gpus)

    def describe_gpus(self, uuids: Sequence[str]) -> str:
        """`all GPUs`, `GPUs 0, 1`: which of the visible ones, by the numbers that `--gpu-ids` takes."""
        gpus = self.machine.gpus
        if len(uuids) == len(gpus) > 1:
            return "all GPUs"
        numbers = [str(gpu.index) for gpu in gpus if gpu.uuid in uuids]
        return f"GPU{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def select_gpus_usable_together(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Those of the visible GPUs that one process can use at once: CUDA shows it a single MIG slice at most."""
    return tuple(gpu for gpu in gpus if not gpu.parent) or tuple(gpus[:1])
