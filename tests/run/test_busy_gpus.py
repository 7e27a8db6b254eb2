"""Who may keep a sweep from starting, and what is said to whom."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import Heard, sweep_of
from fake_nvml import FakeNvml, gpu, running

from gpubench.basics.errors import UnusableError
from gpubench.node.locks import SweepLocks
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.run import busy_gpus
from gpubench.run.checks import inspect_gpus
from gpubench.run.sweep_state import SweepState
from gpubench.schema.gpu_look import GpuLook, GpuProcess, IdlePower

PYTHON = GpuProcess(pid=4711, name="python", mib=12_345.0)
XORG = GpuProcess(pid=99, name="Xorg", mib=None)


def a_look(
    util: float | None = 0.0,
    compute: tuple[GpuProcess, ...] | None = (),
    desktop: tuple[GpuProcess, ...] | None = (),
    power: float | None = 75.0,
    missing: dict[str, str] | None = None,
) -> GpuLook:
    return GpuLook(
        power_w=power,
        util_pct=util,
        compute=compute,
        desktop=desktop,
        readings=(10, 0),
        missing=missing or {},
    )


def rule(**looks: GpuLook) -> busy_gpus.GpuUseFindings:
    return busy_gpus.classify_gpu_use(looks, {uuid: int(uuid[-1]) for uuid in looks})


def test_an_empty_gpu_is_worth_no_word() -> None:
    ruling = rule(g0=a_look())
    assert ruling == busy_gpus.GpuUseFindings(
        busy=(), notes=(), unknown=(), idle=IdlePower(watts={"g0": 75.0}, readings={"g0": (10, 0)})
    )
    assert ruling.check_not_busy(allow_busy=False) == []


def test_a_busy_stranger_is_a_refusal_that_says_all() -> None:
    ruling = rule(g0=a_look(), g3=a_look(97.4, (PYTHON,)))
    with pytest.raises(UnusableError) as caught:
        ruling.check_not_busy(allow_busy=False)
    words = str(caught.value)
    assert "\n" not in words
    for part in ("GPU 3", "97 %", "4711", "python", "12,345 MiB", "wait", "--gpu-ids", "--allow-busy"):
        assert part in words
    assert "GPU 0" not in words
    assert caught.value.exit_code == 4
    # What a busy GPU draws is no idle power.
    assert dict(ruling.idle.watts) == {"g0": 75.0}


@pytest.mark.parametrize("desktop", [(), None])
def test_a_busy_gpu_without_processes_to_be_seen_is_one_too(desktop: tuple[GpuProcess, ...] | None) -> None:
    with pytest.raises(UnusableError, match=r"no process can be seen \(another container's"):
        rule(g0=a_look(55.0, (), desktop)).check_not_busy(allow_busy=False)
    hidden = rule(g0=a_look(55.0, None, desktop, missing={"compute": "Insufficient Permissions"}))
    with pytest.raises(UnusableError, match=r"no process can be seen \(Insufficient Permissions\)"):
        hidden.check_not_busy(allow_busy=False)


@pytest.mark.parametrize("util", [9.9, 10.0])
def test_a_desktop_is_a_line_whatever_it_shows(util: float) -> None:
    ruling = rule(g0=a_look(util, (), (XORG,)))
    # What it draws while it shows a film is no idle power.
    assert ("g0" in ruling.idle.watts) == (util < 10)
    (line,) = ruling.check_not_busy(allow_busy=False)
    assert "desktop" in line
    assert "Xorg, memory unknown" in line


def test_utilisation_that_is_not_told_refuses_nobody() -> None:
    lines = rule(
        g0=a_look(None, (PYTHON,), missing={"util_pct": "utilisation: Not Supported"})
    ).check_not_busy(allow_busy=False)
    assert len(lines) == 2
    assert "Not Supported" in lines[1]


# ---- in a sweep ----


def a_sweep(folder: Path, nvml: FakeNvml, gpus: int, **fields: str) -> SweepState:
    base = 'name = "t"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
    experiment = apply_options(parse_experiment(base, "t"), ExperimentOptions(fields=fields))
    plan = expand_experiment(
        experiment, device="cuda" if gpus else "cpu", sources=DiskSources(), order="given"
    )
    machine = scripted.computer(gpus)
    nvml.devices = [gpu(number) for number in range(gpus)]
    return sweep_of(plan, folder, machine, nvml=nvml)


def with_stranger(pid: int) -> dict[str, dict[str, Any]]:
    """Somebody else's process on the third GPU."""
    return {
        "processes": {"GPU-22": [(pid, 900.0)]},
        "utilisation": running({"GPU-22": 80.0}),
        "power_w": {"GPU-00": 70.0, "GPU-11": 71.0, "GPU-22": 500.0},
    }


def test_only_gpus_of_trials_to_be_run_are_looked_at(tmp_path: Path) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        nvml = FakeNvml(answers=with_stranger(stranger.pid))
        job = a_sweep(tmp_path, nvml, 3, gpu_ids="0,1")
        view = Heard()
        inspect_gpus(job, job.list_planned_of_round(1), view, allow_busy=False)
        assert view.lines == []
        assert sorted(job.runner.idle_power.watts.values()) == pytest.approx([70.0, 71.0])

        nvml = FakeNvml(answers=with_stranger(stranger.pid))
        job = a_sweep(tmp_path, nvml, 3, gpu_ids="1,2")
        with pytest.raises(UnusableError, match=f"GPU 2 .*process {stranger.pid} \\(python"):
            inspect_gpus(job, job.list_planned_of_round(1), view, allow_busy=False)
        assert job.runner.idle_power.watts == {}
        inspect_gpus(job, job.list_planned_of_round(1), view, allow_busy=True)
        assert len(view.lines) == 1
        assert list(job.runner.idle_power.watts.values()) == pytest.approx([71.0])
    finally:
        stranger.communicate(b"\n")


def test_two_sweeps_that_start_at_once_do_not_share_a_gpu(tmp_path: Path) -> None:
    """Each of them sees an idle GPU."""
    first, second, third = (a_sweep(tmp_path, FakeNvml(), 3, gpu_ids=ids) for ids in ("0", "0,1", "1,2"))
    for work in (first, second, third):
        work.runner.node.gpu_locks = SweepLocks()
    inspect_gpus(first, first.list_planned_of_round(1), Heard(), allow_busy=False)
    with pytest.raises(
        UnusableError, match=r"^GPU 0 is being measured on by another gpubench sweep of this host"
    ):
        inspect_gpus(second, second.list_planned_of_round(1), Heard(), allow_busy=False)
    second.runner.node.gpu_locks.release()
    inspect_gpus(third, third.list_planned_of_round(1), Heard(), allow_busy=False)
    inspect_gpus(second, second.list_planned_of_round(1), Heard(), allow_busy=True)
    first.runner.node.gpu_locks.release()
