"""A folder in which a test gives the command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import psutil
from warm_command import Started, WarmCommand

SMALL = (
    "--device", "cpu", "--set", "input_size=28", "--data", "procedural:64x32",
    "--epochs", "2", "--rounds", "1",
)  # fmt: skip
TINY = ("--model", "lenet", *SMALL)
LIMIT_S = 180
"""Of a command: whatever takes as long hangs, on the busiest machine."""
LOAD = r"(?: \(other work uses [^)]*\))?"
"""What stands behind an estimate on a busy host, as that of these tests may be."""


class Place:
    """A folder of its own to run `gpubench` in; images and results lie below it."""

    def __init__(self, home: Path, warm: WarmCommand) -> None:
        self.home = home
        self.warm = warm
        self.environment = {
            **os.environ,
            "GPUBENCH_DATA": str(home / "images"),
            "CUDA_VISIBLE_DEVICES": "",
            "COLUMNS": "300",
        }
        self.environment.pop("GPUBENCH_OUT", None)

    def start(self, *arguments: str) -> Started:
        return self.warm.start(arguments, cwd=self.home, env=self.environment)

    def run(self, *arguments: str, trains: bool = True) -> subprocess.CompletedProcess[str]:
        return self.warm.run(arguments, cwd=self.home, env=self.environment, timeout=LIMIT_S, trains=trains)

    def start_cold(self, *arguments: str) -> subprocess.Popen[str]:
        """As users do: with an interpreter that has imported nothing yet."""
        return subprocess.Popen(
            [sys.executable, "-m", "gpubench", *arguments], cwd=self.home, env=self.environment,
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def run_cold(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        running = self.start_cold(*arguments)
        try:
            out, err = running.communicate(timeout=LIMIT_S)
        finally:
            running.kill()
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)

    def files(self) -> set[str]:
        return {str(path.relative_to(self.home)) for path in self.home.rglob("*")}

    def trials(self, name: str = "batch-size") -> pd.DataFrame:
        return pd.read_csv(self.home / "results" / name / "trials.csv").set_index("batch_size").sort_index()


HELD = """
import time
from pathlib import Path
from torch import nn

class Held(nn.Module):
    def __init__(self, classes, inputs):
        super().__init__()
        self.layer = nn.Linear(inputs, classes)

    def forward(self, x):
        while Path({hold!r}).exists():
            time.sleep(0.02)
        return self.layer(x.flatten(1))

def net(num_classes, channels, input_size):
    return Held(num_classes, channels * input_size**2)
"""


def all_gone(family: Sequence[psutil.Process]) -> None:
    until(lambda: not any(_lives(process) for process in family), "its processes to end")


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        time.sleep(0.05)
