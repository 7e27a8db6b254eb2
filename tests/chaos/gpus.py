"""What the driver shows on the GPUs: whose processes, and how much memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass

SLACK_MIB = 32
GIVE_BACK_S = 15.0
"""How long the driver may take to give memory back."""


@dataclass(frozen=True, slots=True)
class Driver:
    """What it says at one moment."""

    processes: frozenset[str]
    """Process ids with a context."""
    used_mib: tuple[int, ...]
    """Memory in use, one a GPU."""


def look() -> Driver:
    """Asks the driver now, about the GPUs that CUDA_VISIBLE_DEVICES names, or about all."""
    processes = _query("--query-compute-apps=pid")
    return Driver(frozenset(processes), tuple(int(line) for line in _query("--query-gpu=memory.used")))


def left(before: Driver) -> list[str]:
    """What is there that was not before, once the driver has had its time to give memory back."""
    deadline = time.monotonic() + GIVE_BACK_S
    while (found := more(before, look())) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def more(before: Driver, after: Driver) -> list[str]:
    """In words; empty where nothing is left."""
    found = [f"process {pid} on a GPU" for pid in sorted(after.processes - before.processes)]
    for number, (was, now) in enumerate(zip(before.used_mib, after.used_mib, strict=True)):
        if now > was + SLACK_MIB:
            found.append(f"GPU {number}: {now - was} MiB more in use")
    return found


def _query(what: str) -> Sequence[str]:
    command = ["nvidia-smi", what, "--format=csv,noheader,nounits"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    command += ["-i", visible] if visible else []
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout.split()
