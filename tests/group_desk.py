"""A desk on which sweeps of jobs side by side are made, with scripted trials."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import scripted
from benches import Ended, Heard, run_with, sweep_of
from scripted import Scripted, trains_for

from gpubench.node.watch.nvml import Nvml
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.counting import select_counting_of_first_round
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.columns import MEASURED
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record

BASE = """
name = "test"
[fixed]
model = "lenet"
variant = "synthetic"
input_size = 28
[run]
rounds = 1
"""


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps into it one after the other, as `gpubench sweep` makes them."""

    folder: Path
    gpus: int = 1
    cpus: int | None = 2
    nvml: Nvml | None = None
    said: list[str] = dataclasses.field(default_factory=list)
    last_work: SweepState = dataclasses.field(init=False)

    def work(self, *jobs: str, retry: str = "", fresh: bool = False, **given: Any) -> SweepState:
        own = ("repeats", "rounds", "budget", "timeout", "pairs")
        options = {name: given.pop(name) for name in own if name in given}
        experiment = apply_options(
            parse_experiment(BASE, "test"), ExperimentOptions(fields=given, jobs=jobs, **options)
        )
        machine = scripted.computer(self.gpus, cpus=self.cpus)
        plan = make_plan(experiment, machine, DiskSources(), "given")
        again = frozenset(retry.split(",") if retry else ())
        made = sweep_of(plan, self.folder, machine, nvml=self.nvml, retry=again, fresh=fresh)
        made.load()
        return made

    def sweep(
        self,
        *jobs: str,
        by: Scripted | None = None,
        stop: Callable[[], bool] = lambda: False,
        **given: Any,
    ) -> Ended:
        """`gpubench sweep --job … --job …` with these options, as text."""
        work = self.work(*jobs, **given)
        work.runner.results.create_folder()
        store_plan(work)
        view, launcher = Heard(), by or Scripted()
        self.last_work = work
        summary = run_with(launcher, work, view, stop, has_tables=False)
        launcher.close()
        self.said = view.lines
        return summary

    def records(self) -> list[Record]:
        """Every attempt that is stored, a job each."""
        return Results(self.folder).read_records()

    def jobs(self) -> list[Record]:
        """Of each job of a group the attempt that counts, in the order of the jobs."""
        found = [r for r in select_counting_of_first_round(self.records()).values() if r.group]
        return sorted(found, key=lambda r: (str(r.group), str(r.job)))

    def solos(self) -> list[Record]:
        return [r for r in select_counting_of_first_round(self.records()).values() if not r.group]

    def table(self) -> pd.DataFrame:
        """trials.csv, of groups only, as the last sweep writes it."""
        self.last_work.write_tables()
        return pd.read_csv(self.folder / "trials.csv").query("group.notna()").sort_values(["group", "job"])

    def measured_alone(self, figures: dict[int, dict[str, Any]]) -> None:
        """Writes figures by batch size into the stored trials alone, as if they had been watched. None: not known."""
        for path in (self.folder / "records").glob("*/t*.json"):
            stored = json.loads(path.read_text())
            for column, value in figures[stored["trial"]["batch_size"]].items():
                stored["result"].pop(column, None)
                stored["missing"].pop(column, None)
                kind = "missing" if value is None else "result"
                stored[kind][column] = value or "the log does not tell"
            path.write_text(json.dumps(stored))


def times(alone: dict[int, float], together: dict[int, float]) -> Scripted:
    """Epoch times by batch size."""

    def choose(order: TrialOrder) -> scripted.Script:
        return trains_for((together if order.jobs > 1 else alone)[order.trial.batch_size])

    return Scripted(choose)


def in_a_group(script: scripted.Script, batch: int) -> Scripted:
    """This script for the job of that batch, only where others run beside it."""
    return Scripted(
        lambda order: script if order.jobs > 1 and order.trial.batch_size == batch else scripted.trains
    )


TWO = ("batch_size=16", "batch_size=32")


def both_or_neither(record: Record) -> list[str]:
    return [
        column.name
        for column in MEASURED
        if column.name != "doubts"
        and (record.result.get(column.name) is None) != bool(record.missing.get(column.name))
    ]
