"""Samples are cut again by anybody: their times count from `span.launched`, on the clock of the record's windows."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches import run_with, sweep_of

from gpubench.node import environment
from gpubench.node.launch.fork_server import ForkedTrial, ForkServer, never_stop
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.live import QuietView
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record

FIELDS = {
    "model": "mlp",
    "variant": "synthetic",
    "train_images": "4096",
    "batch_size": "16",
    "num_classes": "4",
    "input_size": "28",
    "cpus": "1",
}
TICK_S = 0.01
"""Of the kernel's CPU clock."""
ROUNDED_S = 1e-4
"""By what a time in the samples may be rounded, at most."""


def stored(
    folder: Path, server: ForkServer, **fields: str
) -> tuple[Record, dict[tuple[str, str], np.ndarray[Any, Any]]]:
    """A trial's record, and its samples: (device, metric) -> times on the windows' clock, values."""
    experiment = apply_options(
        parse_experiment('name = "test"\n[run]\nrounds = 1\n', "test"),
        ExperimentOptions(fields=FIELDS | fields, timeout="60s"),
    )
    machine, sources = environment.make_machine(None), DiskSources()
    plan = expand_experiment(experiment, device="cpu", sources=sources, cpus=machine.cpu_count)
    sweep = sweep_of(plan, folder, machine, sources=sources)
    sweep.runner.results.create_folder()
    run_with(server, sweep, QuietView())
    (record,) = sweep.runner.results.read_records()
    assert record.status == "ok", record.reason
    (path,) = (folder / "samples").rglob("*.csv")
    series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            at = float(row["t_s"]) + record.span.launched
            series.setdefault((row["device"], row["metric"]), []).append((at, float(row["value"])))
    return record, {key: np.array(rows).T for key, rows in series.items()}


LAUNCH_S = 0.3


class Slow:
    """A launcher that takes its time, as one on another machine would: watching starts later."""

    def __init__(self, server: ForkServer) -> None:
        self.server = server

    def launch(self, order: TrialOrder, should_stop: Callable[[], bool] = never_stop) -> ForkedTrial:
        time.sleep(LAUNCH_S)
        return self.server.launch(order, should_stop)

    def close(self) -> None:
        self.server.close()


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{"epochs": "3"}, {"window": "0.5s"}], ids=["epochs", "window"])
def test_steps_and_cpu_time_are_found_again(
    tmp_path: Path, server: ForkServer, fields: dict[str, str]
) -> None:
    record, samples = stored(tmp_path / "r", Slow(server), **fields)
    ends, step_ms = samples["rank0", "step_time_ms"]
    at, spent = samples["host", "cpu_tree_s"]
    stolen_at, stolen = samples["host", "cpu_stolen_s"]
    measured = [e for e in record.epochs if not e["warmup"]]
    # Each step ends in one of the windows.
    assert len(ends) == sum(e["steps"] for e in measured)
    windows = {w.epoch: w for w in record.windows}
    usable_s = 0.0
    assert at[0] >= record.span.launched + LAUNCH_S
    for epoch in measured:
        window = windows[epoch["epoch"]]
        t0, t1 = window.t0, window.t1
        inside = (ends > t0) & (ends <= t1 + ROUNDED_S)
        assert inside.sum() == epoch["steps"]
        assert step_ms[inside].sum() == pytest.approx(1e3 * epoch["epoch_time_s"], rel=0.01)
        last = ends[inside][-1]
        # It ends with its last step.
        assert last == pytest.approx(t1, abs=0.005)
        cpu_s = np.interp(t1, at, spent) - np.interp(t0, at, spent)
        assert cpu_s == pytest.approx(epoch["cpu_s"], abs=0.002)
        assert epoch["cpu_s"] > 5 * TICK_S, "there was something to find"
        # What the host of this machine gave to others was nobody's here.
        usable_s += t1 - t0 - (np.interp(t1, stolen_at, stolen) - np.interp(t0, stolen_at, stolen))
    assert record.result["cpu_util_trial_pct"] == pytest.approx(
        100 * sum(e["cpu_s"] for e in measured) / usable_s, rel=0.05
    )
