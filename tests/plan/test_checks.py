"""Every rule of what makes no sense, and what must be let through."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import make_facts

from gpubench.plan import checks
from gpubench.schema import catalog
from gpubench.schema.trial import make_trial

SENSELESS: list[tuple[dict[str, Any], str, str]] = [
    ({"gpus": 2}, "cpu", "for 2 processes give ranks = 2 (--ranks 2) in place of gpus (--gpus)"),
    ({"ranks": 2}, "cuda", "ranks counts the processes of a CPU trial"),
    ({"gpus": 0}, "cuda", "at least one GPU"),
    ({"gpus": 2, "gpu_ids": (1, 1)}, "cuda", "do not name 2 different GPUs"),
    ({"nodes": 2, "gpus": 2, "strategy": "dp"}, "cuda", "one process, which can't be on 2 nodes: take ddp"),
    ({"nodes": 2, "gpus": 3}, "cuda", "gpus = 3 can't be shared equally by 2 nodes"),
    ({"nodes": 2, "gpu_ids": (0, 1)}, "cuda", "gpu_ids (--gpu-ids) name GPUs of one node"),
    ({"nodes": 2, "cpus": 3}, "cpu", "cpus = 3 can't be shared equally by 2 nodes"),
    ({"variant": "gpu-augment"}, "cpu", "needs a GPU: on a CPU take another (gpubench data list)"),
    ({"strategy": "dp", "ranks": 2}, "cpu", "in their place (--strategy ddp --ranks 2), or single"),
    ({"strategy": "dp", "gpus": 1}, "cuda", "needs at least 2 GPUs"),
    ({"strategy": "single", "gpus": 2}, "cuda", "uses one GPU, not 2"),
    ({"strategy": "ddp", "gpus": 2, "execution": "graph"}, "cuda", "execution graph does not work"),
    ({"ranks": 130, "batch_size": 130}, "cpu", "has 128 processes at most, not 130"),
    ({"strategy": "fsdp", "gpus": 1}, "cuda", "strategy fsdp needs at least 2 GPUs"),
    ({"strategy": "local", "ranks": 1}, "cpu", "strategy local needs at least 2 processes"),
    (
        {"strategy": "fsdp", "gpus": 2, "execution": "graph"}, "cuda",
        "execution graph does not work with strategy fsdp: its weights are gathered into other memory",
    ),
    ({"sync_every": 4}, "cpu", "sync_every belongs to strategy local: leave it out with single"),
    ({"batch_size": 65, "gpus": 2}, "cuda", "can't be shared equally: 2 devices × 1"),
    ({"batch_size": 4, "gpus": 2, "accumulate": 4}, "cuda", "× 4 micro-batches take a multiple of 8"),
    ({"batch_size": 10_241}, "cuda", "larger than the epoch of 10,240"),
    ({"train_images": 10_241}, "cuda", "only 10,240 training images"),
    ({"precision": "fp16"}, "cpu", "precision fp16 needs a GPU: on a CPU take fp32 or bf16"),
    ({"execution": "graph"}, "cpu", "execution graph needs a GPU: on a CPU take eager or compile"),
    ({"execution": "graph", "optimizer": "adagrad"}, "cuda", "adagrad can't be captured"),
    ({"model": "resnet18", "width": 2.0}, "cuda", "resnet18 has no width"),
    ({"gpu_mem_cap_mib": 100}, "cpu", "leave gpu_mem_cap_mib (--gpu-mem-cap) out on a CPU"),
    ({"gpus": 2, "workers": 3}, "cuda", "3 workers can't be shared equally by 2 processes"),
    (
        {"epochs": 1, "warmup_epochs": 1}, "cpu",
        "1 of 1 epoch warm up, which leaves none to measure: write --epochs 2 or more, or --set warmup_epochs=0",
    ),
    ({"warmup_epochs": 1, "window": 3.0}, "cuda", "give their number, epochs (--epochs), or leave it out"),
    ({"power_limit_w": 200}, "cpu", "power_limit_w is a limit of a GPU: leave it out on a CPU"),
    ({"sm_clock_limit_mhz": 900}, "cpu", "sm_clock_limit_mhz is a limit of a GPU"),
    ({"power_limit_w": 200, "gpus": 2, "nodes": 2}, "cuda", "is set on the GPUs of one node: leave it out"),
    ({"launch_cpu": "one"}, "cpu", "launches kernels on a GPU: leave it out on a CPU"),
    ({"launch_cpu": "one", "gpus": 2, "strategy": "dp"}, "cuda", "does not work with strategy dp"),
    ({"launch_cpu": "one", "gpus": 2, "cpus": 3}, "cuda", "for loaders: 3 are too few"),
    ({"confirm_top1": True}, "cpu", "say which one with until_top1 (--until-top1)"),
    ({"until_top1": 60.0, "variant": "synthetic"}, "cpu", "variant synthetic reads no images"),
    ({"breakdown": True, "execution": "graph"}, "cuda", "breakdown finds no parts"),
    ({"cpu_sharing": "pinned"}, "cuda", "only among jobs that run together"),
]  # fmt: skip

SENSIBLE: list[tuple[dict[str, Any], str]] = [
    ({}, "cuda"),
    ({}, "cpu"),
    ({"batch_size": 10_240}, "cuda"),
    ({"nodes": 2}, "cpu"),
    ({"nodes": 2, "gpus": 4, "cpus": 8, "strategy": "fsdp"}, "cuda"),
    ({"gpu_ids": (2, 3)}, "cuda"),
    ({"strategy": "dp", "gpus": 2, "workers": 3}, "cuda"),
    ({"ranks": 2, "device": "cpu"}, "cpu"),
    ({"ranks": 128, "batch_size": 128, "device": "cpu"}, "cpu"),
    ({"strategy": "fsdp", "gpus": 2, "execution": "compile"}, "cuda"),
    ({"strategy": "local", "gpus": 2, "sync_every": 4}, "cuda"),
    ({"precision": "bf16"}, "cpu"),
    ({"execution": "graph"}, "cuda"),
    ({"model": "nets.py:small", "width": 0.5}, "cpu"),
    ({"epochs": 1, "warmup_epochs": 0}, "cpu"),
    ({"epochs": 3, "warmup_epochs": 2}, "cpu"),
    ({"launch_cpu": "one", "gpus": 2, "cpus": 4}, "cuda"),
    ({"accumulate": 4, "batch_size": 8, "gpus": 2}, "cuda"),
    ({"train_images": 20_000, "variant": "synthetic"}, "cuda"),
    ({"gpu_mem_cap_mib": 100}, "cuda"),
    ({"power_limit_w": 200, "sm_clock_limit_mhz": 900, "gpus": 2}, "cuda"),
    ({"until_top1": 60.0}, "cpu"),
    ({"until_top1": 60.0, "execution": "graph"}, "cuda"),
    ({"breakdown": True, "strategy": "dp", "gpus": 2}, "cuda"),
]


def why(fields: dict[str, Any], device: str) -> str | None:
    t = make_trial(fields)
    return checks.find_trial_conflict(t, catalog.VARIANTS[t.variant], device, make_facts())


@pytest.mark.parametrize(("fields", "device", "words"), SENSELESS)
def test_senseless(fields: dict[str, Any], device: str, words: str) -> None:
    assert words in (why(fields, device) or "")


@pytest.mark.parametrize(("fields", "device"), SENSIBLE)
def test_sensible(fields: dict[str, Any], device: str) -> None:
    assert why(fields, device) is None


@pytest.mark.parametrize(
    ("skipped", "rest"),
    [
        (0, ""),
        (1, ": 1 other can't be decoded and is left out"),
        (1_000, ": 1,000 others can't be decoded and are left out"),
    ],
)
def test_a_batch_larger_than_what_broken_images_leave_names_these(skipped: int, rest: str) -> None:
    facts = make_facts(train_images=2, skipped_images=skipped)
    reason = checks.find_trial_conflict(
        make_trial({"batch_size": 8}), catalog.VARIANTS["crop-resize"], "cpu", facts
    )
    assert reason == "a batch of 8 is larger than the epoch of 2 images" + rest


def test_an_accuracy_needs_images_to_judge_by() -> None:
    t = make_trial({"until_top1": 60.0})
    reason = checks.find_trial_conflict(t, catalog.VARIANTS[t.variant], "cpu", make_facts(val_images=0))
    assert reason == "until_top1 (--until-top1) needs a validation split, and the data have none"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"until_top1": 60.0}, "leave top-1 to the trial alone"),
        ({"breakdown": True}, "are timed alone"),
        ({"nodes": 2}, "jobs that run together run on one node"),
        ({"launch_cpu": "one"}, "jobs together need cpu_sharing pinned for it"),
        ({"launch_cpu": "one", "cpu_sharing": "pinned"}, None),
        ({}, None),
    ],
)
def test_jobs_that_run_together(fields: dict[str, Any], words: str | None) -> None:
    t = make_trial(fields)
    reason = checks.find_trial_conflict(t, catalog.VARIANTS[t.variant], "cuda", make_facts(), together=2)
    assert (reason is None) if words is None else words in (reason or "")


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([{"power_limit_w": 200, "gpus": 1}, {"gpus": 1}], "limit of the whole GPU: jobs that share one"),
        ([{"gpus": 1}, {"sm_clock_limit_mhz": 900, "gpus": 1}], "limit of the whole GPU"),
        ([{"power_limit_w": 200, "gpus": 1}, {"power_limit_w": 200, "gpus": 1}], None),
        ([{"power_limit_w": 200, "gpu_ids": (0,)}, {"power_limit_w": 300, "gpu_ids": (1,)}], None),
        ([{"gpu_mem_cap_mib": 12288, "gpus": 1}, {"gpus": 1}], "holds for each job by itself"),
        ([{"gpu_ids": (0,)}, {"gpu_mem_cap_mib": 12288, "gpu_ids": (0, 1)}], "holds for each job by itself"),
        ([{"gpu_mem_cap_mib": 12288, "gpu_ids": (0,)}, {"gpu_mem_cap_mib": 12288, "gpu_ids": (1,)}], None),
        ([{"cpu_sharing": "pinned"}, {}], "all shared or all pinned"),
        ([{"epochs": 5}, {}], "measure all a window or all whole epochs"),
        ([{"steps": 5}, {"window": 3.0, "model": "lenet"}, {}], None),
        ([{"epochs": 5}, {"epochs": 2}], None),
    ],
)
def test_which_jobs_can_run_together(jobs: list[dict[str, Any]], words: str | None) -> None:
    reason = checks.find_group_conflict([make_trial(fields) for fields in jobs])
    assert (reason is None) if words is None else words in (reason or "")
