"""What a sweep says of other work on the CPUs before its first trial."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import scripted
from benches import Heard, node_of

from gpubench.commands import sweep as command
from gpubench.node.environment import Machine
from gpubench.node.watch import host, host_load
from gpubench.sweep.preflight import tell_host_load


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
def test_a_busy_host_is_worth_one_line(one_cpu: Machine) -> None:
    view, began = Heard(), time.monotonic()
    tell_host_load(node_of(one_cpu), view)
    assert time.monotonic() - began < 0.6
    (line,) = view.lines
    assert line.startswith("other work uses ")
    assert line.endswith(
        " % of the CPUs, so times will be doubtful; better start again when it has ended (top shows it)"
    )
    assert int(line.split()[3]) > 80


@pytest.mark.parametrize(("busy_s", "lines"), [(0.0, 0), (0.018, 0), (0.1, 1), (9.0, 1)])
def test_from_10_per_cent_on(
    monkeypatch: pytest.MonkeyPatch, one_cpu: Machine, busy_s: float, lines: int
) -> None:
    """Seconds of other work in 0.3 s of one CPU."""
    readings = iter([5.0, 5.0 + busy_s])
    monkeypatch.setattr(host, "cpu_time", lambda _: host.CpuTime(next(readings), 0.0))
    view = Heard()
    tell_host_load(node_of(one_cpu), view)
    assert len(view.lines) == lines
    assert busy_s < 1 or " 100 %" in view.lines[0], "never more than all of them"


def test_a_kernel_that_does_not_tell_stops_nothing(monkeypatch: pytest.MonkeyPatch, one_cpu: Machine) -> None:
    monkeypatch.setattr(host, "cpu_time", silent)
    view = Heard()
    tell_host_load(node_of(one_cpu), view)
    assert view.lines == []


def test_under_a_quota_the_cgroup_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = dataclasses.replace(
        scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=2, cpu_usage_file="/sys/fs/cgroup/cpu.stat"
    )
    readings = iter([1.0, 1.1])
    monkeypatch.setattr(host, "cgroup_cpu_s", lambda _: next(readings))
    monkeypatch.setattr(host, "cpu_time", lambda _: host.CpuTime(7.0, 0.0))
    assert host_load.busy_pct(machine, 0.1) == pytest.approx(50, rel=0.2)


@pytest.mark.parametrize("told", [True, False])
def test_under_a_quota_a_full_host_counts_too(monkeypatch: pytest.MonkeyPatch, told: bool) -> None:
    """The cgroup is idle, and others leave it one of its two CPUs; a sandboxed kernel hides that."""
    machine = dataclasses.replace(
        scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=2, cpu_usage_file="/sys/fs/cgroup/cpu.stat"
    )
    monkeypatch.setattr(host, "cgroup_cpu_s", lambda _: 1.0)
    monkeypatch.setattr(host, "cpu_time", on_all(63.0) if told else silent)
    assert host_load.busy_pct(machine, 0.1) == pytest.approx(50 if told else 0, abs=5)


@pytest.mark.parametrize(("busy", "taken"), [(0.0, 0.0), (56.0, 0.0), (58.0, 25.0), (64.0, 100.0)])
def test_of_a_number_of_cpus_what_the_others_have_no_room_for_counts(
    monkeypatch: pytest.MonkeyPatch, busy: float, taken: float
) -> None:
    """Eight of 64 CPUs, none in particular: 56 may be busy and take nothing."""
    machine = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=8)
    monkeypatch.setattr(host, "cpu_time", on_all(busy))
    assert host_load.busy_pct(machine, 0.1) == pytest.approx(taken, abs=3)


def on_all(busy_cpus: float) -> Callable[[Any], host.CpuTime]:
    """The kernel's count on a host of which so many CPUs are always busy."""
    began = time.monotonic()
    return lambda _: host.CpuTime(busy_cpus * (time.monotonic() - began), 0.0)


def silent(_: Any) -> host.CpuTime:
    raise host.HostError("/proc/stat holds no CPU times here (a sandboxed kernel)")


def test_it_looks_before_the_fork_server_loads_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Enough(Exception):  # noqa: N818
        pass

    class Server:
        def __init__(self) -> None:
            order.append("fork server")
            raise Enough

    class Job:
        bench = SimpleNamespace(node=node_of(scripted.computer()))

        def abandon(self) -> None:
            pass

    monkeypatch.setattr("gpubench.sweep.preflight.announcement_lines", lambda *_: [])
    monkeypatch.setattr(command, "tell_host_load", lambda *_: order.append("look"))
    monkeypatch.setattr("gpubench.node.node.ForkServer", Server)
    with pytest.raises(Enough):
        command.run(Job(), (), Heard(), lambda: False, "table")  # type: ignore[arg-type]
    assert order == ["look", "fork server"]
