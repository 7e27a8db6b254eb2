"""How a trial ended, by its events, and all that they amount to. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.basics.stopping import name_signal
from gpubench.node.launch.faults import estimate_cause_distance, format_error_with_advice
from gpubench.record.epochs import WindowRow
from gpubench.schema.attempt import TrialNode
from gpubench.schema.codes import REASONS
from gpubench.schema.events import (
    Error,
    Event,
    HeldMemory,
    KilledForMemory,
    LeaderExit,
    RankExit,
    RankMessage,
    ServerExit,
)
from gpubench.schema.record import Ended
from gpubench.schema.watched import Window


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One attempt, as its processes told it."""

    status: Ended
    reason: str = ""
    cuda: str | None = None
    decoder: str | None = None
    epochs: Sequence[WindowRow] = ()
    """The windows that every rank finished."""
    windows: Sequence[Window] = ()
    """These windows for who watched: which of them figures are of, and what each stands for."""
    result: dict[str, Any] = field(default_factory=dict)
    """Columns that the ranks' figures fill. Empty where the trial did not end ok."""
    missing: dict[str, str] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    held: dict[str, HeldMemory] = field(default_factory=dict)
    """Position among the trial's GPUs -> what torch's allocator held there."""
    unexplained: str = REASONS["not-reported"]
    """Why a column is empty of which nothing else tells it."""

    @property
    def counted(self) -> list[WindowRow]:
        """Those that figures are of."""
        return [window for window in self.epochs if not window.warmup]


def classify_ending(
    events: Sequence[Event],
    last_word: type[RankMessage],
    ranks: int,
    last_words: str,
    nodes: Sequence[TrialNode] = (),
) -> tuple[Ended, str]:
    """How a trial that was left to itself ended, by the first cause that it gave. `nodes`: where its ranks were."""
    done = {e.rank for e in events if isinstance(e, last_word)}
    if len(done) == ranks:
        return "ok", ""
    counted = {e.node: e for e in events if isinstance(e, KilledForMemory)}

    def facts_of(node: int) -> tuple[KilledForMemory | None, str, str]:
        """What the kernel counted there; where that was; what was printed last there."""
        on, words = (f" on node {nodes[node].name}", nodes[node].last_words) if nodes else ("", last_words)
        return counted.get(node), on, _describe_last_line(words)

    for cause in _list_failure_causes(events, done):
        # On which of the nodes a rank is, its place tells.
        of_rank = next((k for k, node in enumerate(nodes) if cause.rank < node.first_rank + node.ranks), 0)
        kills, on, last_line = facts_of(of_rank)
        if isinstance(cause, RankExit):
            return "failed", format_error_with_advice(
                f"rank {cause.rank}{on} {_describe_exit(cause.code, kills)}{last_line}"
            )
        where = f" (rank {cause.rank}{on})" if ranks > 1 else ""
        beside = f"; {_describe_kills(kills)}" if cause.kind == "failed" and kills and kills.count else ""
        reason = f"{cause.reason}{where}{beside}"
        return cause.kind, format_error_with_advice(reason) if cause.kind == "failed" else reason
    for event in events:
        if not isinstance(event, LeaderExit | ServerExit):
            continue
        kills, on, last_line = facts_of(event.node)
        who = "the process that leads the trial" if isinstance(event, LeaderExit) else "the fork server"
        return "failed", f"{who}{on} {_describe_exit(event.code, kills)}{last_line}"
    return "failed", f"its processes ended without a result{_describe_last_line(last_words)}"


def _describe_last_line(words: str) -> str:
    return f"; last line of its output: {words}" if words else ""


def _list_failure_causes(events: Sequence[Event], done: Collection[int]) -> list[Error | RankExit]:
    """Errors that ranks reported, and deaths of ranks that could not report any, the nearest to the first cause first;
    not those that we caused. `done`: the ranks that have done their work.
    """
    errors = [e for e in events if isinstance(e, Error)]
    reporting = {e.rank for e in errors}
    deaths = [
        e
        for e in events
        if isinstance(e, RankExit)
        and (e.code != 0 or e.rank not in done)
        and e.rank not in reporting
        and not e.killed
    ]

    def rank_by_cause(event: Error | RankExit) -> tuple[int, float]:
        """Running out of memory and dying are never another rank's."""
        if isinstance(event, Error) and event.kind == "failed":
            return estimate_cause_distance(event.reason), event.at
        return 0, event.at

    return sorted([*errors, *deaths], key=rank_by_cause)


def _describe_exit(code: int, kills: KilledForMemory | None) -> str:
    """How a process ended, in words. `kills`: what the kernel counted meanwhile."""
    if code == 0:
        return "ended with exit code 0 before it had a result"
    if code > 0:
        return f"ended with exit code {code}"
    name = name_signal(-code)
    hints = {
        "SIGKILL": f" ({_describe_kills(kills)})",
        "SIGBUS": " (shared memory, /dev/shm, may be full)",
        "SIGXCPU": " (a limit of CPU time, ulimit -t, was met)",
    }
    return f"was ended by {name}{hints.get(name, '')}"


def _describe_kills(kills: KilledForMemory | None) -> str:
    """What is known of the kernel's killing for memory."""
    if kills is None:
        return "the host may have run out of memory"
    if not kills.count:
        return f"not by the kernel for memory: it counts no such kill in {kills.where}"
    what = "a process" if kills.count == 1 else f"{kills.count} processes"
    return f"the kernel killed {what} of {kills.where} for memory meanwhile"
