"""What a trial leaves to the machine, and the order that is sent to its processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import scripted

from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Machine
from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import (
    ResolvedTrial,
    make_data_spec,
    make_measuring_protocol,
    make_trial_order,
    resolve_unit_trials,
)
from gpubench.schema import catalog
from gpubench.schema.order import Protocol, SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.trial import make_trial
from gpubench.schema.validation import convert_to_plain, make_converter

BIRDS = DataFacts(
    name="birds", kind="folder", root="/birds", fingerprint="f", train_images=1000, val_images=10, num_classes=7,
    size=None,
)  # fmt: skip
MACHINE = dataclasses.replace(scripted.computer(4), cpu_ids=(0, 2, 4, 6, 8, 10), cpu_count=6)


def job(**fields: Any) -> Job:
    t = make_trial(fields)
    return Job(trial=t, trial_id="t0", config_id="c0", variant=catalog.VARIANTS[t.variant])


def resolve(
    planned: Job, facts: DataFacts = BIRDS, machine: Machine = MACHINE, device: str = "cuda"
) -> ResolvedTrial:
    """A job alone, as this machine fills it."""
    (filled,) = resolve_unit_trials(Unit((planned,)), machine, lambda _: facts, device)
    return filled


def test_a_trial_that_leaves_everything_open() -> None:
    found = resolve(job())
    assert found.make_columns() == {
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
    found = resolve(job(**fields))
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_images_of_one_size_give_their_size() -> None:
    assert resolve(job(), dataclasses.replace(BIRDS, size=32)).input_size == 32


@pytest.mark.parametrize(
    ("fields", "on_gpu", "on_cpu"),
    [
        ({}, SteadyWindow(window_s=3.75), SteadyWindow(window_s=2.5)),
        ({"window": 7.0}, *[SteadyWindow(window_s=7.0)] * 2),
        ({"steps": 50}, *[SteadyWindow(window_s=None, steps=50)] * 2),
        ({"epochs": 1}, *[WholeEpochs(epochs=1, warmup_epochs=0)] * 2),
        ({"epochs": 4, "warmup_epochs": 2}, *[WholeEpochs(epochs=4, warmup_epochs=2)] * 2),
        (
            {"until_top1": 60.0, "confirm_top1": True},
            *[WholeEpochs(epochs=50, warmup_epochs=1, until_top1=60.0, confirm_top1=True)] * 2,
        ),
    ],
)
def test_how_a_process_measures(fields: dict[str, Any], on_gpu: Protocol, on_cpu: Protocol) -> None:
    assert make_measuring_protocol(make_trial(fields), "cuda") == on_gpu
    assert make_measuring_protocol(make_trial(fields), "cpu") == on_cpu


def test_the_order_comes_through_a_message_as_it_was() -> None:
    asked = job(gpus=2, seed=3, repeat=2, variant="cached", until_top1=60.0, breakdown=True, launch_cpu="one")
    found = resolve(asked)
    data = make_data_spec(asked, found, BIRDS, Path("/decoded"))
    made = make_trial_order(asked, found, data=data, log=Path("/x.log"), known_gmacs=None)
    assert make_converter(TrialOrder)(json.loads(json.dumps(convert_to_plain(made)))) == made
    assert (made.seed, made.data.seed) == (5, 5), "seed + repeat"
    assert made.data.kind == "decoded"
    assert made.threads_per_rank == 3
    assert made.protocol == WholeEpochs(epochs=50, warmup_epochs=1, until_top1=60.0)
    assert made.trial == asked.trial


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
    assert make_data_spec(asked, resolve(asked, facts), facts, None).kind == kind


def test_a_quota_counts_for_threads_workers_and_the_column() -> None:
    here = dataclasses.replace(scripted.computer(), cpu_ids=tuple(range(64)), cpu_count=4)
    found = resolve(job(device="cpu", ranks=2, strategy="ddp"), BIRDS, here, "cpu")
    assert (found.make_columns()["cpus"], found.workers) == (4, 2)
