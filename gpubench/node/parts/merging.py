"""What happened on each node as what happened to the whole trial: events, ending, samples, on one time line. Pure.

No clock is compared with another. All ranks leave one barrier when a segment begins: that moment is on every node's
clock, so a node's times are put onto the first node's between the barriers that both have told of.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from msgspec import structs

from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt, TrialNode
from gpubench.schema.events import (
    AllocatorMemory,
    End,
    Error,
    Evaluated,
    Event,
    Filling,
    KilledForMemory,
    LeaderExit,
    RankExit,
    Result,
    ServerExit,
    Settle,
    Steps,
)
from gpubench.schema.record import Ended
from gpubench.schema.samples import Samples, Series
from gpubench.schema.watched import WatchedTrial

T = TypeVar("T")

_FIRST_NODE_ONLY = (Evaluated, Settle, Filling)
"""What the first rank of each node tells, and once is enough."""


@dataclass(kw_only=True, slots=True)
class NodePart:
    """One node's part of a trial."""

    host: str
    ranks: int
    gpu_uuids: tuple[str, ...]
    done: Attempt | None = None
    """What happened there, on its own clock; None: it is not over, or was lost."""
    lost: str = ""
    """How, in words."""
    was_stopped: bool = False
    """Whether it was ended because of another node, or because the sweep was stopped."""

    @property
    def is_over(self) -> bool:
        return self.done is not None or bool(self.lost)


@dataclass(frozen=True, slots=True)
class ClockMap:
    """Moments that two nodes have both told of, by each one's own clock, in order."""

    further: Sequence[float]
    """By the further node's."""
    first: Sequence[float]
    """By the first node's."""

    def to_first_clock(self, t: float) -> float:
        """A time of the other node's clock on the first node's."""
        after = bisect_right(self.further, t)
        if after in (0, len(self.further)):
            nearest = max(after - 1, 0)
            return t + self.first[nearest] - self.further[nearest]
        (a, b), (x, y) = self.further[after - 1 : after + 1], self.first[after - 1 : after + 1]
        return x + (y - x) * (t - a) / (b - a)

    @property
    def offset_s(self) -> float:
        """What is added to the other node's times at the first of these moments."""
        return self.first[0] - self.further[0]

    @property
    def drift_s(self) -> float:
        """By how much that had changed at the last one."""
        return self.first[-1] - self.further[-1] - self.offset_s


def make_clock_map(done: Attempt, first: Attempt) -> ClockMap:
    """By the barriers before segments that both have ended; without any by the launch, which both began at once."""
    begins, first_begins = _find_segment_starts(done), _find_segment_starts(first)
    common = sorted(begins.keys() & first_begins.keys())
    if not common:
        return ClockMap([done.launched], [first.launched])
    return ClockMap([begins[number] for number in common], [first_begins[number] for number in common])


def _find_segment_starts(done: Attempt) -> dict[int, float]:
    """Segment -> when the first of a node's ranks to leave the barrier began it."""
    begins: dict[int, float] = {}
    for event in done.events:
        if isinstance(event, End):
            begins[event.epoch] = min(event.t0, begins.get(event.epoch, math.inf))
    return begins


def merge_parts(parts: Sequence[NodePart], *, is_stopped: bool, launched: float, finished: float) -> Attempt:
    """The whole trial, of which the first part is the first node's. `is_stopped`: the sweep was stopped."""
    called = hosts.make_distinct_node_names([part.host for part in parts])
    first_ranks = [sum(part.ranks for part in parts[:number]) for number in range(len(parts))]
    first_gpus = [sum(len(part.gpu_uuids) for part in parts[:number]) for number in range(len(parts))]
    first = parts[0].done
    assert first is not None, "the first node is where this runs"
    lines = [None if part.done is None else make_clock_map(part.done, first) for part in parts]
    events: list[Event] = []
    seen: list[WatchedTrial] = []
    for number, (part, line) in enumerate(zip(parts, lines, strict=True)):
        if part.done is None or line is None:
            continue
        events += [
            _convert_to_trial_event(event, number, first_ranks[number], first_gpus[number], line)
            for event in part.done.events
            if number == 0 or not isinstance(event, _FIRST_NODE_ONLY)
        ]
        seen.append(_convert_watched_to_first_clock(part.done.watched, line) if number else part.done.watched)
    nodes = [
        TrialNode(
            name=name,
            first_rank=first_rank,
            ranks=part.ranks,
            gpu_uuids=part.gpu_uuids,
            cpus=part.done.watched.cpus if part.done else 0.0,
            clock_offset_s=line.offset_s if line else None,
            clock_drift_s=line.drift_s if line else None,
            last_words=part.done.last_words if part.done else "",
        )
        for name, first_rank, part, line in zip(called, first_ranks, parts, lines, strict=True)
    ]
    return Attempt(
        events=events,
        forced=_find_forced_ending(parts, called, events, is_stopped=is_stopped),
        launched=launched,
        started=first.started,
        finished=max(launched, finished),
        last_words=next((node.last_words for node in nodes if node.last_words), ""),
        watched=_merge_watched(seen) if len(seen) == len(parts) else replace(_merge_watched(seen), parts=()),
        nodes=nodes,
    )


# ---------------------------------------------------------------- how it ended


