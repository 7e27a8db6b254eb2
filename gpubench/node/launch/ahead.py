"""Trials that are made ready ahead of their turns, and wait for them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from functools import partial

from gpubench.basics.errors import UnusableError
from gpubench.node.launch.attempt import VIEW_PERIOD_S, watch
from gpubench.node.launch.launcher import Launcher, StoppedError
from gpubench.node.launch.running_job import RunningJob, Task, call_all
from gpubench.node.watch import host
from gpubench.node.watch.memory_kills import memory_kills
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.missing import Unmeasured


class Waiting:
    """A trial that was made ready. Its processes hold their context and weights, and wait for their turn."""

    def __init__(self, job: RunningJob) -> None:
        self._job = job
        try:
            self.pids = frozenset(host.Tree(job.running.pid).pids())
        except Unmeasured:  # the kernel does not tell, or it has ended meanwhile
            self.pids = frozenset()

    def attempt(
        self,
        *,
        timeout_s: float,
        should_stop: Callable[[], bool],
        look: Callable[[Sequence[JobProgress]], None],
    ) -> Attempt | None:
        """Its turn: as `attempt` runs a unit. None where it has died while it waited; then nothing of it is left."""
        job = self._job
        if job.is_broken():
            self.end()
            return None

        def train() -> None:
            job.take_turn()
            watch([job], timeout_s=timeout_s, should_stop=should_stop, look=look)

        call_all([train, job.end])
        return job.attempt()

    def end(self) -> None:
        """Ends one that gets no turn: it leaves nothing behind, and its log is empty."""
        _drop(self._job)


def make_ready(
    tasks: Sequence[Task],
    launcher: Launcher,
    *,
    limit_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[int], None],
) -> list[Waiting | None]:
    """Makes trials ready side by side: each builds its network, rehearses a step, and waits for its turn.

    None for one that fails at it, or takes longer than `limit_s` seconds; where it was stopped, for all of them. Of
    these nothing is left. `look` is told a few times a second how many are ready.
    """
    kills = memory_kills()
    jobs = [RunningJob(task, kills) for task in tasks]
    ready: list[RunningJob] = []
    try:
        ready = _rehearse(jobs, launcher, limit_s, should_stop, look)
    finally:
        call_all([partial(_drop, job) for job in jobs if job not in ready])
    return [Waiting(job) if job in ready else None for job in jobs]


def _rehearse(
    jobs: Sequence[RunningJob],
    launcher: Launcher,
    limit_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[int], None],
) -> list[RunningJob]:
    """Those that are ready in the end; none where it was stopped."""
    deadline = time.monotonic() + limit_s
    busy: list[RunningJob] = []
    for job in jobs:
        try:
            job.launch(launcher, should_stop)
        except StoppedError:
            return []
        except UnusableError:
            break
        busy.append(job)
    ready: list[RunningJob] = []
    next_look = 0.0
    while busy and (now := time.monotonic()) < deadline:
        if should_stop():
            return []
        if now >= next_look:
            look(len(ready))
            next_look = now + VIEW_PERIOD_S
        wait_s = max(0.0, min(deadline, next_look) - now) / len(busy)
        busy = [job for job in busy if not job.is_broken(wait_s)]
        ready += [job for job in busy if job.is_ready]
        busy = [job for job in busy if not job.is_ready]
    return ready


def _drop(job: RunningJob) -> None:
    """Ends what gets no turn. What it has printed is no trial's."""
    job.end()
    with contextlib.suppress(OSError):
        os.truncate(job.order.log, 0)
