"""Why a rank ended: GPU memory ran out (a result), or something broke."""

from __future__ import annotations

import re
from typing import Literal

import torch

from gpubench.errors import GpubenchError

# What CUDA and the libraries above it say when an allocation on the device fails.
_DEVICE_OOM = re.compile(
    r"CUDA out of memory|CUDA (driver )?error: out of memory|Triton Error \[CUDA\]: out of memory"
    r"|cudaErrorMemoryAllocation|CUDNN_STATUS_(INTERNAL_ERROR_DEVICE_)?ALLOC(ATION)?_FAILED"
    r"|CUBLAS_STATUS_ALLOC_FAILED|NCCL.*out of memory|Failed to CUDA (m|c)alloc|Cuda failure 2 'out of memory'",
    re.IGNORECASE,
)
# The host's memory, pinned or shared: never `oom`, since a smaller batch on the GPU would not help.
_HOST_MEMORY = re.compile(
    r"pin(ned)?[_ ]memory|cudaHostAlloc|cudaHostRegister|DefaultCPUAllocator|(?<!resource: )shared memory|\bshm\b"
    r"|Cannot allocate memory",
    re.IGNORECASE,
)

_KILLED_WORKER = re.compile(r"DataLoader worker .* is killed by signal")
_CRASHED_WORKER = re.compile(r"DataLoader worker .*Segmentation fault")
_DAMAGED_PNG = "a damaged PNG does that to torchvision's decoder, and --bad-images skip finds such files"


def _message(error: BaseException) -> str:
    """The error's own words in one line. torch wraps what a loader worker raised into its whole traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Caught ") and "Original Traceback" in lines[1]:
        return lines[-1].partition(": ")[2] or lines[-1]
    return lines[0] if lines else ""


def classify(error: BaseException) -> tuple[Literal["oom", "failed"], str]:
    """The status and the reason, in one line, that `error` stands for."""
    if isinstance(error.__cause__, RuntimeError) and _KILLED_WORKER.search(str(error.__cause__)):
        error = error.__cause__  # torch tells the signal first, and then only that the worker has gone
    first = _message(error)
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    if _CRASHED_WORKER.search(str(error)):
        return "failed", f"{text.rstrip('. ')}; {_DAMAGED_PNG}"
    if isinstance(error, GpubenchError):
        return "failed", first
    if isinstance(error, MemoryError) or _HOST_MEMORY.search(str(error)):
        return "failed", f"the host's memory ran out: {text}"
    if isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and _DEVICE_OOM.search(str(error))
    ):
        return "oom", text
    return "failed", text
