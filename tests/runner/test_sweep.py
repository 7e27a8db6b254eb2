"""The sweep, with scripted trials: every ending, what is skipped, what is run again, what is kept."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scripted
from scripted import Script, Scripted, Spec

from gpubench import environment
from gpubench.errors import UnusableError
from gpubench.experiment.experiment import Experiment, Options, parse, with_options
from gpubench.experiment.plan import expand
from gpubench.monitor.nvml import Device, Memory, Nvml, Utilisation
from gpubench.report.live import QuietView
from gpubench.result import MEASURED, Record
from gpubench.runner.sources import Disk
from gpubench.runner.sweep import Settings, Summary, Sweep
from gpubench.store import Results

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n[run]\nepochs = 2\n'


class Heard(QuietView):
    """Keeps what the sweep says."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps into it one after the other."""

    folder: Path
    gpus: int = 0
    nvml: Nvml | None = None
    name: str = "NVIDIA H200"
    said: list[str] = dataclasses.field(default_factory=list)

    def sweep(
        self,
        launcher: Scripted | None = None,
        *,
        retry: str = "",
        fresh: bool = False,
        stop: Callable[[], bool] = lambda: False,
        order: str = "given",
        asked: Experiment | None = None,
        **fields: str,
    ) -> Summary:
        """`gpubench sweep` with these fields, as text."""
        launcher = launcher or Scripted()
        job = self.job(retry=retry, fresh=fresh, order=order, asked=asked, **fields)
        job.results.create()
        view = Heard()
        summary = job.run(launcher, view, stop, lambda _: None)
        launcher.close()
        self.said = view.lines
        return summary

    def job(
        self, *, retry: str = "", fresh: bool = False, order: str = "given", asked: Experiment | None = None, **fields: str
    ) -> Sweep:
        experiment = with_options(asked or parse(BASE, "test"), Options(fields=fields))
        plan = expand(experiment, device="cuda" if self.gpus else "cpu", sources=Disk(), order=order)
        job = Sweep(
            plan=plan,
            results=Results(self.folder),
            machine=scripted.computer(self.gpus, self.name),
            nvml=self.nvml,
            sources=Disk(),
            settings=Settings(retry=frozenset(retry.split(",")) if retry else frozenset(), fresh=fresh),
        )
        job.load()
        return job

    def records(self) -> list[Record]:
        return Results(self.folder).records()

    def endings(self) -> list[tuple[int, str]]:
        """(batch size, status) of each attempt, in the order in which they ran."""
        return [(r.trial["batch_size"], r.status) for r in sorted(self.records(), key=lambda r: r.windows_key())]

    def table(self) -> pd.DataFrame:
        return pd.read_csv(self.folder / "trials.csv").set_index("batch_size").sort_index()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def at(batch: int, script: Script, otherwise: Script = scripted.trains) -> Callable[[Spec], Script]:
    """This script for batches of this size and above."""
    return lambda spec: script if spec["batch_size"] >= batch else otherwise


def counts(summary: Summary) -> dict[str, int]:
    return {name: value for name, value in dataclasses.asdict(summary).items() if value}
