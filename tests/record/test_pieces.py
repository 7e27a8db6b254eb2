"""A piece that stands for an epoch: its fill counts once, however many steps the epoch has more."""

from __future__ import annotations

from typing import Any

import pytest

from gpubench.node.watch import metrics
from gpubench.record.ending import merge
from gpubench.record.epochs import epoch_rows, timing, windows_of
from gpubench.record.figures import Figures, figures
from gpubench.record.outcome import Outcome
from gpubench.schema.events import End, Steps
from gpubench.schema.samples import Samples
from gpubench.schema.watched import Watched

FILL_S, STEP_S, STEPS, AN_EPOCH = 2.0, 0.05, 50, 640
EPOCH_S = FILL_S + AN_EPOCH * STEP_S
FILL_W, STEP_W = 120.0, 600.0
EPOCH_J = FILL_W * FILL_S + STEP_W * AN_EPOCH * STEP_S
T0 = 100.0
CPUS = 4
IMAGE_S, OTHERS = 0.002, 0.1
"""CPU seconds of an image, which all are made ahead, in the fill; the share of the CPUs that somebody else uses."""


def told(epoch: int, steps: int, t0: float, *, measured: bool = True, step_s: float = STEP_S) -> list[Any]:
    ends = [round(1e6 * (FILL_S + step_s * (k + 1))) for k in range(steps)]
    return [
        Steps(rank=0, epoch=epoch, end_us=ends, wait_us=[0] * steps),
        End(
            rank=0, epoch=epoch, measured=measured, steps=steps, t0=t0, t1=t0 + 1e-6 * ends[-1], first_batch_s=FILL_S,
            train_loss=1.0,
        ),
    ]  # fmt: skip


def ended(*events: Any, steps: int = STEPS, per_epoch: int = AN_EPOCH) -> Outcome:
    rows = epoch_rows([e for some in events for e in some], ranks=1, batch_size=16, wave=8, ahead=0)
    timed = timing(rows, steps=steps, steps_per_epoch=per_epoch, batch_size=16)
    windows = windows_of(rows, timed["images_per_epoch"])
    return Outcome(status="ok", epochs=rows, windows=windows, result=timed)


def seen(
    outcome: Outcome,
    *,
    counter: tuple[float, ...] | None = None,
    spare_cpus: float = 0.0,
    image_s: float = IMAGE_S,
) -> Figures:
    """What is watched of a GPU that idles while a window fills; the energy counter read at some moments."""
    samples = Samples()
    (window,) = (w for w in outcome.windows if w.measured)

    def joules(t: float) -> float:
        filled = min(max(t - T0, 0.0), FILL_S)
        return 1e6 + FILL_W * (min(t, T0) + filled) + STEP_W * max(0.0, t - T0 - FILL_S)

    for k in range(3000):
        t = T0 - 5 + k / 50
        busy = t - T0 > FILL_S + 1e-6
        for metric, idle, at_work in (
            ("power_w", FILL_W, STEP_W), ("gpu_util_pct", 0.0, 100.0), ("gpu_mem_util_pct", 0.0, 40.0)
        ):  # fmt: skip
            samples.add(t, metrics.BUFFER[metric].name, at_work if busy else idle, "0")
            samples.add(t, metric, at_work if busy else idle, "0")
        samples.add(t, metrics.SM_CLOCK, 1980.0 if busy else 345.0, "0")
        own = image_s * 16 * STEPS * min(max(t - T0, 0.0) / FILL_S, 1.0)
        samples.add(t, metrics.CPU_TREE, own)
        for metric in (metrics.CPU_BUSY, metrics.CPU_HOST):
            samples.add(t, metric, own + OTHERS * CPUS * (t - T0 + 5))
    for t in counter or (window.t0, window.t1):
        samples.add(t, metrics.ENERGY, joules(t), "0")
    watched = Watched(
        samples=samples,
        windows=outcome.windows,
        gpus=("0",),
        baseline_mib={},
        cpus=CPUS,
        cpu_metric=metrics.CPU_BUSY,
        spare_cpus=spare_cpus,
    )
    return figures(watched)


