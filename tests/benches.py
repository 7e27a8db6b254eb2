"""Sweeps on machines that tests make up."""

from __future__ import annotations

from pathlib import Path

from gpubench.node.environment import Machine
from gpubench.node.watch.nvml import Nvml
from gpubench.plan.plan import Plan
from gpubench.plan.sources import Disk
from gpubench.report.live import QuietView
from gpubench.results.store import Results
from gpubench.sweep.bench import Bench
from gpubench.sweep.sweep import Settings, Sweep


class Heard(QuietView):
    """Keeps what the sweep says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def sweep_of(
    plan: Plan,
    folder: Path,
    machine: Machine,
    *,
    nvml: Nvml | None = None,
    sources: Disk | None = None,
    settings: Settings | None = None,
) -> Sweep:
    """A sweep as `gpubench sweep` puts it together; nothing is read or written yet."""
    bench = Bench(
        machine=machine,
        nvml=nvml,
        results=Results(folder),
        sources=sources or Disk(),
        experiment=plan.experiment.name,
        device=plan.device,
        timeout_s=plan.experiment.timeout_s,
    )
    return Sweep(plan=plan, bench=bench, settings=settings or Settings())
