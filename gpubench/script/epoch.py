"""`with gpubench.epoch(): …` in somebody's script: tells the sweep that runs it when an epoch began and ended.

Outside a sweep it does nothing. It imports nothing heavy, and of several processes of one script only the first tells.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator

SOCKET = "GPUBENCH_EPOCHS"
"""The environment variable that names the socket to tell it on: a path."""
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Of torchrun and accelerate, and of MPI's launchers: the number of this process among all."""
SEND_LIMIT_S = 5.0


@contextlib.contextmanager
def mark_epoch() -> Iterator[None]:
    """The block is an epoch. One that raises is none."""
    path = os.environ.get(SOCKET)
    is_first = all(os.environ.get(name, "0") == "0" for name in RANK_VARIABLES)
    if path is None or not is_first:
        yield
        return
    _finish_device_work()
    began = time.monotonic()
    _send_mark(path, {"t0": began})
    yield
    _finish_device_work()
    _send_mark(path, {"t0": began, "t1": time.monotonic()})


def _finish_device_work() -> None:
    """Waits until the device has done what torch has launched: an epoch has ended when its last step has."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _send_mark(path: str, mark: dict[str, float]) -> None:
    """Sends one message. A sweep that does not listen any more costs the script nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(SEND_LIMIT_S)
        sock.sendto(json.dumps(mark).encode(), path)
