"""How long trials should take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from whole_rows import row_with

from gpubench.plan.estimate import (
    CPU_IMAGES_PER_CPU_S,
    CPU_STEP_S,
    GPU_IMAGES_PER_S,
    LOADER_IMAGES_PER_CPU_S,
    START_S,
    Forecast,
    TimeEstimate,
    estimate_trial_times,
    format_exact_seconds,
    format_seconds,
)
from gpubench.plan.resolve import ResolvedTrial
from gpubench.schema.row import Row
from gpubench.schema.trial import Trial, make_trial
from gpubench.schema.window import WARM_UP_S

HERE = ResolvedTrial(
    device="cuda", gpu_ids=(0,), gpu_uuids=("GPU-00",), processes=1, cpu_ids=(0, 1), cpus=2, workers=2, input_size=224,
    num_classes=16, train_images=10_240,
)  # fmt: skip


def estimate(trial: Trial, resolved: ResolvedTrial, rows: Sequence[Row]) -> TimeEstimate:
    """The time of one trial."""
    (only,) = estimate_trial_times([(trial, resolved)], rows)
    return only


def row(**fields: Any) -> Row:
    plain = {
        "model": "mobilenet_v2", "input_size": 224, "variant": "crop-resize", "strategy": "single",
        "precision": "fp32", "execution": "eager", "gpus": 1, "batch_size": 64, "images_per_s": 1024.0,
    }  # fmt: skip
    return row_with(**plain | fields)


def seconds(rows: list[Row], **fields: Any) -> float:
    """Of a trial of three epochs, unless the fields ask for a window."""
    long = {} if fields.keys() & {"window", "steps", "epochs"} else {"epochs": 3}
    return estimate(make_trial({"batch_size": 64, **long, **fields}), HERE, rows).seconds - START_S["cuda"]


def test_without_results_it_is_a_guess() -> None:
    guess = estimate(make_trial({}), HERE, [])
    assert guess.known is False
    assert guess.seconds > START_S["cuda"]
    assert not estimate(make_trial({}), HERE, [row(model="resnet18")]).known
    assert not estimate(make_trial({}), HERE, [row(images_per_s=None)]).known


def test_results_of_the_same_model_are_known() -> None:
    assert estimate(make_trial({}), HERE, [row()]).known
    assert seconds([row()], epochs=3) == pytest.approx(30.0)


def test_a_load_takes_its_window_or_what_it_took_before() -> None:
    asked = {"model": "copy", "batch_size": 256, "window": 5.0}
    guess = estimate(make_trial(asked), HERE, [row(took_s=90.0), row(command="copy", took_s=91.0)])
    assert (guess.known, guess.seconds) == (False, START_S["cuda"] + WARM_UP_S + 5.0)
    rows = [
        row_with(model=model, took_s=took_s, asked=make_trial(asked | {"model": model} | fields).as_json_dict())
        for model, fields, took_s in (
            ("copy", {}, 8.0), ("copy", {}, 10.0), ("copy", {"batch_size": 512}, 70.0), ("matmul", {}, 60.0)
        )
    ]  # fmt: skip
    assert estimate(make_trial(asked), HERE, rows) == TimeEstimate(9.0, True)
    assert estimate(make_trial(asked | {"batch_size": 1}), HERE, rows) == TimeEstimate(10.0, True)
    longer = estimate(make_trial(asked | {"window": 300.0}), HERE, rows)
    assert (longer.known, longer.seconds) == (False, START_S["cuda"] + WARM_UP_S + 300.0)


@pytest.mark.parametrize(
    ("asked", "images_per_s", "warm_s", "window_s"),
    [
        ({"epochs": None}, 1024.0, 1.0, 3.75),
        ({"window": 5.0}, 1024.0, 1.0, 5.0),
        ({"steps": 16}, 1024.0, 1.0, 1.0),
        ({"steps": 2}, 1024.0, 1.0, 0.125),
        # What two workers hold ready is used up first.
        ({"window": 5.0, "prefetch": 8}, 1024.0, 1.0, 5.0),
        ({"window": 5.0, "prefetch": 16}, 1024.0, 2.0, 5.0),
        # Ten steps at least, and three, of four seconds each.
        ({"window": 5.0}, 16.0, 40.0, 12.0),
        ({"window": 13.0}, 16.0, 40.0, 16.0),
    ],
)
def test_a_window_takes_its_seconds_and_those_of_its_warm_up(
    asked: dict[str, Any], images_per_s: float, warm_s: float, window_s: float
) -> None:
    assert seconds([row(images_per_s=images_per_s)], **asked) == pytest.approx(warm_s + window_s)


def test_a_window_on_a_cpu_is_that_of_its_default() -> None:
    """Its loaders are divided among two ranks, each of which holds two workers' batches ready."""
    here = replace(HERE, device="cpu", gpu_ids=(), gpu_uuids=(), processes=2, workers=4)
    known = [row(images_per_s=64.0)]
    assert estimate(make_trial({"prefetch": 6}), here, known).seconds == pytest.approx(1.0 + 12 + 4.0)
    fast = [row(images_per_s=6400.0)]
    assert estimate(make_trial({}), here, fast).seconds == pytest.approx(1.0 + 1 + 2.5)


