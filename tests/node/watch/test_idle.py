"""The look before a sweep: power that has settled, utilisation without the past, who is there, reasons."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from fake_nvml import FakeNvml, gpu

from gpubench.node.watch.idle import LIMIT_S, sample_gpus_before_sweep
from gpubench.node.watch.nvml import History, NvmlError
from gpubench.node.watch.nvml_calls import Utilisation
from gpubench.schema.gpu_look import PERIOD_S, GpuLook

UUID = gpu(0).uuid
WALL_AHEAD = 1_700_000_000.0


@dataclass
class Moving(FakeNvml):
    """Power and polled utilisation as functions of the seconds since the look began."""

    now: float = 0.0
    watts: Callable[[float], float] = lambda _: 75.0
    polled: Callable[[float], float] = lambda _: 0.0
    asked_after: list[float] = field(default_factory=list)

    def answer(self, name: str, uuid: str) -> Any:
        if name == "power_w":
            return self.watts(self.now)
        if name == "utilisation":
            return Utilisation(gpu_pct=self.polled(self.now), memory_pct=0.0)
        return super().answer(name, uuid)

    def read_driver_samples(self, uuid: str, what: History, after_s: float) -> list[tuple[float, float]]:
        self.asked_after.append(after_s)
        return super().read_driver_samples(uuid, what, after_s)


def look(nvml: Moving, seconds: float = 1.0) -> GpuLook:
    """On a clock of its own."""

    def sleep(s: float) -> None:
        nvml.now += s

    found = sample_gpus_before_sweep(
        nvml, [UUID], seconds, clock=lambda: nvml.now, wall=lambda: WALL_AHEAD + nvml.now, sleep=sleep
    )
    return found[UUID]


def test_steady_power_is_the_mean_of_one_second() -> None:
    nvml = Moving(watts=lambda t: 75.0 + (0.5 if round(t * 10) % 2 else -0.5))
    assert look(nvml).power_w == pytest.approx(75.0)
    assert nvml.now == pytest.approx(1.0, abs=PERIOD_S), "no longer than asked"


def test_the_readings_behind_it_are_counted() -> None:
    taken, failed = look(Moving(watts=lambda _: 75.0)).readings
    assert 9 <= taken <= 11
    assert failed == 0


def test_power_that_falls_is_waited_for() -> None:
    nvml = Moving(watts=lambda t: max(75.0, 140.0 - 50.0 * t))
    found = look(nvml)
    assert 1.3 < nvml.now < LIMIT_S
    assert found.power_w == pytest.approx(75.0, rel=0.05)


def test_power_that_falls_to_the_end_is_no_idle_power() -> None:
    nvml = Moving(watts=lambda t: 400.0 * 0.8**t)
    found = look(nvml)
    assert nvml.now == pytest.approx(LIMIT_S, abs=PERIOD_S)
    assert found.power_w is None
    assert "still falling, from " in found.missing["power_w"]


def test_utilisation_comes_from_the_buffer_and_leaves_out_what_reaches_back() -> None:
    # The sample at 0.1 s speaks of the time before the look: a sweep that has just ended.
    times = [(WALL_AHEAD - 0.1, 100.0), (WALL_AHEAD + 0.1, 100.0)]
    times += [(WALL_AHEAD + 0.1 + 0.2 * k, 30.0 if k % 2 else 0.0) for k in range(1, 5)]
    nvml = Moving(buffers={(UUID, "gpu_util_pct"): times}, polled=lambda _: 9.0)
    assert look(nvml).util_pct == 15.0
    assert nvml.asked_after == [WALL_AHEAD + 0.2]


@pytest.mark.parametrize("broken", [set(), {"history"}])
def test_without_a_buffer_the_later_polls_count(broken: set[str]) -> None:
    nvml = Moving(polled=lambda t: 100.0 if t < 0.45 else 0.0, broken=broken)
    # The first ones speak of before the look.
    assert look(nvml).util_pct == 0.0
    nvml = Moving(polled=lambda t: 60.0 if t > 0.45 else 0.0, broken=broken)
    assert look(nvml).util_pct == 60.0


def test_work_of_a_process_that_is_gone_is_waited_for() -> None:
    # The driver clears the memory of a process that has ended, which counts as use of the GPU.
    times = [(WALL_AHEAD + 0.2 * k, 60.0 if k < 5 else 0.0) for k in range(1, 30)]
    nvml = Moving(
        buffers={(UUID, "gpu_util_pct"): times},
        polled=lambda t: 60.0 if t < 1.0 else 20.0 if t < 2.0 else 0.0,
    )
    assert look(nvml).util_pct == 0.0
    assert 1.3 < nvml.now < LIMIT_S


def test_a_process_that_rests_between_two_bursts_is_not_taken_for_one_that_has_gone() -> None:
    nvml = Moving(
        polled=lambda t: 60.0 if t % 2.5 < 1.15 else 0.0, answers={"processes": {UUID: [(4711, 614.0)]}}
    )
    assert look(nvml).util_pct == 60.0
    # Nobody waits for it to rest.
    assert nvml.now == pytest.approx(1.0, abs=PERIOD_S)


def test_what_was_seen_at_work_counts_while_the_look_goes_on_for_another_reason() -> None:
    nvml = Moving(
        watts=lambda t: max(75.0, 400.0 - 100.0 * t),
        polled=lambda t: 60.0 if t < 1.5 else 0.0,
        answers={"processes": {UUID: [(4711, 614.0)]}},
    )
    assert look(nvml).util_pct == 60.0
    assert nvml.now > 3.0


def test_a_process_that_rests_is_seen_and_not_busy() -> None:
    nvml = Moving(answers={"processes": {UUID: [(4711, 614.0)]}})
    found = look(nvml)
    assert found.util_pct == 0.0
    assert found.compute


def test_a_gpu_that_stays_busy_is_told_so_at_the_limit() -> None:
    nvml = Moving(polled=lambda _: 60.0)
    assert look(nvml).util_pct == 60.0
    assert nvml.now == pytest.approx(LIMIT_S, abs=PERIOD_S)


def test_processes_are_named() -> None:
    nvml = Moving(
        answers={
            "processes": {UUID: [(os.getpid(), 614.0), (2**22 + 5, None)]},
            "desktop": {UUID: [(1, 8.0)]},
        }
    )
    found = look(nvml)
    assert found.compute is not None
    assert found.desktop is not None
    assert [(p.pid, p.mib) for p in found.compute] == [(os.getpid(), 614.0), (2**22 + 5, None)]
    assert "py" in found.compute[0].name
    assert found.compute[1].name == "?"
    assert found.desktop[0].mib == 8.0


def test_one_failed_reading_of_many_costs_nothing() -> None:
    nvml = Moving()

    def watts(t: float) -> float:
        if 0.25 < t < 0.35:
            raise NvmlError("power: Unknown Error")
        return 80.0

    nvml.watts = watts
    found = look(nvml)
    assert found.power_w == 80.0
    assert not found.missing


def test_0_w_is_no_figure() -> None:
    found = look(Moving(watts=lambda _: 0.0))
    assert found.power_w is None
    assert "0 W" in found.missing["power_w"]


def test_no_gpus_take_no_time() -> None:
    def sleep(_: float) -> None:
        raise AssertionError("nothing to wait for")

    assert sample_gpus_before_sweep(FakeNvml(), [], sleep=sleep) == {}
