"""What only a real GPU shows of a fault: the error comes late, from another call or from NCCL's own thread."""

from __future__ import annotations

import re
from typing import Any

import pytest
from family import blamed

MODELS = "tests/train/user_models.py:"
ON_ONE = {"device": "cuda", "gpus": 1, "gpu_ids": (0,), "cpus": 2, "workers": 2}
ON_TWO = {**ON_ONE, "gpus": 2, "gpu_ids": (0, 1), "strategy": "ddp"}
# As torch tells it in Python, or as the thread that watches NCCL does before it aborts the rank. The abort may come
# before that has been printed: then only the kernel's own words are there.
AS_ERROR = r"AcceleratorError: CUDA error: device-side assert triggered{rank}"
AS_ABORT = (
    r"rank {number} was ended by SIGABRT; last line of its output: "
    r"(what\(\): .*device-side assert triggered|\S+\.cu:\d+: ).*"
)
ADVICE = r"; a kernel met a value that can't be, most often a class or an index out of range: .+"


def check(train: Any, number: int, rank: str, **where: Any) -> None:
    """A trial that looks for an image beyond its batch fails with that cause; the next one on its GPUs is well."""
    ran = train(model=MODELS + f"rank_{number}_goes_astray", **where)
    assert ran.status == "failed"
    error, abort = AS_ERROR.format(rank=rank), AS_ABORT.format(number=number)
    assert re.fullmatch(f"({error}|{abort}){ADVICE}", ran.reason), ran.reason
    # The rank that waits for it in NCCL is ended after 5 s, not at the trial's deadline.
    assert ran.seconds < 45
    # The kernel itself names what it checks.
    assert "Assertion" in ran.log
    after = train(model=MODELS + "tiny", **where)
    assert (after.status, after.reason) == ("ok", "")


@pytest.mark.gpu
def test_an_assert_on_the_device_fails_its_trial_and_not_the_next(train: Any) -> None:
    check(train, 0, "", **ON_ONE)


@pytest.mark.multigpu
@pytest.mark.parametrize("number", [0, 1])
def test_an_assert_in_one_rank_of_two_is_the_reason_and_the_gpus_go_on(train: Any, number: int) -> None:
    check(train, number, rf" \(rank {number}\)", **ON_TWO)


@pytest.mark.multigpu
def test_a_rank_that_waits_in_nccl_for_a_dead_one_is_ended_soon(train: Any) -> None:
    ran = train(model=MODELS + "second_rank_is_killed", timeout_s=120, **ON_TWO)
    assert ran.status == "failed"
    assert blamed(ran.reason) == (1, "SIGKILL")
    assert ran.seconds < 45
    assert train(model=MODELS + "tiny", **ON_TWO).status == "ok"
