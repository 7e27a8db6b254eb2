"""Sweeps on machines that tests make up."""

from __future__ import annotations

from pathlib import Path

from gpubench.environment import Machine
from gpubench.experiment.plan import Plan
from gpubench.monitor.nvml import Nvml
from gpubench.report.live import QuietView
from gpubench.runner.bench import Bench
from gpubench.runner.sources import Disk
from gpubench.runner.sweep import Settings, Sweep
from gpubench.store import Results


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
