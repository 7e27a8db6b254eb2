"""What was seen of a trial from outside, of which columns are made, and what a column's maker returns."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from gpubench.schema.codes import REASONS, SOURCES
from gpubench.schema.events import Finite
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import Samples

AT_ONCE_S = 0.1
"""A pause between two epochs that no reading resolves."""


@dataclass(frozen=True, slots=True)
class Window:
    """An epoch, or the warm-up or the window of a stream."""

    t0: float
    """Seconds on the host's monotonic clock, as the child read it."""
    t1: float
    epoch: int
    measured: bool
    """False: warm-up, left out of statistics."""
    epochs: float = 1.0
    """How many epochs' images it has, mostly a part of one; figures of an epoch are scaled by it."""

    @property
    def seconds(self) -> float:
        return self.t1 - self.t0


@dataclass(frozen=True, slots=True)
class WatchedMeter:
    """A meter of power outside of the GPU that was read while the trial ran."""

    name: str
    metric: str
    """Of its samples, which belong to the host."""
    period_s: Finite
    is_late: bool
    """Whether its readings tell of an earlier time than they have in the samples."""
    is_shared: bool
    """Whether other jobs ran meanwhile: what it tells is all of them together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedTrial:
    """All that was seen of a trial from outside: plain values, of which figures are made."""

    samples: Samples
    windows: Sequence[Window] = ()
    """What they are cut to: put in once it is known which epochs count."""
    gpus: Sequence[str]
    """The trial's GPUs, as the samples name them."""
    baseline_mib: Mapping[str, Finite]
    """Device memory in use before the trial."""
    cpus: Finite
    """CPUs' worth of time that the trial may use."""
    cpu_metric: str
    """The samples that tell all work within that time."""
    cpu_source: str = SOURCES["proc-stat"]
    spare_cpus: Finite = 0.0
    """CPUs that the trial may run on beyond that number: where it is positive, the trial has none in particular."""
    power_source: str = "NVML power"
    skipped: Sequence[tuple[Finite, Sequence[Finite]]] = ()
    """Periods, each with the times of its slots that the watcher came too late for."""
    trained_until: Annotated[float, Meta(ge=0)] = math.inf
    """When training had ended, on the monotonic clock; what came after it was evaluation."""
    passed_mib: Mapping[str, float] = field(default_factory=dict)
    """GPU -> by how much torch's allocator had held more, at its peak, than when training ended: the driver's polls may
    have missed that peak. Put in with the windows."""
    shared: Collection[str] = ()
    """Those of its GPUs that other jobs used meanwhile: what the driver tells of a whole GPU is not the trial's."""
    uuids: Mapping[str, str] = field(default_factory=dict)
    """GPU, as the samples name it -> its UUID; one that is not told is named as there."""
    strangers: Sequence[str] = ()
    """Processes of others on the trial's GPUs, one sentence each."""
    desktops: Sequence[str] = ()
    """Graphics processes on the trial's GPUs, one sentence each."""
    max_sm_clock_mhz: Finite | None = None
    """The highest that the trial's GPUs allow; None: not told."""
    gpu_settings: Mapping[str, bool | Finite | str] = field(default_factory=dict)
    """What its GPUs were set to as it began, by column; without what they differ in, or don't tell."""
    meters: Sequence[WatchedMeter] = ()
    """Those that were asked for; of several nodes the first one's."""
    parts: Sequence[WatchedTrial] = ()
    """Of a trial over several nodes: what was seen on each of them, on one clock. CPUs and the host's memory are those
    of the parts; all else is of the whole."""

    @property
    def hosts(self) -> Sequence[WatchedTrial]:
        """What was seen on each node, cut to the same windows: of the one node, where there is but one."""
        return [replace(part, windows=self.windows) for part in self.parts] or [self]

    def replace_windows(
        self, windows: Sequence[Window], passed_mib: Mapping[str, float] | None = None
    ) -> WatchedTrial:
        """All of it, with the windows that figures are cut to, and with what is put in with them."""
        return replace(self, windows=windows, passed_mib=passed_mib or {})

    @property
    def measured(self) -> list[Window]:
        """The windows that count. Raises Unmeasured where there are none."""
        windows = [window for window in self.windows if window.measured]
        if not windows:
            raise Unmeasured(REASONS["before-window"])
        return windows

    @property
    def spans(self) -> list[Window]:
        """Measured windows that follow each other at once, as one. Raises Unmeasured where there are none."""
        merged: list[Window] = []
        for window in sorted(self.measured, key=lambda w: w.t0):
            if merged and window.t0 - merged[-1].t1 <= AT_ONCE_S:
                merged[-1] = replace(merged[-1], t1=window.t1)
            else:
                merged.append(window)
        return merged

    @property
    def measured_s(self) -> float:
        """Seconds of the windows that count. Raises Unmeasured where there are none."""
        return sum(window.seconds for window in self.measured)

    @property
    def measured_epochs(self) -> float:
        """How many epochs' images they have. Raises Unmeasured where there are none."""
        return sum(window.epochs for window in self.measured)

    def key_by_uuid(self, by_gpu: Mapping[str, float]) -> dict[str, float]:
        """The figures of each GPU, by its UUID in place of the samples' name for it."""
        return {self.uuids.get(gpu, gpu): by_gpu[gpu] for gpu in self.gpus if gpu in by_gpu}

    def count_missed_slots(self, period_s: float | None) -> int:
        """Slots inside the measured windows that the node's watcher came too late for."""
        late = [t for period, times in self.skipped if period == period_s for t in times]
        return sum(window.t0 <= t <= window.t1 for t in late for window in self.windows if window.measured)

    @property
    def used_gpus(self) -> Sequence[str]:
        """The trial's GPUs. Raises Unmeasured where it uses none."""
        if not self.gpus:
            raise Unmeasured(REASONS["no-gpu"])
        return self.gpus


NOTHING = WatchedTrial(samples=Samples(), gpus=(), baseline_mib={}, cpus=0, cpu_metric="")
"""Seen of a trial that never began."""


@dataclass(frozen=True, slots=True)
class SourcedFigure:
    """One column's value and where it comes from."""

    value: float | str
    source: str
    period_s: float | None
    """None: read at certain moments."""
    samples: int
    gaps: int = 0
    by_gpu: Mapping[str, float] = field(default_factory=dict)
    """What it is the sum of, where it is one."""
