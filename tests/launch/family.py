"""Looking at the processes of a trial from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil

from gpubench.launch.attempt import Progress
from gpubench.launch.client import ForkServer

Family = list[psutil.Process]


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


class Spy:
    """Looks on at a trial until `count` processes work for it, notes them, and does `act` to them."""

    def __init__(self, server: ForkServer, count: int, act: Callable[[Family], object] = len) -> None:
        self.server, self.count, self.act = server, count, act
        self.seen: Family = []

    def __call__(self, progress: Progress) -> None:  # noqa: ARG002
        if not self.seen and len(found := family(self.server)) >= self.count:
            self.seen = found
            self.act(found)
