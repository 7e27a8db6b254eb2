"""Why a rank ended: GPU memory ran out (a result), or something broke."""

from __future__ import annotations

import re
import traceback
from typing import Literal

import torch

from gpubench.basics.errors import GpubenchError
from gpubench.basics.memory_words import DEVICE_OUT_OF_MEMORY, HOST_OUT_OF_MEMORY
from gpubench.basics.quoted import LONGEST, clean_line

_CRASHED_WORKER = re.compile(r"DataLoader worker \(pid \d+\).*Segmentation fault")
_DAMAGED_PNG = "a damaged PNG may do that to torchvision's decoder, and --bad-images skip finds such files"

MOST_WORDS = 100_000
"""Characters of an error's words that are looked at."""


def _read_message(error: BaseException) -> str:
    """All that the error says. A user's own may fail to say it."""
    try:
        return str(error)[:MOST_WORDS]
    except Exception as inner:  # noqa: BLE001 - whatever it raises, the first error is the one to tell
        return f"(its message can't be had: str() of it raised {type(inner).__name__})"


def _extract_cause_line(words: str) -> str:
    """The error's own words in one line.

    torch wraps what a loader worker raised into its whole traceback. NCCL names the cause below a line of its own.
    """
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("Caught ") and "Original Traceback" in lines[1]:
        return lines[-1].partition(": ")[2] or lines[-1]
    if "Last error:" in lines[:-1]:
        cause = lines[lines.index("Last error:") + 1]
        return f"{lines[0]}: {cause}"
    return lines[0] if lines else ""


def _is_loader_error(error: BaseException) -> bool:
    """Whether torch's DataLoader raised it."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__") == "torch.utils.data.dataloader" for frame, _ in frames)


def classify_error(error: BaseException) -> tuple[Literal["oom", "failed"], str]:
    """The status and the reason, in one line of harmless text, that `error` stands for."""
    kind, reason = _classify(error)
    return kind, clean_line(reason, LONGEST)


def _classify(error: BaseException) -> tuple[Literal["oom", "failed"], str]:
    if isinstance(error.__cause__, RuntimeError) and "exited unexpectedly" in _read_message(error):
        error = error.__cause__  # a loader's worker: how it ended is told by the error beneath
    words = _read_message(error)
    first = _extract_cause_line(words)
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    if isinstance(error, EOFError | ConnectionError) and _is_loader_error(error):
        # torch names the worker only where the kernel has reported its end already.
        return "failed", f"{text}: a DataLoader worker ended while a batch was read from it"
    if _CRASHED_WORKER.search(words):
        return "failed", f"{text.rstrip('. ')}; {_DAMAGED_PNG}"
    if isinstance(error, GpubenchError):
        return "failed", first
    if isinstance(error, MemoryError) or HOST_OUT_OF_MEMORY.search(words):
        return "failed", f"the host's memory ran out: {text}"
    if isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and DEVICE_OUT_OF_MEMORY.search(words)
    ):
        return "oom", text
    return "failed", text