@pytest.mark.parametrize(
    ("of_row", "asked", "took_s"),
    [
        ({}, {}, 9.0),
        ({}, {"window": 10.0}, 9.0 - 3.75 + 10),
        ({"window": 5.0}, {"window": 10.0}, 9.0 - 5 + 10),
        ({"steps": 32}, {"steps": 16}, 9.0 - 2 + 1),
        ({"window": 60.0}, {"window": 10.0}, 11.0),  # it was cut short, as it seems
    ],
)
def test_what_a_steady_row_took_beside_its_window_the_next_one_takes(
    of_row: dict[str, Any], asked: dict[str, Any], took_s: float
) -> None:
    found = estimate(make_trial({"batch_size": 64, **asked}), HERE, [row(took_s=9.0, **of_row)])
    assert (found.seconds, found.known) == (pytest.approx(took_s), True)


def test_what_whole_epochs_took_tells_a_window_its_step_alone() -> None:
    for steady, whole in (({"epochs": None, "window": 5.0}, {"epochs": 3}), ({"epochs": 3}, {})):
        known = [row(took_s=900.0, epoch_time_source="measured" if whole else "steady", **whole)]
        assert seconds(known, **steady) == pytest.approx(6.0 if whole else 30.0)


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ({"batch_size": 128}, {"batch_size": 512}),
        ({"batch_size": 32}, {"precision": "bf16"}),
        ({"gpus": 2}, {"strategy": "ddp"}),
        ({"variant": "cached"}, {"variant": "cached", "precision": "bf16"}),
        # Another number of GPUs counts as much as a batch six times as large, and less than another precision.
        ({"batch_size": 64 * 5}, {"gpus": 2}),
        ({"gpus": 2}, {"batch_size": 64 * 7}),
        ({"gpus": 2}, {"precision": "bf16"}),
        ({"variant": "cached", "batch_size": 48}, {"strategy": "dp", "batch_size": 8}),
        # Of batches on both sides the nearer one, whichever that is.
        *(({"batch_size": b}, {"batch_size": c}) for b, c in ((100, 8), (48, 96), (40, 8), (64, 60))),
    ],
)
def test_the_most_similar_row_counts(near: dict[str, Any], far: dict[str, Any]) -> None:
    rows = [row(images_per_s=10.0, **far), row(images_per_s=1024.0, **near)]
    assert seconds(rows, gpus=1) == pytest.approx(30.0)
    assert seconds(rows[::-1], gpus=1) == pytest.approx(30.0)


def test_another_input_size_is_another_network() -> None:
    assert not estimate(make_trial({"input_size": 96}), HERE, [row()]).known
    rows = [row(images_per_s=10.0), row(input_size=96, images_per_s=1024.0), row(images_per_s=10.0)]
    assert seconds(rows, input_size=96, epochs=3) == pytest.approx(30.0)


def test_only_whole_batches_are_trained_on() -> None:
    assert seconds([row()], batch_size=60, epochs=3) == pytest.approx(3 * 170 * 60 / 1024)


