"""Whole trials on GPUs: strategies, executions, memory."""

from __future__ import annotations

import pytest

from gpubench.record.figures import compute_watched_figures
from gpubench.schema.watched import Window

pytestmark = pytest.mark.gpu

MODELS = "tests/train/user_models.py:"
GPU = {"device": "cuda", "gpus": 1, "workers": 2, "cpus": 2, "epochs": 4}


def losses(ran):
    return [epoch.train_loss for epoch in ran.outcome.epochs]


def driver_mib(ran):
    windows = [Window(e.t0, e.t1, e.epoch, not e.warmup) for e in ran.outcome.epochs]
    return compute_watched_figures(ran.done.watched.replace_windows(windows)).result.get("gpu_mem_mib")


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize("execution", ["eager", "graph"])
def test_every_precision_learns(train, precision, execution):
    ran = train(model=MODELS + "tiny", precision=precision, execution=execution, **GPU)
    assert ran.status == "ok", ran.reason
    assert losses(ran)[-1] < 0.6 * losses(ran)[0]
    assert ran.outcome.result["top1_pct"] > 80
    assert ran.outcome.result["gpu_mem_reserved_mib"] >= ran.outcome.result["gpu_mem_allocated_mib"] > 0


@pytest.mark.multigpu
@pytest.mark.parametrize(
    "how",
    [
        {"strategy": "dp"},
        {"strategy": "ddp"},
        {"strategy": "fsdp"},
        {"strategy": "fsdp", "precision": "bf16"},
        {"strategy": "fsdp", "precision": "fp16", "accumulate": 2},
        {"strategy": "local"},
        {"strategy": "local", "precision": "fp16"},
        {"strategy": "local", "execution": "graph"},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_several_gpus_learn(train, how):
    fields = {**GPU, "gpus": 2, **how}
    ran = train(model=MODELS + "tiny", **fields)
    assert ran.status == "ok", ran.reason
    assert losses(ran)[-1] < 0.6 * losses(ran)[0]
    assert ran.outcome.result["top1_pct"] > 80


@pytest.mark.multigpu
@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["fsdp", "local"])
def test_a_network_that_several_gpus_compile_learns_the_same(train, strategy):
    fields = {**GPU, "model": "lenet", "gpus": 2, "strategy": strategy, "timeout_s": 280}
    eager, compiled = train(**fields), train(execution="compile", **fields)
    assert compiled.status == "ok", compiled.reason
    assert losses(compiled) == pytest.approx(losses(eager), rel=1e-2)


@pytest.mark.multigpu
def test_fsdp_needs_less_memory_for_weights_than_ddp(train):
    """AdamW on vgg11 at 64 pixels: weights, gradients and state of 2 GB a model, next to which images are small."""
    fields = {
        **GPU, "data": None, "workers": 0, "model": "vgg11", "input_size": 64, "batch_size": 4, "train_images": 40,
        "optimizer": "adamw", "gpus": 2, "epochs": 2,
    }  # fmt: skip
    held = {}
    for strategy in ("ddp", "fsdp"):
        ran = train(strategy=strategy, **fields)
        assert ran.status == "ok", ran.reason
        held[strategy] = ran.outcome.result["gpu_mem_allocated_mib"]
    assert held["fsdp"] < 0.85 * held["ddp"]


@pytest.mark.multigpu
def test_a_rank_that_dies_ends_the_other_in_its_collective(train):
    fields = {**GPU, "gpus": 2, "strategy": "ddp"}
    ran = train(model=MODELS + "second_rank_is_killed", **fields)
    assert ran.status == "failed"
    assert ran.reason.startswith("rank 1 was ended by SIGKILL")
    assert ran.seconds < 40
    # Its memory is given back: the next trial finds the GPUs as they were.
    assert train(model=MODELS + "tiny", **fields).status == "ok"


def test_the_allocators_own_out_of_memory_is_a_result(train):
    ran = train(model=MODELS + "needs_a_terabyte", **GPU)
    assert ran.status == "oom"
    assert "CUDA out of memory" in ran.reason


CAP_MIB = 3000
SYNTHETIC = {
    **GPU,
    "data": None,
    "workers": 0,
    "model": "resnet18",
    "input_size": 224,
    "epochs": None,
    "steps": 5,
    "precision": "bf16",
}


def test_what_fits_under_a_cap_stays_under_it_by_the_drivers_figure(train):
    ran = train(batch_size=16, train_images=64, gpu_mem_cap_mib=CAP_MIB, **SYNTHETIC)
    assert ran.status == "ok", ran.reason
    mib = driver_mib(ran)
    assert mib is None or 0 < mib <= CAP_MIB


def test_what_does_not_fit_under_a_cap_is_out_of_memory(train):
    ran = train(batch_size=512, train_images=1024, gpu_mem_cap_mib=CAP_MIB, **SYNTHETIC)
    assert ran.status == "oom"
    mib = driver_mib(ran)
    assert mib is None or mib <= CAP_MIB
    without = train(batch_size=512, train_images=1024, **SYNTHETIC)
    assert without.status == "ok", without.reason


def test_a_cap_below_what_cuda_itself_takes_is_out_of_memory(train):
    ran = train(batch_size=16, train_images=64, gpu_mem_cap_mib=100, **SYNTHETIC)
    assert ran.status == "oom"
    assert "the cap of 100 MiB is less than CUDA and its libraries take" in ran.reason
