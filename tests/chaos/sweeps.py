"""What is attacked: tiny sweeps of several units each, so that a random moment falls before, in or between trials."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Role = Literal["parent", "server", "leader", "rank", "loader", "maker", "command", "child"]
"""The sweep itself, the fork server, a trial's leader, a rank, a loader's worker, one that makes images, a user's own
command, and what that has started."""

TIMEOUT_S = 30
"""`--timeout` of every sweep here: how long a stopped rank may hold it up."""
TRAINING: tuple[Role, ...] = ("parent", "server", "leader", "rank")
COMMAND: tuple[Role, ...] = (*TRAINING, "command", "child")


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepKind:
    """One sweep to attack."""

    name: str
    options: tuple[str, ...]
    units: int
    """Trials alone and groups: each is stored in one file."""
    rows: int
    """Of the table: a group has one for each job."""
    roles: tuple[Role, ...]
    """Whose processes it has."""
    gpus: int = 0
    """How many it needs; 0: it runs on the CPU."""


OF_LENET = ("--model", "lenet", "--set", "input_size=28", "--rounds", "1")
LENET = (*OF_LENET, "--epochs", "2")
RESIDENT = (*LENET, "--variant", "synthetic", "--set", "num_classes=4")
STREAM = (*OF_LENET, "--window", "0.3s", "--variant", "synthetic", "--set", "num_classes=4")
ON_CPU = ("--device", "cpu", "--set", "train_images=256")
ON_GPU = ("--device", "cuda", "--set", "train_images=8192")
WILD = ("--device", "cpu", "--rounds", "1")
READ = (*WILD, "--epoch-pattern", r"^Epoch (\d+)", "--metric", r"acc=(\d+)")
RUN_WILD = ("--", sys.executable, str(Path(__file__).with_name("wild.py")), "{part}")

SWEEPS: tuple[SweepKind, ...] = (
    SweepKind(
        name="plain",
        options=(*RESIDENT, *ON_CPU, "--batch-size", "32,64,128"),
        units=3,
        rows=3,
        roles=TRAINING,
    ),
    SweepKind(
        name="loaders",
        options=(*LENET, "--device", "cpu", "--data", "procedural:64x32", "--batch-size", "8,16,32", "--workers", "2"),
        units=3,
        rows=3,
        roles=(*TRAINING, "loader"),
    ),
    SweepKind(
        name="group",
        options=(*STREAM, *ON_CPU, "--job", "batch_size=32", "--job", "batch_size=64"),
        units=3,
        rows=4,
        roles=TRAINING,
    ),
    SweepKind(
        name="ddp",
        options=(*RESIDENT, *ON_CPU, "--strategy", "ddp", "--ranks", "2", "--batch-size", "32,64"),
        units=2,
        rows=2,
        roles=TRAINING,
    ),
    SweepKind(
        name="images",
        options=(
            *LENET, "--device", "cpu", "--data", "procedural:1500x96", "--variant", "pre-resized",
            "--batch-size", "256,512", "--workers", "1",
        ),
        units=2,
        rows=2,
        roles=("parent", "maker"),
    ),
    SweepKind(
        name="command",
        options=(*WILD, "--set", "part=1,2,3", *RUN_WILD, "quiet"),
        units=3,
        rows=3,
        roles=COMMAND,
    ),
    SweepKind(
        name="command-read",
        options=(*READ, "--set", "part=1,2,3", *RUN_WILD, "loud"),
        units=3,
        rows=3,
        roles=COMMAND,
    ),
    SweepKind(
        name="command-marks",
        options=(*WILD, "--set", "part=1,2", *RUN_WILD, "marks"),
        units=2,
        rows=2,
        roles=COMMAND,
    ),
    SweepKind(
        name="command-group",
        options=(*READ, "--job", "part=1", "--job", "part=2", *RUN_WILD, "quiet"),
        units=3,
        rows=4,
        roles=COMMAND,
    ),
    SweepKind(
        name="gpu",
        options=(*RESIDENT, *ON_GPU, "--gpus", "1", "--batch-size", "32,64,128"),
        units=3,
        rows=3,
        roles=TRAINING,
        gpus=1,
    ),
    SweepKind(
        name="gpu-group",
        options=(
            *STREAM, *ON_GPU, "--job", "gpu_ids=0,batch_size=32", "--job", "gpu_ids=0,batch_size=64",
        ),
        units=3,
        rows=4,
        roles=TRAINING,
        gpus=1,
    ),
    SweepKind(
        name="gpu-ddp",
        options=(*RESIDENT, *ON_GPU, "--gpus", "2", "--strategy", "ddp", "--batch-size", "64,128"),
        units=2,
        rows=2,
        roles=TRAINING,
        gpus=2,
    ),
)  # fmt: skip
BY_NAME = {sweep.name: sweep for sweep in SWEEPS}


def on(gpus: int) -> list[SweepKind]:
    """Those for a machine's GPUs; those on the CPU where `gpus` is 0."""
    return [sweep for sweep in SWEEPS if (0 < sweep.gpus <= gpus if gpus else sweep.gpus == 0)]