def test_a_guess_on_cpus_goes_by_their_number_and_the_pixels() -> None:
    def guess(**resolved: Any) -> float:
        """Seconds of one epoch of a resident batch."""
        here = replace(HERE, device="cpu", gpu_ids=(), gpu_uuids=(), workers=0, **resolved)
        return estimate(make_trial({"batch_size": 64, "epochs": 1}), here, []).seconds - START_S["cpu"]

    own = 10_240 // 64 * CPU_STEP_S
    assert guess(cpus=1) == pytest.approx(10_240 / CPU_IMAGES_PER_CPU_S + own)
    assert guess(cpus=4) == pytest.approx(10_240 / CPU_IMAGES_PER_CPU_S / 4 + own)
    assert guess(cpus=1, input_size=448) == pytest.approx(10_240 / CPU_IMAGES_PER_CPU_S * 4 + own)
    assert guess(cpus=1, input_size=32) == pytest.approx(10_240 / CPU_IMAGES_PER_CPU_S / 49 + own)


def test_a_guess_on_cpus_is_near_what_was_seen_on_two_of_them() -> None:
    """Seconds of an epoch on two cores of an EPYC: mobilenet_v2 at 64 px, lenet at 28 px."""

    def guess(model: str, batch: int, images: int, **resolved: Any) -> float:
        here = replace(
            HERE, device="cpu", gpu_ids=(), gpu_uuids=(), workers=0, cpus=2, train_images=images, **resolved
        )
        trial = make_trial({"model": model, "batch_size": batch, "epochs": 1})
        return estimate(trial, here, []).seconds - START_S["cpu"]

    for batch, seen in ((8, 3.45), (32, 2.16), (128, 2.05)):
        assert seen / 1.5 < guess("mobilenet_v2", batch, 512, input_size=64) < 1.5 * seen
    assert 1.4 / 2 < guess("lenet", 64, 16_384, input_size=28) < 1.4 * 2


def test_a_thousand_trials_are_looked_up_at_once() -> None:
    """All trials of a sweep at once, before the first of them."""
    rows = [row(batch_size=n) for n in range(1, 1001)]
    trials = [(make_trial({"batch_size": n}), HERE) for n in range(1, 1001)]
    began = time.monotonic()
    assert all(guess.known for guess in estimate_trial_times(trials, rows))
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "0 s"), (0.00001, "0.00001 s"), (0.32, "0.3 s"), (0.6, "1 s"), (4, "4 s"), (89, "89 s"), (90, "2 min"),
        (3600, "60 min"), (5400, "1.5 h"), (9000, "2.5 h"),
    ],
)  # fmt: skip
def test_a_time_in_words(given: float, said: str) -> None:
    assert format_seconds(given) == said


def test_a_guess_counts_on_every_gpu_and_on_the_loaders() -> None:
    """Without results: images over the slower of all GPUs together and the CPUs that load."""

    def guess(**resolved: Any) -> float:
        """Seconds of one epoch."""
        trial = make_trial({"batch_size": 64, "epochs": 1})
        return estimate(trial, replace(HERE, **resolved), []).seconds - START_S["cuda"]

    images, four = 10_240, (0, 1, 2, 3)
    assert guess(cpus=1000) == pytest.approx(images / GPU_IMAGES_PER_S)
    assert guess(cpus=1000, gpu_ids=four) == pytest.approx(images / (4 * GPU_IMAGES_PER_S))
    assert guess(cpus=2, gpu_ids=four) == pytest.approx(images / (2 * LOADER_IMAGES_PER_CPU_S))
    # Without loaders the batch is resident: nothing is loaded.
    resident = guess(cpus=2, gpu_ids=four, workers=0)
    assert resident == pytest.approx(images / (4 * GPU_IMAGES_PER_S))


def test_what_is_left_goes_at_the_pace_of_what_has_run() -> None:
    forecast = Forecast([10.0, 0.0, 30.0, 5.0])
    assert [forecast.estimate_unit_s(place) for place in range(4)] == [10.0, 0.0, 30.0, 5.0]
    assert [forecast.estimate_rest_s(place) for place in range(4)] == [35.0, 35.0, 5.0, 0.0]
    forecast.note_duration(0, 20.0)
    assert (forecast.estimate_unit_s(2), forecast.estimate_rest_s(2)) == (60.0, 10.0)
    forecast.note_duration(2, 20.0)
    assert (forecast.estimate_unit_s(3), forecast.estimate_rest_s(3)) == (5.0, 0.0)
    assert Forecast([0.0, 0.0]).estimate_rest_s(0) == 0.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(90, "90 s"), (0.5, "0.5 s"), (100, "100 s"), (600, "10 min"), (5400, "90 min"), (7200, "2 h")],
)
def test_a_time_that_was_asked_for_is_told_exactly(seconds: float, said: str):
    assert format_exact_seconds(seconds) == said
