"""Who is who below a running sweep, and who of its processes is left. Nothing else is ever signalled.

A sweep's processes are found in two ways: as the tree below it, with each one's place there as its role; and, orphans
included, by a variable in their environment that nothing else on the machine has.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from sweeps import Role

MARK = "GPUBENCH_CHAOS"
"""The environment variable whose value is each attack's own."""
LEAVE_S = 8.0
"""How long processes of a sweep that has ended may take to go."""


def of_role(sweep: psutil.Process, role: Role) -> list[psutil.Process]:
    """Its processes of that role, oldest first; `sweep` is the sweep's own process."""
    try:
        first = sweep.children()
        below = {
            "parent": lambda: [sweep],
            "server": lambda: [p for p in first if _is_forked_by_us(p)],
            "maker": lambda: [p for p in first if any("pool.serve" in word for word in p.cmdline())],
            "leader": lambda: _children(of_role(sweep, "server")),
            "rank": lambda: [p for p in _children(of_role(sweep, "leader")) if _is_forked_by_us(p)],
            "loader": lambda: _children(of_role(sweep, "rank")),
            "command": lambda: _children(of_role(sweep, "rank")),
            "child": lambda: [
                *_children(of_role(sweep, "command")),
                *(p for p in _children(of_role(sweep, "leader")) if not _is_forked_by_us(p)),
            ],
        }
        found: Callable[[], list[psutil.Process]] = below[role]
        return sorted(found(), key=lambda p: (p.create_time(), p.pid))
    except psutil.NoSuchProcess:
        return []


def _is_forked_by_us(process: psutil.Process) -> bool:
    """Whether it is the fork server or came of it without another program: a leader's orphans may be a command's."""
    return "gpubench.node.launch.server" in process.cmdline()


def _children(parents: list[psutil.Process]) -> list[psutil.Process]:
    return [child for parent in parents for child in parent.children()]


def marked(token: str) -> list[psutil.Process]:
    """Every live process of that attack, wherever it stands in the tree of processes. Zombies are none."""
    said = f"{MARK}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        # Others' processes can't be read, and some end meanwhile.
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            if said in (entry / "environ").read_bytes().split(b"\0"):
                found.append(psutil.Process(int(entry.name)))
    return found


def left(token: str, within_s: float = LEAVE_S) -> list[psutil.Process]:
    """Those that have not gone after so many seconds."""
    deadline = time.monotonic() + within_s
    while (alive := marked(token)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive


def told(process: psutil.Process) -> str:
    """A process in words, while it is there."""
    try:
        return f"{process.pid} ({process.status()}, {' '.join(process.cmdline()[:6])[:80]})"
    except psutil.NoSuchProcess:
        return f"{process.pid} (has gone since)"


def end(token: str) -> None:
    """Kills every process of that attack, stopped ones too."""
    while alive := marked(token):
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.05)
