"""What a trial leaves to the machine, and the order that is sent to its processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import scripted

from gpubench.basics.checked import plain, reader
from gpubench.datasets.facts import DataFacts
from gpubench.plan.plan import Job
from gpubench.plan.resolve import MIN_WARMUP_STEPS, Resolved, data_spec, order, resolve, warmup_steps
from gpubench.schema import catalog
from gpubench.schema.order import TrialOrder
from gpubench.schema.trial import make

BIRDS = DataFacts(
    name="birds", kind="folder", root="/birds", fingerprint="f", train_images=1000, val_images=10, num_classes=7,
    size=None,
)  # fmt: skip
MACHINE = dataclasses.replace(scripted.computer(4), cpu_ids=(0, 2, 4, 6, 8, 10), cpu_count=6)


def job(**fields: Any) -> Job:
    t = make(fields)
    return Job(trial=t, trial_id="t0", config_id="c0", variant=catalog.VARIANTS[t.variant])


def resolved(facts: DataFacts = BIRDS, **fields: Any) -> Resolved:
    return resolve(job(**fields), MACHINE, facts, "cuda")


def test_a_trial_that_leaves_everything_open() -> None:
    found = resolved()
    assert found.columns() == {
        "device": "cuda", "gpus": 1, "gpu_ids": [0], "ranks": None, "cpus": 6, "workers": 6,
        "input_size": 224, "num_classes": 7, "train_images": 1000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"gpus": 4}, {"gpu_uuids": ("GPU-00", "GPU-11", "GPU-22", "GPU-33"), "processes": 4, "workers": 4}),
        ({"gpus": 2, "strategy": "dp"}, {"processes": 1, "workers": 6}),
        ({"gpu_ids": (3, 1)}, {"gpu_uuids": ("GPU-33", "GPU-11"), "processes": 2}),
        ({"cpus": 3}, {"cpu_ids": (0, 2, 4), "workers": 3}),
        ({"cpus": 3, "gpus": 2}, {"workers": 2}),
        ({"cpus": 1, "gpus": 4}, {"workers": 4}),
        ({"workers": 0}, {"workers": 0}),
        ({"variant": "synthetic"}, {"workers": 0}),
        ({"device": "cpu", "ranks": 2}, {"gpu_ids": (), "processes": 2, "device": "cpu"}),
        ({"input_size": 64, "num_classes": 3}, {"input_size": 64, "num_classes": 3}),
        ({"train_images": 100}, {"train_images": 100}),
    ],
)  # fmt: skip
def test_what_the_machine_fills_in(fields: dict[str, Any], wanted: dict[str, Any]) -> None:
    found = resolved(**fields)
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_images_of_one_size_give_their_size() -> None:
    assert resolved(dataclasses.replace(BIRDS, size=32)).input_size == 32


def warm_up(**fields: Any) -> int:
    """Warm-up steps of a trial of these fields."""
    one = job(**fields)
    return warmup_steps(one.trial, resolve(one, MACHINE, BIRDS, "cuda"))


def test_steps_are_measured_after_what_was_loaded_ahead() -> None:
    assert warm_up(workers=8, prefetch=4, steps=50, train_images=40_000) == 32
    assert warm_up(workers=1, prefetch=2, steps=50, train_images=40_000) == MIN_WARMUP_STEPS
    assert warm_up(workers=8, steps=50, warmup_epochs=0) == 0


@pytest.mark.parametrize(("workers", "steps"), [(5, 10), (6, 20), (8, 20), (10, 20), (16, 32)])
def test_a_warm_up_of_more_than_half_an_epoch_is_a_whole_one(workers: int, steps: int) -> None:
    """Else images are read for the first time in what is measured, which no later epoch does."""
    of_an_epoch = {"batch_size": 8, "train_images": 165, "steps": 16}
    assert warm_up(workers=workers, prefetch=2, **of_an_epoch) == steps


@pytest.mark.parametrize(
    ("epochs", "images", "steps"), [(1, 32, 4), (2, 32, 8), (3, 32, 10), (1, 128, 10), (1, 4_000, 10)]
)
def test_a_window_of_a_further_round_warms_up_no_longer_than_the_first(
    epochs: int, images: int, steps: int
) -> None:
    """Its images have all been read; a trial of epochs is measured in such windows in further rounds only."""
    own = {"batch_size": 8, "epochs": 5, "warmup_epochs": epochs, "workers": 2, "prefetch": 2}
    assert warm_up(train_images=images, **own) == steps


def test_the_order_comes_through_a_message_as_it_was() -> None:
    asked = job(gpus=2, seed=3, repeat=2, variant="cached", until_top1=60.0, breakdown=True)
    found = resolve(asked, MACHINE, BIRDS, "cuda")
    data = data_spec(asked, found, BIRDS, Path("/decoded"))
    made = order(asked, found, data=data, log=Path("/x.log"), known_gmacs=None)
    assert reader(TrialOrder)(json.loads(json.dumps(made, default=plain))) == made
    assert (made.seed, made.data.seed) == (5, 5), "seed + repeat"
    assert made.data.kind == "decoded"
    assert made.threads_per_rank == 3
    assert (made.until_top1, made.breakdown) == (60.0, True)


@pytest.mark.parametrize(
    ("variant", "facts", "kind"),
    [
        ("crop-resize", BIRDS, "folder"),
        ("cached", BIRDS, "decoded"),
        ("synthetic", BIRDS, "none"),
        ("crop-resize", dataclasses.replace(BIRDS, kind="named", name="mnist"), "named"),
        ("synthetic", dataclasses.replace(BIRDS, kind="named", name="mnist"), "none"),
    ],
)
def test_where_the_images_come_from(variant: str, facts: DataFacts, kind: str) -> None:
    asked = job(variant=variant)
    assert data_spec(asked, resolve(asked, MACHINE, facts, "cuda"), facts, None).kind == kind


def test_a_quota_counts_for_threads_workers_and_the_column() -> None:
    here = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=4)
    found = resolve(job(device="cpu", ranks=2, strategy="ddp"), here, BIRDS, "cpu")
    assert (found.columns()["cpus"], found.workers) == (4, 2)
