"""What an error of CUDA, the driver or NCCL means, and what to do about it, by the words that they put it in.

The words are those of CUDA 13's runtime, of torch 2.11 and later, and of NCCL 2.27.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One class of errors."""

    words: str
    """A pattern, of letters in either case."""
    means: str
    do: str


FAULTS: tuple[KnownFault, ...] = (
    KnownFault(
        r"GPU is lost|fallen off the bus|GPU requires (reset|restart)",
        "the driver has lost the GPU",
        "reset it (sudo nvidia-smi --gpu-reset) or reboot; dmesg tells the driver's Xid",
    ),
    KnownFault(
        r"uncorrectable ECC error",
        "memory of the GPU is faulty",
        "nvidia-smi -q -d ECC,ROW_REMAPPER tells more; reset the GPU, and have it replaced if it happens again",
    ),
    KnownFault(
        r"uncorrectable NVLink error|Invalid access of peer GPU memory",
        "a link between GPUs is faulty, or the GPU at its other end",
        "nvidia-smi nvlink -e tells more; reset the GPUs or reboot",
    ),
    KnownFault(
        r"device-side assert|\.cuh?:\d+: ",
        "a kernel met a value that can't be, most often a class or an index out of range",
        "the log names what the kernel checks; with --device cpu, or CUDA_LAUNCH_BLOCKING=1, also the line",
    ),
    KnownFault(
        r"illegal memory access|illegal instruction|misaligned address|invalid program counter"
        r"|hardware stack error|operation not supported on global/shared|unspecified launch failure",
        "a kernel went astray: a fault of a library or an own kernel, or of the GPU",
        "CUDA_LAUNCH_BLOCKING=1 names the line; dmesg tells the driver's Xid",
    ),
    KnownFault(
        r"launch timed out and was terminated",
        "the GPU serves a display, whose driver ends kernels that take seconds",
        "take another GPU, or no display",
    ),
    KnownFault(
        r"device\(s\) is/are busy or unavailable",
        "another process has the GPU for itself, or it is being reset",
        "nvidia-smi shows who; wait, or sudo nvidia-smi -c DEFAULT",
    ),
    KnownFault(
        r"no CUDA-capable device|No CUDA GPUs are available|invalid device ordinal",
        "CUDA does not find a GPU that the driver has listed",
        "nvidia-smi and dmesg should say why; reset it or reboot",
    ),
    KnownFault(
        r"system not yet initialized",
        "the fabric manager does not run",
        "sudo systemctl start nvidia-fabricmanager",
    ),
    KnownFault(
        r"CUDA (error: )?unknown error",
        "the driver is in disorder",
        "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm, or reboot",
    ),
    KnownFault(
        r"MPS (client|server)",
        "the Multi-Process Service fails, for all that use it",
        "end its daemon (echo quit | nvidia-cuda-mps-control), and start it anew",
    ),
    KnownFault(
        r"Watchdog caught collective operation timeout|watchdog got stuck",
        "the ranks waited in vain for one of them",
        "what each printed last may tell; NCCL_P2P_DISABLE=1 tells a faulty link",
    ),
    KnownFault(
        r"remote process exited|communicator was aborted",
        "another rank ended, or the link to it broke",
        "what each rank printed last may tell",
    ),
    KnownFault(
        r"NCCL.*unhandled (system|cuda) error",
        "NCCL did not get what it wants of the system",
        "run once with NCCL_DEBUG=WARN; in a container give more shared memory: --ipc=host",
    ),
)
"""Looked through in this order: the first that fits is the nearest to the cause."""

_FAR = re.compile(
    r"remote process exited|communicator was aborted|gloo|DistNetworkError|Connection (closed|reset)|Broken pipe",
    re.IGNORECASE,
)
_NEAR = re.compile(r"NCCL|DistBackendError", re.IGNORECASE)


def estimate_cause_distance(text: str) -> int:
    """How far an error may be from its cause: 0 at it, 1 from NCCL, which passes on any trouble, 2 of another rank.

    A rank often learns of another's end, and says so, before anybody has seen that end.
    """
    return 2 if _FAR.search(text) else 1 if _NEAR.search(text) else 0


def explain_fault(text: str) -> str | None:
    """What an error means and what to do; None where that is not known."""
    fault = next((f for f in FAULTS if re.search(f.words, text, re.IGNORECASE)), None)
    return f"{fault.means}: {fault.do}" if fault else None


def format_error_with_advice(text: str) -> str:
    """The text of an error with what it means and what to do, where that is known."""
    known = explain_fault(text)
    return f"{text}; {known}" if known else text
