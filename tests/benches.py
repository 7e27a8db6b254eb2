"""Sweeps on machines that tests make up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpubench.node.environment import Machine
from gpubench.node.launch.launcher import Launcher
from gpubench.node.node import Node
from gpubench.node.watch.nvml import NoNvml, Nvml
from gpubench.plan.outlook import place
from gpubench.plan.plan import Plan
from gpubench.plan.rounds import Rounds
from gpubench.plan.sources import Disk
from gpubench.render.live import QuietView, View
from gpubench.results.store import Results
from gpubench.schema.row import Row
from gpubench.sweep.bench import Bench
from gpubench.sweep.run import run
from gpubench.sweep.summary import Summary
from gpubench.sweep.survey import Settings
from gpubench.sweep.sweep import Sweep


class Heard(QuietView):
    """Keeps what the sweep says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def began_round(self, number: int, rounds: Rounds) -> None:
        if number > 1:
            self.say(place(number, rounds))

    def say(self, text: str) -> None:
        self.lines.append(text)


def node_of(machine: Machine, nvml: Nvml | None = None) -> Node:
    """A node on such a machine; without a driver where none is given."""
    return Node(nvml=nvml or NoNvml("NVML was not opened"), machine=machine)


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
    bench = Bench.of(plan, node_of(machine, nvml), Results(folder), sources or Disk())
    return Sweep(plan=plan, bench=bench, settings=settings or Settings())


def run_with(
    launcher: Launcher,
    work: Sweep,
    view: View,
    should_stop: Callable[[], bool] = lambda: False,
    emit: Callable[[Row], None] = lambda _: None,
) -> Summary:
    """Runs a sweep whose trials this launcher starts."""
    work.bench.node.launcher = launcher
    return run(work, view, should_stop, emit)
