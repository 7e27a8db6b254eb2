"""Sweeps on machines that tests make up."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gpubench.commands.sweep import write_tables_without_running
from gpubench.node.environment import Machine
from gpubench.node.launch.fork_server import ForkServer
from gpubench.node.node import Node
from gpubench.node.watch.nvml import NoNvml, Nvml
from gpubench.plan.outlook import format_round_number
from gpubench.plan.plan import Plan
from gpubench.plan.rounds import RoundLimits
from gpubench.plan.sources import DiskSources
from gpubench.plan.wall_time import WallTime
from gpubench.render.live import QuietView, View
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.run.limits import Limits, SweepSummary
from gpubench.run.sweep import RunningRound, measure_rounds
from gpubench.run.sweep_state import SweepState
from gpubench.run.unit_runner import UnitRunner
from gpubench.schema.row import Row


class Heard(QuietView):
    """Keeps what the sweep says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show_round_start(self, number: int, rounds: RoundLimits) -> None:
        if number > 1:
            self.say(format_round_number(number, rounds))

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
    sources: DiskSources | None = None,
    retry: frozenset[str] = frozenset(),
    fresh: bool = False,
) -> SweepState:
    """A sweep as `gpubench sweep` puts it together; nothing is read or written yet."""
    runner = UnitRunner.build(plan, node_of(machine, nvml), Results(folder), sources or DiskSources())
    return SweepState(plan=plan, runner=runner, retry=retry, fresh=fresh)


@dataclass(kw_only=True)
class Ended(SweepSummary):
    """What a sweep came to, and what has kept it from more."""

    limits: Limits


def count_again(work: SweepState) -> Ended:
    """What the same command comes to where nothing is left to run."""
    limits = Limits.build(work, lambda: False)
    summary = write_tables_without_running(work, work.list_planned_of_all_rounds(), limits)
    return Ended(limits=limits, **dataclasses.asdict(summary))


def counts(ended: Ended) -> dict[str, Any]:
    """The counts that are not zero, and whether it was stopped."""
    values = {field.name: getattr(ended, field.name) for field in dataclasses.fields(SweepSummary)}
    return {name: value for name, value in values.items() if value} | (
        {"interrupted": True} if ended.limits.stop.is_resumable else {}
    )


def run_with(
    launcher: ForkServer,
    work: SweepState,
    view: View,
    should_stop: Callable[[], bool] = lambda: False,
    emit: Callable[[Row], None] = lambda _: None,
    wall_time: WallTime | None = None,
    *,
    has_tables: bool = True,
) -> Ended:
    """Runs a sweep whose trials this launcher starts.

    `has_tables`: whether it makes tables, for the folder and for a view that shows none after a round, and looks at
    other rows for each that it hands on: nine tenths of the time of a sweep of scripts.
    """
    work.runner.node.launcher = launcher
    limits = Limits.build(work, should_stop, wall_time)
    with contextlib.ExitStack() as without:
        if not has_tables:
            without.enter_context(patch.object(SweepState, "write_tables"))
            make_rows = lambda _, records, held: [make_row(record) for record in records]  # noqa: E731, ARG005
            without.enter_context(patch.object(SweepState, "complete_rows", make_rows))
        if not has_tables and type(view).show_round_end is View.show_round_end:
            without.enter_context(patch.object(RunningRound, "announce_round_end"))
        summary = measure_rounds(work, limits, view, emit)
    return Ended(limits=limits, **dataclasses.asdict(summary))
