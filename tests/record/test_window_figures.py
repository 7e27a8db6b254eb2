"""Figures of an epoch, from a window of a stream: what was used in it, scaled by its images."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.node.watch import metrics
from gpubench.record.figures import compute_watched_figures
from gpubench.record.outcome import Outcome
from gpubench.record.recording import merge_measured_columns
from gpubench.record.training import make_outcome
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS
from gpubench.schema.events import End, Event, Result, Steps
from gpubench.schema.gpu_look import IdlePower
from gpubench.schema.samples import Samples
from gpubench.schema.watched import WatchedTrial

BATCH, PER_EPOCH, STEP_S, STEPS, CPUS = 16, 640, 0.1, 40, 4
EPOCH_S = PER_EPOCH * STEP_S
WATTS, BUSY_PCT, OWN_CPUS = 400.0, 75.0, 1.5
T0 = 100.0


def segment(number: int, count: int, t0: float, *, measured: bool) -> list[Event]:
    ends = [round(1e6 * STEP_S * (k + 1)) for k in range(count)]
    return [
        Steps(rank=0, epoch=number, end_us=ends, wait_us=[round(1e6 * STEP_S / 5)] * count),
        End(
            rank=0, epoch=number, measured=measured, steps=count, t0=t0, t1=t0 + 1e-6 * ends[-1], first_batch_s=0.5,
            train_loss=1.0,
        ),
    ]  # fmt: skip


EVENTS: list[Event] = [
    *segment(0, 20, T0 - 2.1, measured=False),
    *segment(1, STEPS, T0, measured=True),
    Result(
        rank=0, steps_per_epoch=PER_EPOCH, breakdown=None, no_exchange=None, exchange_mib=None,
        quality=None, memory=None, cpu_probe_ms=3.5, phases={}, at=T0 + 5,
    ),
]  # fmt: skip


def ended(*, is_done: bool = True) -> Outcome:
    trial = SimpleNamespace(
        workload="training", epochs=None, batch_size=BATCH, sync_every=1, breakdown=False, until_top1=None
    )
    forced = None if is_done else ("failed", "")
    done = Attempt(events=EVENTS, launched=0.0, finished=0.0)
    return make_outcome(SimpleNamespace(trial=trial), SimpleNamespace(processes=1, workers=0), done, forced)


def test_figures_of_an_epoch_are_the_windows_scaled_by_its_images() -> None:
    outcome, samples = ended(), Samples()
    for k in range(1500):
        t = T0 - 10 + k / 50
        inside = T0 <= t <= T0 + STEPS * STEP_S
        samples.add_reading(t, metrics.POWER, WATTS if inside else 90.0, "0")
        samples.add_reading(t, "gpu_util_pct", BUSY_PCT if inside else 5.0, "0")
        into = min(max(t - T0, 0.0), STEPS * STEP_S)
        samples.add_reading(t, metrics.ENERGY, WATTS * into + 90.0 * (t - T0 + 10 - into), "0")
        samples.add_reading(t, metrics.CPU_TREE, OWN_CPUS * into)
        samples.add_reading(t, metrics.CPU_BUSY, 2 * OWN_CPUS * into)
    seen = compute_watched_figures(
        WatchedTrial(
            samples=samples,
            windows=outcome.windows,
            gpus=("0",),
            baseline_mib={},
            cpus=CPUS,
            cpu_metric=metrics.CPU_BUSY,
        )
    )
    found, missing = merge_measured_columns(outcome, seen, "ok", "", ("GPU-0",), IdlePower())
    assert found["images_per_s"] * found["epoch_time_s"] == pytest.approx(found["images_per_epoch"])
    assert found["images_per_epoch"] == PER_EPOCH * BATCH
    assert found["epoch_time_s"] == pytest.approx(EPOCH_S)
    assert found["data_wait_pct"] == pytest.approx(20)
    assert found["energy_j"] == pytest.approx(WATTS * EPOCH_S, rel=0.01)
    assert found["energy_sampled_j"] == pytest.approx(WATTS * EPOCH_S, rel=0.01)
    assert found["power_w"] == pytest.approx(WATTS, rel=0.01)
    assert found["cpu_s_per_epoch"] == pytest.approx(OWN_CPUS * EPOCH_S, rel=0.01)
    assert found["cpu_util_trial_pct"] == pytest.approx(100 * OWN_CPUS / CPUS, rel=0.01)
    assert found["cpu_util_pct"] == pytest.approx(200 * OWN_CPUS / CPUS, rel=0.01)
    assert found["gpu_util_pct"] == pytest.approx(BUSY_PCT, rel=0.03)
    assert found["gpu_busy_s_per_epoch"] == pytest.approx(BUSY_PCT / 100 * EPOCH_S, rel=0.03)
    assert found["cpu_probe_ms"] == 3.5
    # In epochs.csv each row has what was really used in it.
    assert seen.energy_j_by_epoch[1] == pytest.approx(WATTS * STEPS * STEP_S, rel=0.01)
    assert seen.cpu_s_by_epoch[1] == pytest.approx(OWN_CPUS * STEPS * STEP_S, rel=0.01)
    reasons: dict[str, Any] = {
        "epochs_measured": "a steady rate was measured, not whole epochs",
        "epoch_time_iqr_s": "a steady rate was measured, not whole epochs",
        "top1_pct": REASONS["rate"],
        "loss": REASONS["rate"],
    }
    assert {column: missing[column] for column in reasons} == reasons


def test_of_a_trial_that_broke_its_windows_are_watched_all_the_same() -> None:
    found = ended(is_done=False)
    assert [(w.measured, w.epochs) for w in found.windows] == [(False, 1.0), (True, 1.0)]
    assert found.result == {}