def _find_forced_ending(
    parts: Sequence[NodePart], called: Sequence[str], events: Sequence[Event], *, is_stopped: bool
) -> tuple[Ended, str] | None:
    """The ending that no rank tells; None where the events tell it."""
    if is_stopped:
        return "interrupted", "the sweep was stopped"
    lost = [
        f"node {name} was lost: {part.lost}" for name, part in zip(called, parts, strict=True) if part.lost
    ]
    if lost:
        return "failed", "; ".join(lost)
    forced = [
        (name, part.done.forced)
        for name, part in zip(called, parts, strict=True)
        if part.done and part.done.forced and not (part.was_stopped and part.done.forced[0] == "interrupted")
    ]
    for name, (status, reason) in forced:
        if status == "failed":
            return "failed", f"node {name}: {reason}"
    if any(isinstance(event, Error) or (isinstance(event, RankExit) and event.code) for event in events):
        return None
    late = [f"node {name}: {reason}" for name, (status, reason) in forced if status == "timeout"]
    if late:
        return "timeout", "; ".join(late)
    return _describe_epoch_mismatch(parts, called)


def _describe_epoch_mismatch(parts: Sequence[NodePart], called: Sequence[str]) -> tuple[Ended, str] | None:
    """Where every node has trained to its end, and not the same epochs."""
    attempts = [part.done for part in parts if part.done]
    if any(not any(isinstance(event, Result) for event in attempt.events) for attempt in attempts):
        return None
    windows = [
        {(e.epoch, e.steps, e.measured) for e in attempt.events if isinstance(e, End)} for attempt in attempts
    ]
    for name, node_windows in zip(called, windows, strict=True):
        if node_windows != windows[0]:
            return (
                "failed",
                f"node {name} has trained other epochs than node {called[0]}; do both read the same images?",
            )
    return None


# ---------------------------------------------------------------- what was told


def _convert_to_trial_event(
    event: Event, node: int, first_rank: int, first_gpu: int, line: ClockMap
) -> Event:
    """An event of one node as one of the trial: with the rank's number among all, and on the first node's time line."""
    if isinstance(event, LeaderExit | ServerExit | KilledForMemory):
        return structs.replace(event, node=node)
    changed: dict[str, Any] = {"rank": event.rank + first_rank}
    match event:
        case Steps():
            changed |= {"end_us": array("q", event.end_us), "wait_us": array("q", event.wait_us)}
        case End() if node:
            # How long it took is its own clock's to say, and stays as it is.
            began = line.to_first_clock(event.t0)
            changed |= {"t0": began, "t1": began + event.t1 - event.t0}
        case Result(memory=AllocatorMemory() as memory):
            devices = {str(int(index) + first_gpu): held for index, held in memory.devices.items()}
            changed |= {
                "memory": structs.replace(memory, devices=devices),
                "at": line.to_first_clock(event.at),
            }
        case Error() | Result() | RankExit():
            changed |= {"at": line.to_first_clock(event.at)}
    return structs.replace(event, **changed)


# ---------------------------------------------------------------- what was seen


def _convert_watched_to_first_clock(seen: WatchedTrial, line: ClockMap) -> WatchedTrial:
    """The same, on the first node's time line."""
    samples = Samples()
    for metric, device, series in seen.samples.list_series():
        placed = Series(
            list(map(line.to_first_clock, series.times)), series.values, series.gaps, series.reason
        )
        samples.store_series(metric, device, placed)
    until = seen.trained_until
    return replace(
        seen,
        samples=samples,
        trained_until=until if math.isinf(until) else line.to_first_clock(until),
        skipped=[(period, list(map(line.to_first_clock, times))) for period, times in seen.skipped],
    )


def _merge_watched(seen: Sequence[WatchedTrial]) -> WatchedTrial:
    """All that was seen of the trial, its GPUs and hosts by their nodes' numbers; each node's own stands in `parts`."""
    samples = Samples()
    for node, part in enumerate(seen):
        for metric, device, series in part.samples.list_series():
            samples.store_series(metric, _prefix_device_with_node(node, device), series)
    clocks = [part.max_sm_clock_mhz for part in seen]
    known = [clock for clock in clocks if clock is not None]
    return replace(
        seen[0],
        samples=samples,
        gpus=tuple(_merge_by_device([dict.fromkeys(part.gpus) for part in seen])),
        uuids=_merge_by_device([part.uuids for part in seen]),
        baseline_mib=_merge_by_device([part.baseline_mib for part in seen]),
        trained_until=max(part.trained_until for part in seen),
        strangers=[line for part in seen for line in part.strangers],
        desktops=[line for part in seen for line in part.desktops],
        gpu_settings=dict(set.intersection(*(set(part.gpu_settings.items()) for part in seen))),
        max_sm_clock_mhz=min(known) if known and len(known) == len(clocks) else None,
        parts=tuple(seen),
    )


def _merge_by_device(parts: Sequence[Mapping[str, T]]) -> dict[str, T]:
    return {
        _prefix_device_with_node(node, gpu): value
        for node, part in enumerate(parts)
        for gpu, value in part.items()
    }


def _prefix_device_with_node(node: int, device: str) -> str:
    return f"{node}:{device}" if node else device
