"""Which of the machine's own noise stands in for a row of one process, and how wide its interval then is."""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import replace
from typing import Any

import pytest
from whole_rows import changed, row_with

from gpubench.analysis.certainty.interval import interval
from gpubench.analysis.certainty.noise import Noise
from gpubench.analysis.machine_noise import MachineKnown, MachineNoise, MeasuredNoise, borrowed, limits
from gpubench.analysis.noise import half_width, process_interval, resting
from gpubench.schema.borrowed_noise import BorrowedNoise
from gpubench.schema.row import Row
from gpubench.schema.row import replace as replaced

HERE = MachineKnown(key="NVIDIA H200, 143771 MiB", host="here", cpu_name="Xeon")


def measured(name: str, sd: float, util: float, wait: float = 0.0, **more: Any) -> MeasuredNoise:
    return MeasuredNoise(
        configuration=name, cpus=16, processes=5, total_sd=sd, within_sd=0.001, epoch_time_s=2.0,
        gpu_util_pct=util, data_wait_pct=wait, **more,
    )  # fmt: skip


LAUNCHES = measured("launches", 0.12, 25)
FULL = measured("full", 0.002, 100)
BUSY = measured("busy", 0.04, 100)
LOADER = measured("loader", 0.08, 60, 40)
KNOWN = MachineNoise(machine=HERE, day="2026-11-22", versions={}, measured=(LAUNCHES, FULL, BUSY, LOADER))


def row(**values: Any) -> Row:
    usual = {"status": "ok", "strategy": "single", "device": "cuda", "cpus": 16, "epoch_time_s": 10.0}
    return row_with(**usual | {"gpu_util_pct": 100.0, "data_wait_pct": 0.0} | values)


def lent(one: Row, known: MachineNoise = KNOWN, machine: MachineKnown = HERE) -> str | None:
    found = borrowed(one, machine, [known])
    return found and found.configuration


@pytest.mark.parametrize(
    ("util", "wait", "name"),
    [
        (100, 0, "busy"),  # of two that fit, the one with more noise
        (99, 1, "busy"),
        (98, 0, "launches"),  # the GPU may have been waited for, or not
        (20, 0, "launches"),
        (20, 30, "loader"),
        (100, 30, "loader"),
        (100, 5, "loader"),  # it may be the loaders or the GPU
        (20, 5, "launches"),
        (None, 0, "launches"),
        (None, None, "launches"),
        (100, None, "loader"),
    ],
)
def test_the_noise_is_of_what_is_limited_alike_and_the_largest_where_that_is_unsure(
    util: float | None, wait: float | None, name: str
) -> None:
    assert lent(row(gpu_util_pct=util, data_wait_pct=wait)) == name


def test_where_nothing_alike_was_measured_nothing_is_borrowed() -> None:
    only = replace(KNOWN, measured=(FULL,))
    assert lent(row(gpu_util_pct=20.0), only) is None
    assert lent(row(data_wait_pct=30.0), only) is None
    assert lent(row(), only) == "full"


@pytest.mark.parametrize(
    "other",
    [
        {"device": "cpu"},
        {"cpus": 4},
        {"strategy": "ddp"},
        {"status": "failed"},
        {"epoch_time_s": None},
        {"group": "two", "job": "1 of 2"},
        {"source": "log"},
    ],
)
def test_only_a_trial_alone_in_one_process_with_as_many_cpus_borrows(other: dict[str, Any]) -> None:
    assert lent(row(**other)) is None


@pytest.mark.parametrize("other", ["key", "host", "cpu_name"])
def test_another_machine_has_another_noise(other: str) -> None:
    assert lent(row(), machine=replace(HERE, **{other: "other"})) is None


def test_on_a_cpu_there_is_no_gpu_to_be_limited_by() -> None:
    assert limits("cpu", None, 0.0) == {"cpu"}
    assert limits("cpu", None, None) == {"cpu", "loader"}


def test_a_borrowed_interval_is_that_of_the_noise_and_says_so() -> None:
    noise = BorrowedNoise(sd=0.05, freedom=4, day="2026-11-22", configuration="x")
    found = process_interval(row(borrowed_noise=noise))
    assert found is not None
    assert found.borrowed
    assert math.log(found.high / 10) == pytest.approx(2.776445 * 0.05)
    assert process_interval(row()) is None


def test_processes_of_its_own_come_before_borrowed_ones() -> None:
    noise = BorrowedNoise(sd=0.5, freedom=4, day="2026-11-22", configuration="x")
    own = row(repeats=3, epoch_times_s=[10.0, 10.1, 10.2], borrowed_noise=noise)
    found = process_interval(own)
    assert found == interval([10.0, 10.1, 10.2])
    assert found is not None
    assert not found.borrowed


def test_what_rests_on_one_process_still_says_so() -> None:
    noise = BorrowedNoise(sd=0.05, freedom=4, day="2026-11-22", configuration="x")
    assert "one process" in resting([row(epochs_measured=3, borrowed_noise=noise)])


def test_a_borrowed_interval_is_never_narrower_than_what_the_row_itself_or_the_noise_leaves_open() -> None:
    draw = random.Random(12)
    for _ in range(300):
        own = row(
            epoch_time_s=draw.uniform(0.1, 100),
            epochs_measured=draw.randint(1, 30),
            step_error_pct=draw.choice([None, draw.uniform(0, 5)]),
        )
        if draw.random() < 0.7:
            own = changed(own, epoch_time_iqr_s=own.epoch_time_s * 10 ** draw.uniform(-4, 0.5))
        one = measured("x", 10 ** draw.uniform(-4, -0.5), 100.0)
        found = borrowed(own, HERE, [replace(KNOWN, measured=(one,))])
        assert found is not None
        wide, known = replaced(own, borrowed_noise=found), half_width(own)
        interval_of_it = process_interval(wide)
        assert interval_of_it is not None
        assert half_width(wide) >= (known or 0) * (1 - 1e-9)
        assert interval_of_it.log.error >= one.total_sd
        more = replace(one, total_sd=one.total_sd * 2)
        wider = borrowed(own, HERE, [replace(KNOWN, measured=(one, more))])
        assert half_width(replaced(own, borrowed_noise=wider)) >= half_width(wide)


def test_a_window_shorter_than_those_of_the_noise_adds_what_it_leaves_open() -> None:
    found = borrowed(row(step_error_pct=3.0), HERE, [KNOWN])
    assert found is not None
    assert found.sd == pytest.approx(math.sqrt(0.04**2 + 0.03**2 - 0.001**2))


def test_the_interval_of_a_noise_holds_the_true_one_in_95_of_100_cases() -> None:
    draw = random.Random(12)
    held = 0
    for _ in range(2000):
        sd = statistics.stdev(draw.gauss(0, 0.05) for _ in range(5))
        low, high = Noise(sd=sd, freedom=4).interval()
        held += low <= 0.05 <= high
    assert 0.935 <= held / 2000 <= 0.965
