"""Work spread over processes: a function named `module:function`, called for each of many tasks.

Not `multiprocessing`: its children import the caller's main script again, which here is the command line.
These are plain interpreters that know nothing but their task, end when the parent does and leave signals to
it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from gpubench.basics import linux
from gpubench.basics.errors import UnusableError
from gpubench.basics.stopping import SIGNALS

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


def map_on_cpus(
    target: str,
    tasks: Sequence[Any],
    *,
    shared: dict[str, Any],
    processes: int | None = None,
    progress: Progress | None = None,
    stall_s: float = STALL_S,
    silent: bool = False,
) -> list[Any]:
    """Calls `target(task, **shared)` for each task on all CPUs that this process may use; results in order.

    `progress` is called several times a second, and may raise to stop it all. The first exception that a call raises
    is raised here, after the workers have ended, as it is after any exception of the caller's (KeyboardInterrupt).
    Raises UnusableError where a worker dies, or gives no answer for `stall_s`. `silent`: nobody reads what libraries
    write to stderr.
    """
    count = min(processes or len(os.sched_getaffinity(0)), len(tasks))
    # Chunks small enough that all workers end together, and that progress is seen.
    chunk = max(1, min(32, len(tasks) // (count * 4 or 1)))
    waiting = deque((start, min(start + chunk, len(tasks))) for start in range(0, len(tasks), chunk))
    results: list[Any] = [None] * len(tasks)
    done = 0
    if progress is not None:
        progress(0, len(tasks))
    with _start_workers(count, (target, shared), silent=silent) as workers:
        busy: dict[Connection, tuple[int, int]] = {}
        since: dict[Connection, float] = {}

        def give(worker: Connection) -> None:
            if waiting:
                start, end = waiting.popleft()
                worker.send(tasks[start:end])
                busy[worker], since[worker] = (start, end), time.monotonic()

        for worker in workers:
            give(worker)
        while busy:
            answers = wait(list(busy), LOOK_S)
            if not answers:
                if progress is not None:
                    progress(done, len(tasks))
                slowest = min(busy, key=since.__getitem__)
                if time.monotonic() - since[slowest] > stall_s:
                    raise UnusableError(
                        f"a process that works on images gave no answer for {stall_s:g} s; it may hang at one of "
                        f"the {busy[slowest][1] - busy[slowest][0]} from {tasks[busy[slowest][0]]!s:.200}"
                    )
            for ready in answers:
                assert isinstance(ready, Connection)
                start, end = busy.pop(ready)
                answer = _receive_results(ready, tasks[start:end])
                results[start : start + len(answer)] = answer
                done += len(answer)
                give(ready)
                if progress is not None:
                    progress(done, len(tasks))
    return results


def _receive_results(worker: Connection, tasks: Sequence[Any]) -> list[Any]:
    """The results of a worker's tasks, in their order. Raises what a task raised, UnusableError where it died."""
    try:
        answer = worker.recv()
    except (EOFError, ConnectionError):
        raise UnusableError(
            "a process that works on images ended (out of memory, or an image that crashes its decoder) over one of "
            f"the {len(tasks)} from {tasks[0]!s:.200}"
        ) from None
    if isinstance(answer, Exception):
        raise answer
    return list(answer)


@contextlib.contextmanager
def _start_workers(
    count: int, order: tuple[str, dict[str, Any]], *, silent: bool
) -> Iterator[list[Connection]]:
    """Our ends of the channels to worker processes, which know their target. All of them end with the block."""
    children: dict[Connection, subprocess.Popen[bytes]] = {}
    try:
        for _ in range(count):
            our_socket, worker_socket = socket.socketpair()
            with our_socket, worker_socket:
                child = subprocess.Popen(
                    [sys.executable, "-c", _START, str(worker_socket.fileno()), str(os.getpid()), *sys.path],
                    pass_fds=[worker_socket.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL if silent else None,
                    # A library's threads would only compete with the other workers.
                    env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                    process_group=0,  # a terminal's Ctrl-C is for the parent alone
                )
                end = Connection(our_socket.detach())
            children[end] = child
            end.send(order)
        yield list(children)
    finally:
        for end in children:
            end.close()
        for child in children.values():
            child.kill()
        for child in children.values():
            child.wait()


def serve(descriptor: int, parent_id: int) -> None:
    """A worker's life: one target, then chunks of tasks, until the parent closes its end or is gone.

    Where it blocks in a file it hears nothing of that; then the kernel ends it with its parent.
    """
    linux.die_with_parent(parent_id)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with Connection(descriptor) as parent:
        try:
            target, shared = parent.recv()
            module, _, name = target.partition(":")
            try:
                work = functools.partial(getattr(importlib.import_module(module), name), **shared)
            except ImportError as error:
                parent.send(UnusableError(f"{module} can't be imported: {error}"))
                return
            while True:
                tasks = parent.recv()
                try:
                    answer: list[Any] | Exception = [work(task) for task in tasks]
                except Exception as error:  # noqa: BLE001 (raised again in the parent)
                    answer = error
                parent.send(answer)
        except (EOFError, ConnectionError):
            return
