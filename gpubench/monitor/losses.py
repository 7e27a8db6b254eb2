"""GPUs that the driver has lost since NVML was opened: fallen off the bus, or waiting for a reset."""

from __future__ import annotations

from gpubench.monitor.nvml import Nvml, NvmlError


def loss(nvml: Nvml, uuid: str) -> str | None:
    """What the driver says of a GPU that it has lost; None where the GPU answers, or fails for another reason.

    One answer that names the loss is enough. `Unknown Error` is how some drivers put it, and some put a passing
    trouble: it counts only where the GPU answers nothing else.
    """
    asked = (nvml.memory, nvml.utilisation, nvml.temperature_c)
    unclear: list[str] = []
    for ask in asked:
        try:
            ask(uuid)
        except NvmlError as error:
            # The text begins with the call, and which one it was tells nothing here.
            said = str(error).partition(": ")[2] or str(error)
            if error.kind == "lost":
                return said
            if error.kind == "unclear":
                unclear.append(said)
    return unclear[0] if len(unclear) == len(asked) else None
