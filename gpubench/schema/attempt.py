"""One attempt at a unit, as the node that runs it tells of it: how far each job is, and in the end what happened.

Plain values, which could come over a network. Times are seconds of the node's own monotonic clock, which starts
anywhere: they are subtracted from each other, and never compared with those of another machine. Of a trial over several
nodes they are of the first node's clock: those of others were put there by the barriers that all ranks leave together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.schema.events import Event, Finite
from gpubench.schema.record import Ended
from gpubench.schema.watched import NOTHING, WatchedTrial


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveReadings:
    """The latest readings, for the live view. None: not known."""

    gpu_mem_mib: float | None = None
    """The trial's memory on its fullest GPU; where the driver does not tell, the growth of device memory, unless
    other jobs share it."""
    gpu_util_pct: float | None = None
    """Mean over the trial's GPUs."""
    cpu_util_pct: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProgress:
    """How far a job is, for whoever looks on."""

    epoch: int = 0
    step: int = 0
    steps: int = 0
    measured: bool = False
    evaluated: int = 0
    """Epochs that were evaluated, on the way to an accuracy."""
    top1_pct: float | None = None
    """What the last evaluation gave."""
    between: bool = False
    """An epoch has ended; neither is it evaluated yet, nor has the next one begun."""
    waiting: bool = False
    """Warmed up: it waits until the other jobs are, too."""
    filling: bool = False
    """It has measured its epochs, and trains on while the other jobs measure theirs."""
    live: LiveReadings = LiveReadings()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialNode:
    """One of several nodes that a trial ran on."""

    name: str
    """Its host's; with its number, where two of them are called the same."""
    first_rank: int
    ranks: int
    gpu_uuids: tuple[str, ...]
    cpus: float
    """CPUs' worth of time that its ranks may use."""
    clock_offset_s: float | None
    """What was added to its clock's times to have the first node's, at the first barrier that both have told of; None:
    the node was lost."""
    clock_drift_s: float | None
    """By how much that had changed at the last one."""
    last_words: str = ""
    """The last line that its processes printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What happened to one job, as it happened."""

    events: Sequence[Event] = ()
    forced: tuple[Ended, str] | None = None
    """The ending that the parent gave: timeout or interrupted."""
    cut_by: int | None = None
    """The job whose end took this one with it, by its index in the group."""
    launched: Finite
    """When the order was given."""
    started: Finite = 0.0
    """When its first process answered."""
    finished: Finite
    """When its last process was reaped."""
    released: Finite | None = None
    """When the parent let all jobs of the group begin what is measured; None: it never did."""
    stopped: Finite | None = None
    """When all jobs had measured theirs, and were told to stop."""
    last_words: str = ""
    """The last line that its processes printed; of several nodes that of the first that printed any."""
    watched: WatchedTrial = NOTHING
    """All that was seen of it from outside."""
    nodes: Sequence[TrialNode] = ()
    """Where its ranks were, in their order; none where all were on one node."""
