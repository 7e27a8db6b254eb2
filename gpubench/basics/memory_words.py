"""How libraries say that an allocation failed: on the device, or on the host."""

from __future__ import annotations

import re

DEVICE_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|CUDA (driver )?error: out of memory|Triton Error \[CUDA\]: out of memory"
    r"|cudaErrorMemoryAllocation|CUDNN_STATUS_(INTERNAL_ERROR_DEVICE_)?ALLOC(ATION)?_FAILED"
    r"|CUBLAS_STATUS_ALLOC_FAILED|NCCL.*out of memory|Failed to CUDA (m|c)alloc|Cuda failure 2 'out of memory'",
    re.IGNORECASE,
)
"""Of CUDA and the libraries above it."""
HOST_OUT_OF_MEMORY = re.compile(
    r"pin(ned)?[_ ]memory|cudaHostAlloc|cudaHostRegister|DefaultCPUAllocator|(?<!resource: )shared memory|\bshm\b"
    r"|Cannot allocate memory",
    re.IGNORECASE,
)
"""The host's memory, pinned or shared: never out of GPU memory, since a smaller batch there would not help."""
