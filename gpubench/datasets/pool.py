"""Work spread over processes: a function named `module:function`, called for each of many tasks.

Not `multiprocessing`: its children import the caller's main script again, which here is the command line.
These are plain interpreters that know nothing but their task, end when the parent does and leave signals to
it.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from gpubench import linux
from gpubench.errors import UnusableError

Progress = Callable[[int, int], None]
"""Called with (done, total), in images."""

_START = (
    "import sys; sys.path[:] = sys.argv[3:]; from gpubench.datasets import pool; "
    "pool.serve(int(sys.argv[1]), int(sys.argv[2]))"
)
LOOK_S = 0.25
"""How often the caller hears how far it is, also while no image gets done."""
STALL_S = 120.0
"""A worker that takes longer for its few images hangs: a dead mount, a device, a stopped process."""
_PARENTS_AFFAIR = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def each(
    target: str,
    tasks: Sequence[Any],
    *,
    shared: dict[str, Any],
    processes: int | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """Calls `target(task, **shared)` for each task on all CPUs that this process may use; results in order.

    `progress` is called several times a second, and may raise to stop it all. The first exception that a call raises
    is raised here, after the workers have ended, as it is after any exception of the caller's (KeyboardInterrupt).
    Raises UnusableError where a worker dies, or gives no answer for STALL_S.
    """
    count = min(processes or len(os.sched_getaffinity(0)), len(tasks))
    # Chunks small enough that all workers end together, and that progress is seen.
    chunk = max(1, min(32, len(tasks) // (count * 4 or 1)))
    waiting = iter(range(0, len(tasks), chunk))
    results: list[Any] = [None] * len(tasks)
    done = 0
    if progress is not None:
        progress(0, len(tasks))
    with _workers(count) as workers:
        busy: dict[Connection, int] = {}
        since: dict[Connection, float] = {}

        def give(worker: Connection) -> None:
            start = next(waiting, None)
            if start is not None:
                worker.send(tasks[start : start + chunk])
                busy[worker], since[worker] = start, time.monotonic()

        for worker in workers:
            worker.send((target, shared))
            give(worker)
        while busy:
            answers = wait(list(busy), LOOK_S)
            if not answers:
                if progress is not None:
                    progress(done, len(tasks))
                slowest = min(busy, key=since.__getitem__)
                if time.monotonic() - since[slowest] > STALL_S:
                    raise UnusableError(
                        f"a process that works on images gave no answer for {STALL_S:g} s; it may hang at "
                        f"{_named(tasks[busy[slowest]])} or one of the {chunk - 1} after it: "
                        "look whether these files can be read"
                    )
            for ready in answers:
                assert isinstance(ready, Connection)
                start = busy.pop(ready)
                answer = _received(ready)
                results[start : start + len(answer)] = answer
                done += len(answer)
                give(ready)
                if progress is not None:
                    progress(done, len(tasks))
    return results


def _named(task: Any) -> str:
    """The file that a task is about, in a few words."""
    path = next((part for part in (task if isinstance(task, (tuple, list)) else (task,)) if part), task)
    return str(path)[:200]


def _received(worker: Connection) -> list[Any]:
    try:
        answer = worker.recv()
    except (EOFError, ConnectionError) as error:
        raise UnusableError(
            "a process that works on images was killed (out of memory?): try again with fewer processes"
        ) from error
    if isinstance(answer, Exception):
        raise answer
    return list(answer)


@contextmanager
def _workers(count: int) -> Iterator[list[Connection]]:
    children: list[subprocess.Popen[bytes]] = []
    ends: list[Connection] = []
    try:
        for _ in range(count):
            ours, theirs = socket.socketpair()
            with theirs:
                ends.append(Connection(ours.detach()))
                children.append(
                    subprocess.Popen(
                        [sys.executable, "-c", _START, str(theirs.fileno()), str(os.getpid()), *sys.path],
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        # A library's threads would only compete with the other workers.
                        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                        process_group=0,  # a terminal's Ctrl-C is for the parent alone
                    )
                )
        yield ends
    finally:
        for end in ends:
            end.close()
        for child in children:
            child.kill()
        for child in children:
            child.wait()


def serve(descriptor: int, parent_id: int) -> None:
    """A worker's life: one target, then chunks of tasks, until the parent closes its end or is gone.

    Where it blocks in a file it hears nothing of that; then the kernel ends it with its parent.
    """
    linux.die_with_parent(parent_id)
    for number in _PARENTS_AFFAIR:
        signal.signal(number, signal.SIG_IGN)
    with Connection(descriptor) as parent:
        try:
            target, shared = parent.recv()
            module, _, name = target.partition(":")
            work = functools.partial(getattr(importlib.import_module(module), name), **shared)
            while True:
                parent.send(_outcome(work, parent.recv()))
        except (EOFError, ConnectionError):
            return


def _outcome(work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any] | Exception:
    try:
        return [work(task) for task in tasks]
    except Exception as error:  # noqa: BLE001 (raised again in the parent)
        return error
