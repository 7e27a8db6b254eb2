"""GPUs that the driver has lost, before or since NVML was opened: fallen off the bus, or waiting for a reset."""

from __future__ import annotations

from typing import Any

from gpubench.node.watch.nvml import Nvml, NvmlError
from gpubench.node.watch.nvml_calls import MEMORY, TEMPERATURE, UTILISATION, Call

_LOST = ("GPU is lost", "GPU requires restart", "Unknown Error")
"""What the driver says of such a GPU when NVML is opened. One that others may use alone is no loss."""


_LOSS_CALLS: tuple[Call[Any], ...] = (MEMORY, UTILISATION, TEMPERATURE)


def why_lost(nvml: Nvml, uuid: str) -> str | None:
    """What the driver says of a GPU that it has lost; None where the GPU answers, or fails for another reason.

    One answer that names the loss is enough. `Unknown Error` is how some drivers put it, and some put a passing
    trouble: it counts only where the GPU answers nothing else.
    """
    unclear: list[str] = []
    for call in _LOSS_CALLS:
        try:
            nvml.ask(call, uuid)
        except NvmlError as error:
            # The text begins with the call, and which one it was tells nothing here.
            words = str(error).partition(": ")[2] or str(error)
            if error.kind == "lost":
                return words
            if error.kind == "unclear":
                unclear.append(words)
    return unclear[0] if len(unclear) == len(_LOSS_CALLS) else None


def lost_at_start(nvml: Nvml) -> dict[int, str]:
    """NVML's index -> the driver's words, of GPUs that were lost when NVML was opened: no `Device` stands for them."""
    return {n: why for n, why in nvml.unreadable.items() if any(words in why for words in _LOST)}
