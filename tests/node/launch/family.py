"""Looking at the processes of a trial from outside."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from gpubench.node.launch.fork_server import ForkServer
from gpubench.schema.attempt import JobProgress

Family = list[psutil.Process]
USER_MODELS = Path("tests/train/user_models.py")


def line_of(function: str, further: int) -> int:
    """The number of a line of the users' models: so many after a function's first."""
    lines = USER_MODELS.read_text().splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.startswith(f"def {function}(")) + further


def gone(process: psutil.Process) -> bool:
    """No longer there, or a zombie that process 1 has not looked at yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def left(processes: Iterable[psutil.Process], within: float) -> Family:
    """Those that have not gone `within` seconds."""
    deadline = time.monotonic() + within
    while (alive := [p for p in processes if not gone(p)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return alive


def family(server: ForkServer) -> Family:
    """Leader, ranks and loader workers of the server's trials."""
    return psutil.Process(server.pid).children(recursive=True)


@dataclass(frozen=True, slots=True)
class Tree:
    """The processes of one trial."""

    leader: psutil.Process
    ranks: Family
    workers: Family
    """Of all its ranks' loaders."""


def trees(server: ForkServer) -> list[Tree]:
    """The server's trials in the order in which they were launched."""
    made = []
    for leader in sorted(psutil.Process(server.pid).children(), key=lambda p: (p.create_time(), p.pid)):
        ranks = leader.children()
        made.append(Tree(leader, ranks, [worker for rank in ranks for worker in rank.children()]))
    return made


def nobody_left(server: ForkServer) -> bool:
    """Whether all trials have gone, zombies included; the server reaps a leader a moment after it was told to."""
    deadline = time.monotonic() + 2
    while (found := family(server)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not found


class Onlooker:
    """Looks on at a group until `when` it is so far, notes all of its processes, and does `act` to its trials."""

    def __init__(
        self,
        server: ForkServer,
        when: Callable[[Sequence[JobProgress]], bool],
        act: Callable[[list[Tree]], object] = len,
    ) -> None:
        self.server, self.when, self.act = server, when, act
        self.seen: Family = []

    def __call__(self, progress: Sequence[JobProgress]) -> None:
        if not self.seen and self.when(progress):
            self.seen = family(self.server)
            self.act(trees(self.server))


class Spy:
    """Looks on at a trial until `count` processes work for it, notes them, and does `act` to them."""

    def __init__(self, server: ForkServer, count: int, act: Callable[[Family], object] = len) -> None:
        self.server, self.count, self.act = server, count, act
        self.seen: Family = []

    def __call__(self, progress: JobProgress) -> None:  # noqa: ARG002
        if not self.seen and len(found := family(self.server)) >= self.count:
            self.seen = found
            self.act(found)


def blamed(reason: str) -> tuple[int, str]:
    """The rank that a trial's reason begins with, and how that ended: the name of a signal, or an exit code."""
    match = re.match(r"rank (\d+)\b.*? (?:was ended by (SIG\w+)|ended with exit code (\d+))", reason)
    assert match, reason
    return int(match[1]), match[2] or match[3]
