"""What happened on each node as what happened to the whole trial: events, ending, samples, on one clock. Pure."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpubench.node.agents.clock import Clocks
from gpubench.node.launch.faults import hearsay
from gpubench.schema import hosts
from gpubench.schema.attempt import Attempt, OnNode
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
from gpubench.schema.watched import Watched

_OF_FIRST_ONLY = (Evaluated, Settle, Filling)
"""What the first rank of each node tells, and once is enough."""
_CLOCKED: dict[type, tuple[str, ...]] = {
    End: ("t0", "t1"), Error: ("at",), Result: ("at",), RankExit: ("at",), Filling: ("at",),
}  # fmt: skip
"""Event -> its fields that are times of its node's clock."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePart:
    """One node's part of a trial."""

    host: str
    ranks: int
    gpu_uuids: tuple[str, ...]
    clocks: Clocks
    done: Attempt | None
    """What happened there, on its own clock; None: its agent was lost."""
    lost: str = ""
    """How, in words."""
    was_stopped: bool = False
    """Whether it was ended because of another node, or because the sweep was stopped."""


def merged(parts: Sequence[NodePart], *, is_stopped: bool, launched: float, finished: float) -> Attempt:
    """The whole trial. `is_stopped`: the sweep was stopped; the times are of the first node's clock."""
    called = hosts.told_apart([part.host for part in parts])
    first_ranks = [sum(part.ranks for part in parts[:number]) for number in range(len(parts))]
    first_gpus = [sum(len(part.gpu_uuids) for part in parts[:number]) for number in range(len(parts))]
    events: list[Event] = []
    seen: list[Watched] = []
    for number, part in enumerate(parts):
        if part.done is None:
            continue
        events += [
            _of_all(event, number, first_ranks[number], first_gpus[number], part.clocks.aligned)
            for event in part.done.events
            if number == 0 or not isinstance(event, _OF_FIRST_ONLY)
        ]
        seen.append(_aligned(part.done.watched, part.clocks.aligned))
    nodes = [
        OnNode(
            name=name,
            first_rank=first,
            ranks=part.ranks,
            gpu_uuids=part.gpu_uuids,
            cpus=part.done.watched.cpus if part.done else 0.0,
            clock_offset_s=part.clocks.begin.offset,
            clock_drift_s=part.clocks.drift_s,
            clock_error_s=part.clocks.error_s,
        )
        for name, first, part in zip(called, first_ranks, parts, strict=True)
    ]
    forced = _forced(parts, called, events, is_stopped=is_stopped)
    told = [part.done for part in parts if part.done]
    return Attempt(
        events=events,
        forced=forced,
        launched=launched,
        started=told[0].started if told else 0.0,
        finished=max(launched, finished),
        last_words=_last_words(parts),
        watched=_together(seen) if len(seen) == len(parts) else replace(_together(seen), parts=()),
        nodes=nodes,
    )


# ---------------------------------------------------------------- how it ended


def _forced(
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
    return _unlike_windows(parts, called)


def _unlike_windows(parts: Sequence[NodePart], called: Sequence[str]) -> tuple[Ended, str] | None:
    """Where every node has trained to its end, and not the same epochs."""
    told = [part.done for part in parts if part.done]
    if any(not any(isinstance(event, Result) for event in one.events) for one in told):
        return None
    windows = [{(e.epoch, e.steps, e.measured) for e in one.events if isinstance(e, End)} for one in told]
    for name, own in zip(called, windows, strict=True):
        if own != windows[0]:
            return (
                "failed",
                f"node {name} has trained other epochs than node {called[0]}; do both read the same images?",
            )
    return None


def _last_words(parts: Sequence[NodePart]) -> str:
    """What was printed last on the node where it broke first."""
    causes: list[tuple[int, float, str]] = []
    for part in parts:
        for event in part.done.events if part.done else ():
            if isinstance(event, RankExit) and event.code and not event.killed:
                causes.append((0, part.clocks.aligned(event.at), part.done.last_words if part.done else ""))
            elif isinstance(event, Error):
                far = hearsay(event.reason) if event.kind == "failed" else 0
                causes.append((far, part.clocks.aligned(event.at), part.done.last_words if part.done else ""))
    if causes:
        return min(causes)[2]
    return next((part.done.last_words for part in parts if part.done and part.done.last_words), "")


# ---------------------------------------------------------------- what was told


def _of_all(
    event: Event, node: int, first_rank: int, first_gpu: int, aligned: Callable[[float], float]
) -> Event:
    """An event of one node as one of the trial: with the rank's number among all, and on the first node's clock."""
    if isinstance(event, LeaderExit | ServerExit | KilledForMemory):
        return replace(event, node=node)
    changed: dict[str, Any] = {"rank": event.rank + first_rank}
    changed |= {name: aligned(getattr(event, name)) for name in _CLOCKED.get(type(event), ())}
    match event:
        case Steps():
            changed |= {"end_us": array("q", event.end_us), "wait_us": array("q", event.wait_us)}
        case Result(memory=AllocatorMemory() as memory):
            devices = {str(int(index) + first_gpu): held for index, held in memory.devices.items()}
            changed["memory"] = replace(memory, devices=devices)
    return dataclasses.replace(event, **changed)


# ---------------------------------------------------------------- what was seen


def _aligned(seen: Watched, aligned: Callable[[float], float]) -> Watched:
    """The same, on the first node's clock."""
    samples = Samples()
    for (metric, device), one in seen.samples.each():
        samples.put(metric, device, Series([aligned(t) for t in one.times], one.values, one.gaps, one.reason))
    until = seen.trained_until
    return replace(
        seen,
        samples=samples,
        trained_until=until if math.isinf(until) else aligned(until),
        skipped={period: tuple(map(aligned, times)) for period, times in seen.skipped.items()},
    )


def _together(seen: Sequence[Watched]) -> Watched:
    """All that was seen of the trial, its GPUs and hosts by their nodes' numbers; each node's own stands in `parts`."""
    samples = Samples()
    for node, one in enumerate(seen):
        for (metric, device), series in one.samples.each():
            samples.put(metric, _named(node, device), series)
    clocks = [one.max_sm_clock_mhz for one in seen]
    known = [clock for clock in clocks if clock is not None]
    return replace(
        seen[0],
        samples=samples,
        gpus=tuple(_named(node, gpu) for node, one in enumerate(seen) for gpu in one.gpus),
        uuids={_named(node, gpu): uuid for node, one in enumerate(seen) for gpu, uuid in one.uuids.items()},
        baseline_mib={
            _named(node, gpu): mib for node, one in enumerate(seen) for gpu, mib in one.baseline_mib.items()
        },
        trained_until=max(one.trained_until for one in seen),
        strangers=[said for one in seen for said in one.strangers],
        desktops=[said for one in seen for said in one.desktops],
        max_sm_clock_mhz=min(known) if known and len(known) == len(clocks) else None,
        parts=tuple(seen),
    )


def _named(node: int, device: str) -> str:
    return f"{node}:{device}" if node else device
