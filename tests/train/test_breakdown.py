"""The parts of a step: they land where they belong, add up, and cost nothing where nobody asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gpubench.record.training import EXCHANGE
from gpubench.schema.codes import REASONS
from gpubench.train.breakdown import StepBreakdown, compute_exposed_and_hidden_s, compute_marking_cost_pct
from gpubench.train.device_assignment import DeviceAssignment

MODELS = "tests/train/user_models.py:"
SLOW_MS = 100.0
STEP_TIMES = ("copy_ms", "forward_ms", "backward_ms", "optimizer_ms")
QUICK = {"breakdown": True, "train_images": 128, "data": None}
TWO = {"ranks": 2, "cpus": 2}
ONE_GPU = {"device": "cuda", "gpus": 1, "cpus": 2}
TWO_GPUS = {"device": "cuda", "gpus": 2, "cpus": 2, "strategy": "ddp"}
SLEEPY_MIB = 4 * (3 * 28 * 28 * 600 + 600 + 600 * 600 + 600 + 600 * 4 + 4) / 2**20
"""Gradients of the models that rest."""


def times(ran):
    """Milliseconds of every part that was told; the communication among them."""
    assert ran.status == "ok", ran.reason
    result = ran.outcome.result
    return {name: result[name] for name in (*STEP_TIMES, "comm_ms") if result.get(name) is not None}


def step_ms(ran):
    """The median step less its wait for data, which is no part."""
    return ran.outcome.result["step_time_ms_p50"] * (1 - ran.outcome.result["data_wait_pct"] / 100)


# ---------------------------------------------------------------- intervals


@pytest.mark.parametrize(
    ("buckets", "exposed", "hidden"),
    [
        ([], 0, 0),
        ([(5, 8)], 3, 0),  # one bucket: nothing to hide behind
        ([(1, 2), (5, 5)], 0, 1),
        ([(1, 3), (2, 6), (4, 9)], 5, 3),  # queued one after the other
        ([(1, 2), (4, 5), (8, 9)], 1, 2),  # a gap between them counts for neither
        ([(8, 9), (1, 2), (4, 5)], 1, 2),  # in whatever order they are told
        ([(1, 10), (8, 9)], 2, 7),  # an early bucket may be the last to arrive
    ],
)
def test_exposed_and_hidden_communication(buckets, exposed, hidden):
    assert compute_exposed_and_hidden_s(buckets) == (exposed, hidden)


def test_the_cost_is_that_of_the_median_step():
    assert compute_marking_cost_pct([*[1.1] * 9, 9.0], [1.0] * 10) == pytest.approx(10)
    assert compute_marking_cost_pct([1.1] * 9, [1.0] * 90) is None
    assert compute_marking_cost_pct([1.1] * 90, [1.0] * 9) is None


def test_workers_that_take_turns_do_not_show_as_a_cost():
    assignment = DeviceAssignment(rank=0, world=1, devices=(torch.device("cpu"),), rendezvous=Path("none"))
    marks = StepBreakdown(assignment)
    for workers in (2, 3, 4):  # the first of them is slow
        for steps in (1, 2, 301, 302):
            marks.begin_window()
            for _ in range(steps):
                marks.mark_step_begin()
                marks.mark_part_end("forward")
                marks.mark_step_end()
            chosen = marks._chosen
            # A window of one step has parts.
            assert chosen[0]
            # Half of the steps run plain.
            assert sum(chosen) - sum(not c for c in chosen) in (-1, 0, 1)
            slow = chosen[0::workers]
            marks.end_window([3.0 if k % workers == 0 else 1.0 for k in range(steps)], measured=True)
            if steps > 300:
                assert 0.3 < sum(slow) / len(slow) < 0.7, f"{workers} workers"
    assert marks.summarize_parts()["cost_pct"] == pytest.approx(0)


# ---------------------------------------------------------------- nobody asked


@pytest.mark.slow
def test_without_it_the_columns_say_so(train):
    ran = train(model=MODELS + "tiny", data=None)
    for name in (*STEP_TIMES, "breakdown_cost_pct"):
        assert ran.outcome.result.get(name) is None
        assert "--breakdown" in ran.outcome.missing[name]


# ---------------------------------------------------------------- one process


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "slow", "accumulate"),
    [
        ("slow_forward", "forward_ms", 1),
        ("slow_forward", "forward_ms", 2),
        ("slow_backward", "backward_ms", 1),
    ],
)
def test_a_slow_part_is_found_and_the_parts_add_up(train, model, slow, accumulate):
    ran = train(model=MODELS + model, accumulate=accumulate, **QUICK)
    found = times(ran)
    assert SLOW_MS <= found.pop(slow) / accumulate < 1.5 * SLOW_MS
    assert all(0 <= other < 0.3 * SLOW_MS * accumulate for other in found.values())
    assert sum(times(ran).values()) == pytest.approx(step_ms(ran), rel=0.15)
    assert ran.outcome.missing["comm_ms"] == "one process: nothing is exchanged"
    assert ran.outcome.missing["breakdown_cost_pct"].startswith("too few steps")


def test_the_copy_is_a_part_and_waiting_for_data_is_none(train):
    slow = ({"Resize": {"size": [1500, 1500]}}, {"Resize": {"size": [28, 28]}})
    ran = train(model=MODELS + "tiny", breakdown=True, cpu=slow, train_images=128)
    found = times(ran)
    assert 0 < found["copy_ms"] < 20
    assert sum(found.values()) < 0.5 * ran.outcome.result["step_time_ms_p50"]


@pytest.mark.alone
def test_enough_steps_tell_the_cost(train):
    ran = train(model=MODELS + "tiny", breakdown=True, data=None, train_images=1024)
    assert -50 < ran.outcome.result["breakdown_cost_pct"] < 50


# ---------------------------------------------------------------- ranks


def test_ranks_that_wait_show_it_as_communication(train):
    ran = train(model=MODELS + "slow_second_rank", **QUICK, **TWO)
    found, result = times(ran), ran.outcome.result
    # Means over a rank that sleeps in its forward pass and one that waits for it.
    assert found["forward_ms"] == pytest.approx(SLOW_MS / 2, rel=0.3)
    assert found["comm_ms"] == pytest.approx(SLOW_MS / 2, rel=0.3)
    assert result["comm_pct"] == pytest.approx(50, abs=15)
    assert result["slowest_rank"] == 1
    assert sum(found.values()) == pytest.approx(step_ms(ran), rel=0.15)


@pytest.mark.parametrize(
    "where",
    [
        # Two ranks beside others may wait for a CPU, which is no part of a step.
        pytest.param(TWO, id="gloo", marks=pytest.mark.alone),
        pytest.param(TWO_GPUS, id="nccl", marks=pytest.mark.multigpu),
    ],
)
def test_communication_behind_the_backward_pass_is_hidden(train, where):
    ran = train(model=MODELS + "slow_backward", **QUICK, **where)
    found, result = times(ran), ran.outcome.result
    assert found["backward_ms"] >= 0.9 * SLOW_MS
    assert 0 < result["comm_hidden_ms"] < SLOW_MS
    assert 0 < found["comm_ms"] < SLOW_MS
    assert sum(found.values()) == pytest.approx(step_ms(ran), rel=0.15)
    assert result["comm_mib_per_step"] == pytest.approx(SLEEPY_MIB)


@pytest.mark.slow
def test_the_hook_averages_as_ddp_does(train):
    fields = {"model": MODELS + "tiny", "ranks": 2, "cpus": 2, "workers": 2, "accumulate": 2}
    plain, watched = (train(breakdown=on, **fields) for on in (False, True))
    assert watched.status == "ok", watched.reason
    first, second = ([e.train_loss for e in ran.outcome.epochs] for ran in (plain, watched))
    assert first == pytest.approx(second, rel=1e-5)
    # Without a breakdown nobody waits to be timed, but what is exchanged is known.
    assert plain.outcome.result["comm_mib_per_step"] == watched.outcome.result["comm_mib_per_step"] > 0
    assert "--breakdown" in plain.outcome.missing["comm_ms"]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["fsdp", "local"])
@pytest.mark.parametrize(
    "where", [TWO, pytest.param(TWO_GPUS, marks=pytest.mark.multigpu)], ids=["gloo", "nccl"]
)
def test_an_exchange_that_is_no_part_of_its_own_lies_in_the_others(train, strategy, where):
    ran = train(model=MODELS + "slow_forward", **QUICK, **{**where, "strategy": strategy})
    found = times(ran)
    assert found.keys() == set(STEP_TIMES)
    assert found["forward_ms"] >= SLOW_MS
    for name in EXCHANGE:
        assert ran.outcome.missing[name] == REASONS["exchange-unseen"]
    expected = SLEEPY_MIB / 8 if strategy == "local" else 2 * SLEEPY_MIB
    assert ran.outcome.result["comm_mib_per_step"] == pytest.approx(expected, rel=0.01)


# ---------------------------------------------------------------- GPUs


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_on_a_gpu_the_parts_add_up(train, precision):
    ran = train(
        model="resnet18", **{**QUICK, "train_images": 1280}, batch_size=64, input_size=128, epochs=3,
        precision=precision, **ONE_GPU,
    )  # fmt: skip
    found = times(ran)
    assert min(found[name] for name in ("forward_ms", "backward_ms", "optimizer_ms")) > 0
    assert found["backward_ms"] > found["optimizer_ms"]
    assert sum(found.values()) == pytest.approx(step_ms(ran), rel=0.15)


@pytest.mark.gpu
def test_on_a_gpu_time_goes_by_the_device(train):
    ran = train(model=MODELS + "busy_forward", **QUICK, **ONE_GPU)
    found = times(ran)
    slow = found.pop("forward_ms")
    assert slow > 5  # 20 million cycles, at no more than 4 GHz
    assert sum(found.values()) < 0.3 * slow
    assert slow == pytest.approx(step_ms(ran), rel=0.15)


@pytest.mark.gpu
def test_on_a_gpu_the_copy_is_timed(train):
    ran = train(model=MODELS + "tiny", breakdown=True, workers=2, **ONE_GPU)
    assert 0 < times(ran)["copy_ms"] < 50


@pytest.mark.multigpu
def test_on_gpus_the_slowest_rank_is_named(train):
    ran = train(model=MODELS + "slow_second_rank", **QUICK, **TWO_GPUS)
    assert ran.status == "ok", ran.reason
    assert ran.outcome.result["slowest_rank"] == 1
    assert ran.outcome.result["comm_pct"] == pytest.approx(50, abs=15)


@pytest.mark.multigpu
def test_data_parallel_has_parts_and_no_communication_of_its_own(train):
    ran = train(model=MODELS + "tiny", **QUICK, **{**TWO_GPUS, "strategy": "dp"})
    assert times(ran).keys() == set(STEP_TIMES)
    for name in ("comm_ms", "comm_pct", "comm_mib_per_step", "slowest_rank"):
        assert ran.outcome.missing[name] == REASONS["dp"]


@pytest.mark.multigpu
def test_every_ranks_allocator_is_told_by_the_gpus_place(train):
    ran = train(model=MODELS + "tiny", data=None, **TWO_GPUS)
    assert ran.outcome.held.keys() == {"0", "1"}
    for held in ran.outcome.held.values():
        assert held.peak >= held.at_settle > 0
        assert held.peak >= held.allocated_peak > 0
    assert max(d.peak for d in ran.outcome.held.values()) == ran.outcome.result["gpu_mem_reserved_mib"]
