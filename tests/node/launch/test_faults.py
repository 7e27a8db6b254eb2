"""Errors of CUDA, the driver and NCCL: the first rank's cause, what it means and what to do, in a bounded time."""

from __future__ import annotations

from pathlib import Path

import pytest
from family import blamed

from gpubench.doctor import remedies
from gpubench.node.launch import attempt
from gpubench.node.launch.faults import format_error_with_advice
from gpubench.node.launch.trial_log import TrialLog
from gpubench.record.outcome import classify_ending
from gpubench.schema.events import Error, RankExit, Result

MODELS = "tests/train/user_models.py:"

ECC = (
    "; memory of the GPU is faulty: nvidia-smi -q -d ECC,ROW_REMAPPER tells more; "
    "reset the GPU, and have it replaced if it happens again"
)

SAID = [
    ("uncorrectable ECC error encountered", "memory of the GPU is faulty"),
    ("uncorrectable NVLink error detected during the execution", "a link between GPUs is faulty"),
    ("Invalid access of peer GPU memory over nvlink or a hardware error", "a link between GPUs is faulty"),
    ("device-side assert triggered", "a kernel met a value that can't be"),
    ("an illegal memory access was encountered", "a kernel went astray"),
    ("an illegal instruction was encountered", "a kernel went astray"),
    ("misaligned address", "a kernel went astray"),
    ("invalid program counter", "a kernel went astray"),
    ("hardware stack error", "a kernel went astray"),
    ("operation not supported on global/shared address space", "a kernel went astray"),
    ("unspecified launch failure", "a kernel went astray"),
    ("the launch timed out and was terminated", "the GPU serves a display"),
    ("CUDA-capable device(s) is/are busy or unavailable", "another process has the GPU"),
    ("no CUDA-capable device is detected", "CUDA does not find a GPU"),
    ("invalid device ordinal", "CUDA does not find a GPU"),
    ("system not yet initialized", "the fabric manager does not run"),
    ("unknown error", "the driver is in disorder"),
    ("MPS client failed to connect to the MPS control daemon or the MPS server", "the Multi-Process Service"),
]
"""What CUDA 13's runtime says, and how that is explained."""
TOLD = [
    *((f"AcceleratorError: CUDA error: {said}", means) for said, means in SAID),
    (
        "rank 1 was ended by SIGABRT; last line of its output: /a/cuda/Index.cu:16: vectorized_gather_kernel",
        "a kernel met a value that can't be",
    ),
    ("RuntimeError: No CUDA GPUs are available", "CUDA does not find a GPU"),
    (
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up",
        "the driver is in disorder",
    ),
    ("RuntimeError: GPU 0 has fallen off the bus.", "the driver has lost the GPU"),
    ("memory: GPU is lost", "the driver has lost the GPU"),
    ("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)", "the ranks waited in vain"),
    (
        "DistBackendError: NCCL error in: NCCLUtils.cpp:94, remote process exited or there was a network error",
        "another rank ended",
    ),
    ("NCCL communicator was aborted on rank 0.", "another rank ended"),
    (
        "DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error (run with NCCL_DEBUG=INFO)",
        "NCCL did not get what it wants",
    ),
    (
        "DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO): "
        "Cuda failure 700 'an illegal memory access was encountered'",
        "a kernel went astray",
    ),
]


@pytest.mark.parametrize(("text", "means"), TOLD, ids=lambda words: words[-30:])
def test_an_error_is_told_with_its_meaning_and_a_remedy(text: str, means: str) -> None:
    told = format_error_with_advice(text)
    assert told.startswith(f"{text}; {means}")
    assert told.count("; " + means) == 1
    assert ": " in told.removeprefix(f"{text}; {means}"), "and what to do"
    assert "\n" not in told
    for known in (remedies.TORCH, remedies.NVML):
        assert told == f"{text}; {remedies.choose_remedy(text, known, '')}", "the doctor says the same"


def error(rank: int, reason: str, at: float) -> Error:
    return Error(rank=rank, kind="failed", reason=reason, at=at)


def aborted(rank: int, at: float) -> RankExit:
    return RankExit(rank=rank, code=-6, killed=False, at=at)


