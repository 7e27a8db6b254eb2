"""A child that tries what users wrote themselves: the transforms of a variant, the function of a model.

Run as `python -P -m gpubench.train.user_code_probe PARENT SECONDS` by `gpubench sweep`, with a JSON list of tries on
its standard input. It prints a JSON object a line:

    {"failed": reason}                   torch can't be imported, and it ends
    {"error": reason or null}            of each try, in their order

A try that takes more than SECONDS ends the process by SIGALRM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpubench.basics import linux
from gpubench.basics.errors import GpubenchError, UsageError
from gpubench.schema.order import parse_transforms
from gpubench.train.machine_probe import describe_error


def main(parent: int, limit_s: int) -> None:
    """Tells of each try on the standard output. Never returns: it ends by os._exit."""
    linux.die_with_parent(parent)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a user's file prints must not get between the lines
    tries = json.load(sys.stdin)
    try:
        import torch  # noqa: F401
        import torchvision  # noqa: F401
    except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is the finding
        out.write(json.dumps({"failed": describe_error(error)}) + "\n")
        os._exit(1)
    for arguments in tries:
        signal.alarm(limit_s)
        out.write(json.dumps({"error": describe_try_error(arguments)}) + "\n")
        signal.alarm(0)
    os._exit(0)  # threads that a user's file has started are nobody's any more


def describe_try_error(arguments: Mapping[str, Any]) -> str | None:
    """Why a try fails, in one line; None where it doesn't."""
    try:
        if "model" in arguments:
            from gpubench.train import models

            models.build_model(**arguments)
        else:
            try_transforms(**arguments)
    except GpubenchError as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001 - sys.exit() in a user's file, too, is the finding
        place = _format_error_place(error, arguments["model"]) if "model" in arguments else ""
        return f"{place}{describe_error(error)}"
    return None


def try_transforms(*, cpu: Sequence[Any], gpu: Sequence[Any], input_size: int) -> None:
    """Raises UsageError for an unknown transform or a wrong argument. Those of the GPU are run, on black squares."""
    import torch

    from gpubench.train.data import on_cpu, on_device

    on_cpu.build_cpu_transforms(parse_transforms(cpu, input_size))
    named = parse_transforms(gpu, input_size)
    images = torch.zeros(2, 3, input_size, input_size, dtype=torch.uint8)
    for (name, _), step in zip(named, on_device.build_device_transforms(named), strict=True):
        try:
            images = step(images, torch.Generator())
        except Exception as error:
            raise UsageError(f"transform {name} on the GPU: {' '.join(str(error).split())}") from error


def _format_error_place(error: BaseException, model: str) -> str:
    """`nets.py, line 7: `, where in the user's file, or in one beside it, it went wrong; empty where nowhere there."""
    path = model.rpartition(":")[0]
    given = Path(path).absolute()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename).absolute()
        if not frame.filename.startswith("<") and given.parent in file.parents:
            return f"{path if file == given else file}, line {frame.lineno}: "
    return ""


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
