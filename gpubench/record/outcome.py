"""What a trial's events amount to: its ending, its epochs and the columns that the child reports. Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.node.launch.channel import UNHEARD
from gpubench.node.launch.faults import advised, hearsay
from gpubench.record.breakdown import broken_down
from gpubench.record.epochs import EpochRow, counted, epoch_rows, timing
from gpubench.record.target import until_top1
from gpubench.schema.epoch_times import NO_SPREAD
from gpubench.schema.events import (
    Error,
    Event,
    Held,
    Hello,
    KilledForMemory,
    LeaderExit,
    RankExit,
    Result,
    ServerExit,
)
from gpubench.schema.record import Ended


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One attempt, as its processes told it."""

    status: Ended
    reason: str = ""
    epochs: list[EpochRow] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    """Position among the trial's GPUs -> what torch's allocator held there."""
    drift_pct: float | None = None
    """How much slower the first measured steps were than the later ones; None for too few."""
    cuda: str | None = None

    @property
    def counted(self) -> list[EpochRow]:
        """The epochs that figures of an epoch are of."""
        return counted(self.epochs, self.result.get("images_per_epoch"))


def ending(events: Sequence[Event], ranks: int, last_words: str) -> tuple[Ended, str]:
    """How a trial that was left to itself ended, by the first cause that it gave."""
    if len(_results(events)) == ranks:
        return "ok", ""
    said = f"; last line of its output: {last_words}" if last_words else ""
    kills = next((e for e in events if isinstance(e, KilledForMemory)), None)
    for cause in sorted(_causes(events), key=lambda e: (_hearsay(e), e.at)):
        if isinstance(cause, RankExit):
            return "failed", advised(f"rank {cause.rank} {_exit_words(cause.code, kills)}{said}")
        where = f" (rank {cause.rank})" if ranks > 1 else ""
        beside = f"; {_kill_words(kills)}" if cause.kind == "failed" and kills and kills.count else ""
        reason = f"{cause.reason}{where}{beside}"
        return cause.kind, advised(reason) if cause.kind == "failed" else reason
    for event in events:
        match event:
            case LeaderExit(code=0 | 1):  # it saw all ranks end, and could not say so
                return "failed", f"nothing was heard of how its ranks ended{said}; {_SHUT}"
            case ServerExit(code=0):  # somebody else has heard how
                return "failed", f"the fork server has gone, and the trial's processes with it{said}"
            case LeaderExit():
                return "failed", f"the process that leads the trial {_exit_words(event.code, kills)}{said}"
            case ServerExit():
                return "failed", f"the fork server {_exit_words(event.code, kills)}{said}"
    return "failed", f"its processes ended without a result{said}"


_SHUT = "does the model shut down sockets that it has not opened itself?"


def _causes(events: Sequence[Event]) -> list[Error | RankExit]:
    """Errors that ranks reported, and deaths of ranks that could not report any; not those that we caused."""
    errors = [e for e in events if isinstance(e, Error)]
    told = {e.rank for e in errors}
    done = {e.rank for e in _results(events)}
    deaths = [
        e
        for e in events
        if isinstance(e, RankExit)
        and (e.code != 0 or e.rank not in done)
        and e.rank not in told
        and not e.killed
    ]
    return [*errors, *deaths]


def _hearsay(event: Error | RankExit) -> int:
    """How far from the first cause this may be; running out of memory and dying are never another rank's."""
    return hearsay(event.reason) if isinstance(event, Error) and event.kind == "failed" else 0


def _exit_words(code: int, kills: KilledForMemory | None) -> str:
    """How a process ended, in words. `kills`: what the kernel counted meanwhile."""
    if code == 0:
        return "ended with exit code 0 before it had a result"
    if code == UNHEARD:
        return (
            f"ended with exit code {UNHEARD}, as a rank does that can't reach gpubench any more "
            "(does the model close open files that it has not opened itself?)"
        )
    if code > 0:
        return f"ended with exit code {code}"
    known = {s.value: s.name for s in signal.Signals}
    name = known.get(-code, f"signal {-code}")
    hints = {
        "SIGKILL": f" ({_kill_words(kills)})",
        "SIGBUS": " (shared memory, /dev/shm, may be full)",
        "SIGXCPU": " (a limit of CPU time, ulimit -t, was met)",
    }
    return f"was ended by {name}{hints.get(name, '')}"


def _kill_words(kills: KilledForMemory | None) -> str:
    """What is known of the kernel's killing for memory."""
    if kills is None:
        return "the host may have run out of memory"
    if not kills.count:
        return f"not by the kernel for memory: it counts no such kill in {kills.where}"
    what = "a process" if kills.count == 1 else f"{kills.count} processes"
    return f"the kernel killed {what} of {kills.where} for memory meanwhile"


def _results(events: Sequence[Event]) -> list[Result]:
    return [event for event in events if isinstance(event, Result)]


def outcome(
    events: Sequence[Event],
    *,
    ranks: int,
    batch_size: int,
    workers: int,
    prefetch: int,
    steps: int | None,
    no_quality: str,
    forced: tuple[Ended, str] | None,
    last_words: str,
) -> Outcome:
    """All that the events say.

    `workers`: loader processes of the whole trial. `prefetch`: batches that each of them holds ready. `no_quality`: why
    there is no top-1, where there is none. `forced`: the ending that the parent gave (timeout, interrupted), if it did.
    """
    status, reason = forced or ending(events, ranks, last_words)
    own = workers // ranks
    epochs = epoch_rows(events, ranks=ranks, batch_size=batch_size, wave=max(1, own), ahead=own * prefetch)
    cuda = next((e.cuda for e in events if isinstance(e, Hello)), None)
    results = _results(events)
    if status != "ok":
        return Outcome(status=status, reason=reason, epochs=epochs, cuda=cuda)
    first = next(r for r in results if r.rank == 0)
    result = timing(epochs, steps=steps, steps_per_epoch=first.steps_per_epoch, batch_size=batch_size)
    missing: dict[str, str] = {}
    if steps:
        missing["epochs_measured"] = "steps were measured, not whole epochs"
        missing["epoch_time_iqr_s"] = "steps were measured, not whole epochs"
    elif "epoch_time_iqr_s" not in result:
        missing["epoch_time_iqr_s"] = NO_SPREAD
    if first.step_ms:
        result["step_time_ms_p50"] = first.step_ms.p50
        result["step_time_ms_p95"] = first.step_ms.p95
    memory = [r.memory for r in results if r.memory]
    if memory:
        result["gpu_mem_allocated_mib"] = max(m.allocated_mib for m in memory)
        result["gpu_mem_reserved_mib"] = max(m.reserved_mib for m in memory)
        result["gpu_alloc_retries"] = sum(m.retries for m in memory)
    for found, why_not in (broken_down(results), until_top1(epochs, first.until_top1)):
        result |= found
        missing |= why_not
    result["params_m"] = first.params_m
    result["gmacs_per_image"] = first.gmacs_per_image
    if first.gmacs_missing:
        missing["gmacs_per_image"] = first.gmacs_missing
    if first.quality is not None:
        result["top1_pct"], result["loss"] = first.quality
        if result["loss"] is None:
            missing["loss"] = "the loss is not a finite number: training diverged"
    else:
        missing["top1_pct"] = missing["loss"] = no_quality
    return Outcome(
        status="ok",
        epochs=epochs,
        result=result,
        missing=missing,
        phases=dict(first.phases),
        held={index: held for m in memory for index, held in m.devices.items()},
        drift_pct=first.step_drift_pct,
        cuda=cuda,
    )
