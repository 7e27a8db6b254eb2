"""The seam between a sweep and a machine where trials run: what goes across it could go over a network."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
import scripted
from benches import Heard, node_of, run_with, sweep_of
from scripted import Driver, Scripted

from gpubench.node.node import Node
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record

T = TypeVar("T")
BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
BASE += "[run]\nrounds = 1\nepochs = 3\n"


def sent(value: T) -> T:
    """What arrives at the other end of a connection."""
    return pickle.loads(pickle.dumps(value))


@dataclass(kw_only=True, slots=True)
class ByWire(Node):
    """A node that gets and gives nothing but copies."""

    def run(
        self,
        orders: Sequence[TrialOrder],
        left_out: Sequence[Collection[str]],
        *,
        timeout_s: float,
        should_stop: Callable[[], bool],
        look: Callable[[Sequence[JobProgress]], None],
    ) -> list[Attempt]:
        done = Node.run_unit(
            self,
            sent(orders),
            sent(left_out),
            timeout_s=timeout_s,
            should_stop=should_stop,
            look=lambda progress: look(sent(progress)),
        )
        return sent(done)


def swept(folder: Path, kind: type[Node], launcher: Scripted, *jobs: str) -> list[Record]:
    """The records of trials on one GPU, and of all jobs side by side."""
    experiment = apply_options(parse_experiment(BASE, "test"), ExperimentOptions(jobs=jobs))
    machine = scripted.computer(1, cpus=4)
    plan = make_plan(experiment, machine, DiskSources(), "given")
    work = sweep_of(plan, folder, machine)
    node = node_of(machine, Driver(mib={os.getpid(): 700.0}))
    work.runner.node = kind(nvml=node.nvml, machine=machine)
    work.runner.results.create_folder()
    run_with(launcher, work, Heard())
    return sorted(
        work.runner.results.read_records(), key=lambda r: (r.group or "", r.trial["batch_size"] or 0)
    )


def filled(record: Record) -> dict[str, Any]:
    """Which columns have a figure, from what, and why the others have none."""
    sources = {column: told["source"] for column, told in record.provenance.items()}
    return {
        "figures": {name for name, value in record.result.items() if value is not None},
        "sources": sources,
        "missing": record.missing,
    }


@pytest.mark.slow
def test_records_are_the_same_where_orders_progress_and_attempts_are_sent_as_messages(tmp_path: Path) -> None:
    asked = "batch_size=16", "batch_size=32"
    here, there = (
        swept(tmp_path / kind.__name__, kind, Scripted(lambda _: scripted.trains_for(1.5)), *asked)
        for kind in (Node, ByWire)
    )
    assert [record.status for record in there] == ["ok"] * 4
    assert [filled(record) for record in there] == [filled(record) for record in here]
    assert {"gpu_mem_mib", "epoch_time_s", "slowdown"} <= filled(there[-1])["figures"]
    samples = sorted((tmp_path / "ByWire" / "samples").rglob("*.csv"))
    assert samples
    assert all("gpu_process_mem_mib" in path.read_text() for path in samples)


def test_a_trial_s_folder_is_made_and_removed_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the node's own place for temporary files, and for each job another."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    node, seen = node_of(scripted.computer()), []

    def notes(order: TrialOrder) -> scripted.Script:
        seen.append((order.scratch, order.scratch.is_dir(), order.data.left_out))
        return scripted.raises

    node.launcher = Scripted(notes)
    orders = [scripted.order(jobs=2), scripted.order(jobs=2)]
    node.run_unit(
        orders, [(), ("a.png", "b.png")], timeout_s=5, should_stop=lambda: False, look=lambda _: None
    )
    (first, *_), (second, *_) = seen
    assert first != second
    assert [(folder.parents[1], is_there) for folder, is_there, _ in seen] == [(tmp_path, True)] * 2
    assert [names is not None and Path(names).parent for *_, names in seen] == [False, second]
    assert list(tmp_path.iterdir()) == []