CUDA = "AcceleratorError: CUDA error: unspecified launch failure"
NCCL = "DistBackendError: NCCL error in: a.cpp:1, unhandled cuda error: Cuda failure 719"
REMOTE = "DistBackendError: NCCL error in: a.cpp:1, remote process exited or there was a network error"
GLOO = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1"


@pytest.mark.parametrize(
    ("first", "then", "wins"),
    [
        (error(0, GLOO, 1.0), error(1, CUDA, 2.0), 1),
        (error(0, NCCL, 1.0), error(1, CUDA, 2.0), 1),
        (
            error(0, REMOTE, 1.0),
            error(1, NCCL, 2.0),
            1,
        ),  # of two by NCCL, not the one that heard of the other
        (error(0, NCCL, 2.0), error(1, NCCL, 1.0), 1),
        (error(0, REMOTE, 1.0), aborted(1, 2.0), 1),
        (error(0, CUDA, 1.0), aborted(1, 2.0), 0),
    ],
)
def test_the_rank_at_the_cause_gives_the_reason(first: Error, then: Error | RankExit, wins: int) -> None:
    status, reason = classify_ending([first, then], Result, 2, "")
    assert status == "failed"
    assert f"(rank {wins})" in reason or reason.startswith(f"rank {wins} ")


def test_what_a_watchdog_says_before_it_aborts_is_told_not_its_stack(tmp_path: Path) -> None:
    log = tmp_path / "log"
    what = (
        "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Process group watchdog thread terminated with exception: "
        "CUDA error: an illegal memory access was encountered"
    )
    log.write_text(
        "epoch 1\nterminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"{what}\n"
        "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/ for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Device-side assertion tracking was not enabled by user.\n\n"
        "Exception raised from c10_cuda_check_implementation at /pytorch/c10/cuda/CUDAException.cpp:43\n"
        + "".join(f"frame #{n}: {'c10d::ProcessGroupNCCL::Watchdog::run() + 0x98 ' * 4}\n" for n in range(20))
    )
    words = TrialLog(log).read_last_words()
    assert words == what.strip()
    _, reason = classify_ending([aborted(1, 1.0)], Result, 2, words)
    assert blamed(reason) == (1, "SIGABRT")
    assert words in reason
    assert "; a kernel went astray: " in reason


def test_the_error_is_told_not_what_a_kernel_s_threads_print_of_it(tmp_path: Path) -> None:
    """Seen on two H200s: the abort cut the last of these lines short."""
    said = "  what():  CUDA error: device-side assert triggered"
    threads = "/pytorch/aten/src/ATen/native/cuda/IndexKernelUtils.cu:16: vectorized_gather_kernel"
    log = tmp_path / "log"
    log.write_text(f"{said}\n{threads}: block: [0,0,0], thread: [1,0,0] Assertion `ok` failed.\n{threads}")
    assert TrialLog(log).read_last_words() == said.strip()
    log.write_text(threads)
    assert TrialLog(log).read_last_words() == threads


# ---- real ranks ----


def test_a_rank_with_a_faulty_gpu_gives_the_reason_not_the_rank_that_lost_it(train) -> None:
    ran = train(model=MODELS + "second_rank_has_a_faulty_gpu", ranks=2, cpus=2, workers=2)
    assert ran.status == "failed"
    assert ran.reason.startswith("AcceleratorError: ")
    assert ran.reason.endswith(f"(rank 1){ECC}")
    assert ran.seconds < 20


@pytest.mark.slow
def test_a_rank_that_is_stuck_when_another_dies_is_ended_soon(train) -> None:
    ran = train(
        model=MODELS + "second_rank_is_killed_and_first_is_stuck", data=None, ranks=2, cpus=2, timeout_s=120
    )
    assert ran.status == "failed"
    assert blamed(ran.reason) == (1, "SIGKILL")
    # The leader ends it after 5 s; the parent would after 20 s, the deadline after 120 s.
    assert ran.seconds < 18


def test_a_rank_that_never_ends_after_its_error_ends_the_trial_all_the_same(
    train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "FAILED_LIMIT_S", 1.0)
    ran = train(model=MODELS + "raises_and_does_not_end", data=None, timeout_s=25)
    assert ran.status == "failed"
    assert ran.reason.startswith("AcceleratorError: ")
    assert ran.reason.endswith(ECC)
    assert ran.seconds < 15
