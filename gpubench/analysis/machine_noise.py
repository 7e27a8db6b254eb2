"""The machine's own noise, by what limits a configuration: which of it stands in for a row of one process. Pure.

Processes of a configuration that the CPU feeds differ by 11 to 24 %, where the GPU is the limit by 0.2 %: noise fits
only rows that are limited by the same thing. A row that may be limited by several things gets the largest noise of all
of them, and one to which none of what was measured is alike gets none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.analysis.certainty.noise import Noise
from gpubench.schema.borrowed_noise import BorrowedNoise
from gpubench.schema.row import Row

Limit = Literal["gpu", "cpu", "launches", "loader"]
"""The GPU; the CPU that trains; the CPU that launches the GPU's work; the loaders."""

GPU: frozenset[Limit] = frozenset({"gpu"})
CPU: frozenset[Limit] = frozenset({"cpu"})
LAUNCHES: frozenset[Limit] = frozenset({"launches"})
LOADER: frozenset[Limit] = frozenset({"loader"})
NO_WAIT_PCT, WAITS_PCT = 2.0, 10.0
"""Share of the epoch's time in which a device waits for data: up to the first, loaders don't count as the limit; from
the second on, nothing else does."""
HAS_ROOM_PCT, BUSY_PCT = 90.0, 99.0
"""Share of the time in which the GPU has work: below the first it isn't the limit, from the second on it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineKnown:
    """The machine that a result is of."""

    key: str
    """As its records have it: its GPUs with their memory, or its CPU."""
    host: str
    cpu_name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredNoise:
    """How far processes of one configuration differed."""

    configuration: str
    cpus: int
    """That each process had."""
    processes: int
    total_sd: float
    """Between the times of processes, on the log scale; what windows leave open inside each is in it."""
    within_sd: float | None
    """What the steps of one process leave open of its time; None where they are too few to tell."""
    epoch_time_s: float
    gpu_util_pct: float | None = None
    data_wait_pct: float | None = None
    device: Literal["cuda", "cpu"] = "cuda"

    @property
    def freedom(self) -> int:
        return self.processes - 1

    @property
    def limits(self) -> frozenset[Limit]:
        """What it may be limited by."""
        return limits(self.device, self.gpu_util_pct, self.data_wait_pct)


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineNoise:
    """What was measured of one machine on one day."""

    machine: MachineKnown
    day: str
    versions: dict[str, str]
    """Of gpubench, torch, the driver, …"""
    measured: tuple[MeasuredNoise, ...]


def limits(device: str, gpu_util_pct: float | None, data_wait_pct: float | None) -> frozenset[Limit]:
    """What a configuration may be limited by: several things where its figures leave that open, or are not known."""
    if data_wait_pct is not None and data_wait_pct >= WAITS_PCT:
        return LOADER
    others = CPU if device == "cpu" else _of_gpu(gpu_util_pct)
    return others if data_wait_pct is not None and data_wait_pct <= NO_WAIT_PCT else others | LOADER


def _of_gpu(util_pct: float | None) -> frozenset[Limit]:
    if util_pct is None or HAS_ROOM_PCT <= util_pct < BUSY_PCT:
        return GPU | LAUNCHES
    return GPU if util_pct >= BUSY_PCT else LAUNCHES


def borrowed(row: Row, machine: MachineKnown, known: Sequence[MachineNoise]) -> BorrowedNoise | None:
    """The noise that stands in for further processes of this row; None where none fits.

    That of its own machine, measured with as many CPUs; of a trial alone, in one process on one device, for nobody has
    measured how far others differ.
    """
    if not _may_borrow(row):
        return None
    mine = limits(row.device or "", row.gpu_util_pct, row.data_wait_pct)
    found = [
        (one, noise.day)
        for noise in known
        if noise.machine == machine
        for one in noise.measured
        if one.cpus == row.cpus and one.device == row.device and one.limits & mine
    ]
    if not found:
        return None
    one, day = max(found, key=lambda pair: _width(pair[0]))
    own = (row.step_error_pct or 0.0) / 100
    more = max(
        0.0, own**2 - (one.within_sd or 0.0) ** 2
    )  # its window told less than those that the noise is of
    return BorrowedNoise(
        sd=math.sqrt(one.total_sd**2 + more), freedom=one.freedom, day=day, configuration=one.configuration
    )


def _may_borrow(row: Row) -> bool:
    return (
        row.status == "ok"
        and row.source == "measured"
        and row.group is None
        and row.strategy == "single"
        and bool(row.epoch_time_s)
    )


def _width(one: MeasuredNoise) -> float:
    """Half the width of the interval of one process, on the log scale."""
    return Noise(sd=one.total_sd, freedom=one.freedom).half_width()
