"""What a sweep says of other work on the CPUs before its first trial."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Heard, node_of, sweep_of
from swept import ASKED

from gpubench.node.environment import Machine
from gpubench.node.watch import host, host_load
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.run import announce
from gpubench.run.announce import print_plan
from gpubench.run.checks import describe_other_load


@pytest.fixture
def one_cpu() -> Machine:
    return dataclasses.replace(scripted.computer(), cpu_ids=(min(os.sched_getaffinity(0)),), cpu_count=1)


@pytest.fixture
def spinner(one_cpu: Machine) -> Iterator[None]:
    (cpu,) = one_cpu.cpu_ids
    busy = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
    yield
    busy.kill()
    busy.wait()


@pytest.mark.usefixtures("spinner")
def test_other_work_is_told_in_cpus(one_cpu: Machine) -> None:
    began = time.monotonic()
    found = describe_other_load(node_of(one_cpu))
    assert time.monotonic() - began < 0.6
    assert found.endswith(" of 1 CPU")
    assert float(found.split()[0]) > 0.8


@pytest.mark.parametrize(
    ("busy_s", "found"), [(0.0, ""), (0.018, ""), (0.1, "0.3 of 1 CPU"), (9.0, "1.0 of 1 CPU")]
)
def test_from_10_per_cent_on(
    monkeypatch: pytest.MonkeyPatch, one_cpu: Machine, busy_s: float, found: str
) -> None:
    """Seconds of other work in 0.3 s of one CPU; never more than all of them."""
    readings = iter([5.0, 5.0 + busy_s])
    monkeypatch.setattr(host, "read_cpu_time", lambda _: host.CpuTime(next(readings), 0.0))
    assert describe_other_load(node_of(one_cpu)) == found


@pytest.mark.parametrize("load", ["1.8 of 2 CPUs", ""])
def test_beside_other_work_the_estimates_stay_and_a_word_stands_behind_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, load: str
) -> None:
    """In the announcement and in `-n`; on a quiet machine nothing is said."""
    asked = apply_options(
        parse_experiment(ASKED.format(name="t"), "t"), ExperimentOptions(fields={"batch_size": "8"})
    )
    work = sweep_of(
        expand_experiment(asked, device="cpu", sources=DiskSources()), tmp_path, scripted.computer()
    )
    monkeypatch.setattr(announce, "describe_other_load", lambda _: load)
    view = Heard()
    assert announce.announce_and_confirm_sweep(work, work.list_planned_of_round(1), view, yes=True)
    print_plan(work, work.list_planned_of_round(1), load)
    plan = capsys.readouterr().out.splitlines()[-1]
    behind = r" \(other work uses 1\.8 of 2 CPUs; it may take longer\)" if load else ""
    assert re.fullmatch(rf"t: 1 trial to run, roughly 2 min{behind}, results in .*", view.lines[0])
    assert re.fullmatch(rf"1 trial to run; 2 min{behind}; results in .*", plan)
    doubtful = (
        "times measured beside other work are doubtful; better start again when it has ended (top shows it)"
    )
    assert (doubtful in view.lines) == bool(load)


def test_under_a_quota_the_cgroup_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = dataclasses.replace(
        scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=2, cpu_usage_file="/sys/fs/cgroup/cpu.stat"
    )
    readings = iter([1.0, 1.1])
    monkeypatch.setattr(host, "read_cgroup_cpu_s", lambda _: next(readings))
    monkeypatch.setattr(host, "read_cpu_time", lambda _: host.CpuTime(7.0, 0.0))
    assert host_load.measure_busy_pct(machine, 0.1) == pytest.approx(50, rel=0.2)


@pytest.mark.parametrize(("busy", "taken"), [(0.0, 0.0), (56.0, 0.0), (58.0, 25.0), (64.0, 100.0)])
def test_of_a_number_of_cpus_what_the_others_have_no_room_for_counts(
    monkeypatch: pytest.MonkeyPatch, busy: float, taken: float
) -> None:
    """Eight of 64 CPUs, none in particular: 56 may be busy and take nothing."""
    machine = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=8)
    monkeypatch.setattr(host, "read_cpu_time", on_all(busy))
    assert host_load.measure_busy_pct(machine, 0.1) == pytest.approx(taken, abs=3)


def on_all(busy_cpus: float) -> Callable[[Any], host.CpuTime]:
    """The kernel's count on a host of which so many CPUs are always busy."""
    began = time.monotonic()
    return lambda _: host.CpuTime(busy_cpus * (time.monotonic() - began), 0.0)
