"""What a rank's exception stands for: the messages are those of torch, CUDA's libraries, NCCL and Triton."""

from __future__ import annotations

import pytest
import torch

from gpubench.basics.errors import UnusableError
from gpubench.train.failure import classify_error

OOM = (
    torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 11.90 GiB of which 4.00 MiB "
        "is free. Including non-PyTorch memory, this process has 11.80 GiB memory in use. If reserved but "
        "unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    ),
    RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
    RuntimeError("CUDA driver error: out of memory"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
    torch.distributed.DistBackendError(
        "NCCL error in: ProcessGroupNCCL.cpp:3370, unhandled cuda error (run with NCCL_DEBUG=INFO for details), "
        "NCCL version 2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 2 'out of memory'"
    ),
    torch.distributed.DistBackendError(
        "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error\nLast error:\nFailed to CUDA calloc async 608 bytes"
    ),
)

HOST = (
    MemoryError(),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"
    ),
    RuntimeError("Caught AcceleratorError in pin memory thread for device 0.\nCUDA error: out of memory"),
    RuntimeError("CUDA error: out of memory\ncudaHostAlloc(&ptr, size, 0)"),
    RuntimeError(
        "DataLoader worker (pid 41) is killed by signal: Bus error. It is possible that dataloader's workers are out "
        "of shared memory. Please try to raise your shared memory limit."
    ),
    OSError(12, "Cannot allocate memory"),
    torch.distributed.DistBackendError(
        "NCCL error in: NCCLUtils.cpp:94, unhandled system error\nLast error:\n"
        "Error while creating shared memory segment /dev/shm/nccl-4hAwzN (size 9637888)"
    ),
)

OTHER = (
    RuntimeError("CUDA error: an illegal memory access was encountered"),
    RuntimeError("CUDA error: device-side assert triggered"),
    RuntimeError("mat1 and mat2 shapes cannot be multiplied (32x48 and 47x4)"),
    RuntimeError("out of resource: shared memory, Required: 180224, Hardware limit: 101376."),
    ValueError("CUDA out of memory"),  # a user's own words, not an allocator's
    KeyError("x"),
    RuntimeError(""),
)


def words(error):
    return (str(error) or type(error).__name__).splitlines()[-1][-50:]


@pytest.mark.parametrize("error", OOM, ids=words)
def test_memory_of_the_device_is_a_result(error):
    kind, reason = classify_error(error)
    assert kind == "oom"
    assert reason.startswith(type(error).__name__)
    assert "\n" not in reason


@pytest.mark.parametrize("error", HOST, ids=words)
def test_memory_of_the_host_is_a_failure(error):
    kind, reason = classify_error(error)
    assert kind == "failed"
    assert reason.startswith("the host's memory ran out: ")


@pytest.mark.parametrize("error", OTHER, ids=words)
def test_anything_else_is_a_failure_in_its_own_words(error):
    kind, reason = classify_error(error)
    assert kind == "failed"
    assert reason.startswith(type(error).__name__)
    assert not reason.endswith(": ")


def test_what_nccl_met_is_told_not_only_that_it_met_something():
    error = torch.distributed.DistBackendError(
        "NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version "
        "2.27.5\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
        "Cuda failure 719 'unspecified launch failure'"
    )
    assert classify_error(error) == (
        "failed",
        "DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for "
        "details), NCCL version 2.27.5: Cuda failure 719 'unspecified launch failure'",
    )
    _, reason = classify_error(
        torch.distributed.DistBackendError("NCCL error in: a.cpp:1, internal error\nLast error:\n")
    )
    assert reason == "DistBackendError: NCCL error in: a.cpp:1, internal error"


def test_how_a_loader_s_worker_ended_is_told():
    """torch raises one from the other, or only the first, as the signal comes."""
    signal = RuntimeError("DataLoader worker (pid 41) is killed by signal: Killed. ")
    outer = RuntimeError("DataLoader worker (pid(s) 41) exited unexpectedly")
    assert classify_error(outer)[1] == f"RuntimeError: {outer}"
    outer.__cause__ = signal
    assert classify_error(outer) == classify_error(signal)
    assert classify_error(signal) == ("failed", f"RuntimeError: {str(signal).strip()}")
    outer.__cause__ = KeyError("nothing came")
    assert classify_error(outer)[1] == f"RuntimeError: {outer}"


class UnspeakableError(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UnspeakableError(), "UnspeakableError: (its message can't be had: str() of it raised ValueError)"),
        (ValueError("\x1b[31mred\x1b[0m\x07\x9b2J \ud800 end"), "ValueError: red  2J   end"),
        (ValueError("m" * 10_000_000), "ValueError: " + "m" * 1988),
        (SystemExit("leaving early"), "SystemExit: leaving early"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
    ids=["unspeakable", "coloured", "megabytes", "exit", "interrupt"],
)
def test_whatever_an_error_says_makes_one_harmless_line(error, reason):
    assert classify_error(error) == ("failed", reason)


def test_our_own_errors_speak_for_themselves():
    error = UnusableError("broken image a.jpg: the file is empty")
    assert classify_error(error) == ("failed", str(error))


def test_a_worker_that_crashed_may_have_met_a_damaged_png():
    status, reason = classify_error(
        RuntimeError("DataLoader worker (pid 41) is killed by signal: Segmentation fault. ")
    )
    assert status == "failed"
    assert "is killed by signal: Segmentation fault; a damaged PNG may do that" in reason


def test_a_worker_that_ended_unreported_is_named():
    """Its pipe closes before the kernel reports its end; torch then passes the pipe's error on."""
    loader = iter(torch.utils.data.DataLoader(list(range(8)), num_workers=1))
    get = loader._data_queue.get

    def closed(**_):
        raise EOFError

    loader._data_queue.get = closed
    with pytest.raises(EOFError) as caught:
        next(loader)
    loader._data_queue.get = get
    assert classify_error(caught.value) == (
        "failed",
        "EOFError: a DataLoader worker ended while a batch was read from it",
    )
    assert classify_error(EOFError()) == ("failed", "EOFError")