def test_figures_of_a_piece_are_those_of_the_epoch() -> None:
    piece = ended(told(0, 20, T0 - 4, measured=False), told(1, STEPS, T0))
    watched = seen(piece)
    result, _ = merge(piece, watched, "ok", "", ("GPU-0",), {}, {})
    assert result["epoch_time_s"] == pytest.approx(EPOCH_S)
    assert result["energy_j"] == pytest.approx(EPOCH_J, rel=0.002)
    assert result["energy_sampled_j"] == pytest.approx(EPOCH_J, rel=0.002)
    assert result["power_w"] == pytest.approx(result["energy_sampled_j"] / result["epoch_time_s"])
    assert result["gpu_util_pct"] == pytest.approx(100 * AN_EPOCH * STEP_S / EPOCH_S, abs=0.2)
    assert result["gpu_mem_util_pct"] == pytest.approx(0.4 * result["gpu_util_pct"])
    assert result["gpu_busy_s_per_epoch"] == pytest.approx(AN_EPOCH * STEP_S, rel=0.002)
    assert result["sm_clock_mhz"] == pytest.approx(
        (345 * FILL_S + 1980 * AN_EPOCH * STEP_S) / EPOCH_S, rel=0.002
    )
    assert result["cpu_s_per_epoch"] == pytest.approx(IMAGE_S * 16 * AN_EPOCH)
    own_pct = 100 * result["cpu_s_per_epoch"] / (CPUS * EPOCH_S)
    assert result["cpu_util_trial_pct"] == pytest.approx(own_pct)
    assert result["cpu_util_pct"] == pytest.approx(own_pct + 100 * OTHERS), "others' use goes with the time"


def test_what_others_leave_of_a_host_is_told_of_the_epoch_too() -> None:
    watched = seen(ended(told(0, STEPS, T0)), spare_cpus=CPUS)
    assert watched.crowding_pct is not None
    others = watched.crowding_pct - watched.result["cpu_util_trial_pct"]
    assert others == pytest.approx(100 * OTHERS - 100), "of the CPUs, as many are idle as are spare"


def test_cpu_time_that_was_mostly_the_start_s_is_not_scaled() -> None:
    busy = seen(ended(told(0, STEPS, T0)), image_s=0.02)  # 16 of 18 CPU seconds
    for column in ("cpu_s_per_epoch", "cpu_util_pct", "cpu_util_trial_pct"):
        assert "was their start" in busy.missing[column]


def test_a_counter_that_was_not_read_where_the_steps_become_even_gives_way() -> None:
    piece = ended(told(0, STEPS, T0))
    ends = (T0, T0 + FILL_S + STEPS * STEP_S)
    sampled = seen(piece)
    assert sampled.result["energy_source"] == "nvml-power-integral"
    assert "the energy counter was not read near" in sampled.provenance["energy_j"]["source"]
    steady = (T0 + FILL_S + 8 * STEP_S, T0 + FILL_S + 48 * STEP_S)
    counted = seen(piece, counter=(ends[0], *steady, ends[1]))
    assert counted.result["energy_source"] == "nvml-counter"
    assert counted.result["energy_j"] == pytest.approx(EPOCH_J)


def test_too_few_steps_tell_nothing_of_the_epoch_s_rates_and_say_so() -> None:
    piece = ended(told(0, 16, T0))  # eight of them even: 0.4 s
    watched = seen(piece)
    for column in (
        "energy_j",
        "energy_sampled_j",
        "power_w",
        "gpu_util_pct",
        "gpu_mem_util_pct",
        "sm_clock_mhz",
    ):
        assert watched.result[column] is None
        assert "0.40 s of steady steps are too short" in watched.missing[column]
    result, missing = merge(piece, watched, "ok", "", ("GPU-0",), {}, {})
    assert "gpu_busy_s_per_epoch" not in result
    assert "0.40 s of steady steps" in missing["gpu_busy_s_per_epoch"]


def test_beside_whole_epochs_a_piece_counts_for_nothing() -> None:
    outcome = ended(told(0, STEPS, T0), told(1, 10, T0 + 20, step_s=1.0), steps=60, per_epoch=STEPS)
    assert [w.measured for w in outcome.windows] == [True, False]
    result, _ = merge(outcome, seen(outcome), "ok", "", ("GPU-0",), {}, {})
    energy = FILL_W * FILL_S + STEP_W * STEPS * STEP_S
    assert result["energy_j"] == pytest.approx(energy)
    assert result["power_w"] == pytest.approx(energy / result["epoch_time_s"], rel=0.01)
    assert result["cpu_s_per_epoch"] == pytest.approx(IMAGE_S * 16 * STEPS)


def test_of_a_trial_that_broke_all_measured_windows_are_watched() -> None:
    rows = epoch_rows(
        [*told(0, 20, T0, measured=False), *told(1, 20, T0 + 9)], ranks=1, batch_size=16, wave=8, ahead=0
    )
    found = windows_of(rows, None)
    assert [(w.measured, w.lacks_s) for w in found] == [(False, 0.0), (True, 0.0)]
