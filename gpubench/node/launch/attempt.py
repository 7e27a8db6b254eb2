"""One attempt at one unit: launch, watch, answer, deadline, end. A single-threaded event loop."""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gpubench.basics.errors import UnusableError
from gpubench.basics.stacks import told
from gpubench.node.launch import shared_memory
from gpubench.node.launch.incoming import garbled
from gpubench.node.launch.launcher import Launcher, Running, StoppedError, events
from gpubench.node.launch.trial_log import TrialLog
from gpubench.node.watch import host
from gpubench.node.watch.memory_kills import MemoryKills, memory_kills
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.events import (
    AskMemory,
    Begin,
    DriverMemory,
    End,
    Error,
    Evaluated,
    Event,
    Filling,
    Garbled,
    GoOn,
    Hello,
    KilledForMemory,
    RankExit,
    Rehearsed,
    Settle,
    Steps,
    StepsDone,
    StopFilling,
    Warm,
)
from gpubench.schema.missing import Unmeasured
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended
from gpubench.schema.workload import WORKLOADS

VIEW_PERIOD_S = 0.25
FAILED_LIMIT_S = 20.0
"""How long a trial may live on after one of its ranks has failed. Its leader ends the other ranks after 5 s; but a rank
that has told its error may never end, where the driver does not let go of it."""
GRACE_S = 5.0
"""How long the other ranks get after one has ended without a result as if all were well: they may wait for it."""
INTERRUPTED: tuple[Ended, str] = ("interrupted", "the sweep was stopped")


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What one job is to run, and who watches it."""

    order: TrialOrder
    watcher: Watcher


def attempt(
    tasks: Sequence[Task],
    launcher: Launcher,
    *,
    timeout_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[Sequence[JobProgress]], None],
) -> list[Attempt]:
    """Runs one unit to its end, whatever that is; afterwards none of its processes is left.

    Several tasks are jobs of a group: they warm up, begin what is measured at one moment, and train on until the
    last of them has measured. What ends one of them ends all.
    """
    kills = memory_kills()
    jobs = [_Job(task, kills) for task in tasks]
    for job in jobs:
        job.watcher.before()

    def train() -> None:
        if _launch(jobs, launcher, should_stop):
            _watch(jobs, timeout_s=timeout_s, should_stop=should_stop, look=look)

    _call_all([train, *(job.end for job in jobs)])
    return [job.attempt() for job in jobs]


# ---------------------------------------------------------------- ahead of their turn


class Waiting:
    """A trial that was made ready. Its processes hold their context and weights, and wait for their turn."""

    def __init__(self, job: _Job) -> None:
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
            _watch([job], timeout_s=timeout_s, should_stop=should_stop, look=look)

        _call_all([train, job.end])
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
    jobs = [_Job(task, kills) for task in tasks]
    ready: list[_Job] = []
    try:
        ready = _rehearse(jobs, launcher, limit_s, should_stop, look)
    finally:
        _call_all([partial(_drop, job) for job in jobs if job not in ready])
    return [Waiting(job) if job in ready else None for job in jobs]


def _rehearse(
    jobs: Sequence[_Job],
    launcher: Launcher,
    limit_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[int], None],
) -> list[_Job]:
    """Those that are ready in the end; none where it was stopped."""
    deadline = time.monotonic() + limit_s
    busy: list[_Job] = []
    for job in jobs:
        try:
            job.launch(launcher, should_stop)
        except StoppedError:
            return []
        except UnusableError:
            break
        busy.append(job)
    ready: list[_Job] = []
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


def _drop(job: _Job) -> None:
    """Ends what gets no turn. What it has printed is no trial's."""
    job.end()
    with contextlib.suppress(OSError):
        os.truncate(job.order.log, 0)


def _call_all(parts: Iterable[Callable[[], object]]) -> None:
    """Calls each, whatever the ones before have raised. Raises the first error: the others may have come of it."""
    first: BaseException | None = None
    for part in parts:
        try:
            part()
        except BaseException as error:  # noqa: BLE001 - raised again below
            first = first or error
    if first is not None:
        raise first


def _launch(jobs: Sequence[_Job], launcher: Launcher, should_stop: Callable[[], bool]) -> bool:
    """Starts all; False where one can't be: the server was there when the sweep began, so this is the unit's ending."""
    for index, job in enumerate(jobs):
        try:
            job.launch(launcher, should_stop)
            job.watcher.start(job.running.pid)
        except StoppedError:
            for each in jobs:
                each.forced = INTERRUPTED
            return False
        except UnusableError as error:
            job.forced = ("failed", str(error))
            _cut(jobs, [index])
            return False
    return True


def _watch(
    jobs: Sequence[_Job],
    *,
    timeout_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[Sequence[JobProgress]], None],
) -> None:
    """The loop: until every job has reported its result, one has ended without, or the parent ends them."""
    deadline = time.monotonic() + timeout_s
    next_look = 0.0
    while True:
        now = time.monotonic()
        if should_stop():
            for job in jobs:
                job.forced = INTERRUPTED
            return
        if now >= deadline:
            _too_late(jobs, timeout_s)
            return
        if now >= next_look:
            look([replace(job.progress, live=job.watcher.now()) for job in jobs])
            for job in jobs:
                job.log.bound()
            next_look = now + VIEW_PERIOD_S
        for job in jobs:
            job.watcher.tick()
            if job.failed_at is not None and not job.complete:
                deadline = min(deadline, job.failed_at + FAILED_LIMIT_S)
        wake = min(deadline, next_look, *(job.watcher.next_deadline() for job in jobs))
        # Asked first: what an ended job has said last is still to be read.
        over = [not job.complete and job.running.ended for job in jobs]
        said = events([job.running for job in jobs], 0 if any(over) else wake - time.monotonic())
        for job, news in zip(jobs, said, strict=True):
            for event in news:
                job.take(event)
        broken = [index for index, job in enumerate(jobs) if job.forced]
        if broken:
            _cut(jobs, broken)
            return
        if all(job.complete for job in jobs):
            return  # what is left is teardown, which may hang or abort: it is not waited for
        for index, (is_over, news) in enumerate(zip(over, said, strict=True)):
            if (is_over and not news) or jobs[index].has_waited_enough:
                _cut(jobs, [index])
                return
        if len(jobs) > 1:
            _release(jobs)
            _stop(jobs)


def _release(jobs: Sequence[_Job]) -> None:
    """The barrier: once every rank of every job is warm, all begin what is measured."""
    if jobs[0].released is None and all(job.is_ready for job in jobs):
        now = time.monotonic()
        for rank in range(max(job.order.ranks for job in jobs)):
            for job in jobs:
                if rank < job.order.ranks:
                    job.running.reply(rank, GoOn())
        for job in jobs:
            job.released = now
            job.progress = replace(job.progress, waiting=False)


def _stop(jobs: Sequence[_Job]) -> None:
    """Ends the fillers, once every job has measured what it was to measure."""
    if jobs[0].stopped is None and all(job.progress.filling for job in jobs):
        now = time.monotonic()
        for job in jobs:
            job.stopped = now
            job.running.reply(0, StopFilling())


def _too_late(jobs: Sequence[_Job], timeout_s: float) -> None:
    """Names the jobs that the others waited for: they did not end in time; the others were taken with them."""
    failed = [index for index, job in enumerate(jobs) if job.has_failed]
    if failed:  # its other ranks still have their grace
        _cut(jobs, failed)
        return
    stages = [job.stage for job in jobs]
    late = [index for index, stage in enumerate(stages) if stage == min(stages)]
    for index in late:
        jobs[index].forced = (
            "timeout",
            f"did not end within {timeout_s:g} s{jobs[index].whereabouts()}",
        )
    _cut(jobs, late)


def _cut(jobs: Sequence[_Job], causes: Sequence[int]) -> None:
    """The jobs that end because of others; not one that has failed by itself at the same time."""
    for index, job in enumerate(jobs):
        if index not in causes and not job.has_failed:
            job.cut_by = causes[0]


class _Job:
    """One job under way."""

    def __init__(self, task: Task, kills: MemoryKills | None) -> None:
        self.order = task.order
        self.watcher = task.watcher
        self.log = TrialLog(task.order.log)
        self.running: Running
        self.progress = JobProgress()
        self.events: list[Event] = []
        self.forced: tuple[Ended, str] | None = None
        self.cut_by: int | None = None
        self.launched = self.started = self.finished = 0.0
        self.released: float | None = None
        self.stopped: float | None = None
        self.ready: set[int] = set()
        """Ranks that are warm and wait for the other jobs, or have rehearsed and wait for their turn."""
        self._last_word = WORKLOADS[task.order.workload].last_word
        self._with_result: set[int] = set()
        self.failed_at: float | None = None
        """When the first word came that it broke."""
        self._left_early: float | None = None
        """When a rank ended as if all were well, without a result."""
        self._kills = kills
        self._killed_before = kills.count() if kills else 0
        self.is_launched = False

    def launch(self, launcher: Launcher, should_stop: Callable[[], bool]) -> None:
        self.launched = time.monotonic()
        self.running = launcher.launch(self.order, should_stop)
        self.is_launched = True

    def take_turn(self) -> None:
        """Watches a trial that was made ready from now on, and lets its ranks train."""
        self.launched = self.started = time.monotonic()
        self._killed_before = self._kills.count() if self._kills else 0
        self.watcher.before()
        self.watcher.start(self.running.pid)
        for rank in range(self.order.ranks):
            self.running.reply(rank, GoOn())

    @property
    def is_ready(self) -> bool:
        """Whether all of its ranks wait: for the other jobs, or for their turn."""
        return len(self.ready) == self.order.ranks

    def is_broken(self, timeout: float = 0) -> bool:
        """Takes what its processes say within `timeout` seconds; whether they have failed, or are gone."""
        over = self.running.ended  # asked first: what an ended job has said last is still to be read
        for event in self.running.events(0 if over else timeout):
            self.take(event)
        return over or self.forced is not None or self.failed_at is not None or self._left_early is not None

    def end(self) -> None:
        """Leaves no process behind, nor anything of theirs: what fails to be cleaned keeps nothing else from it."""
        parts: list[Callable[[], object]] = []
        if self.is_launched:
            parts = [
                self._note_kills,
                self.running.end,
                lambda: shared_memory.clear(self.order.scratch),
                self.watcher.after,
                self.log.close,
            ]
        _call_all([*parts, self._note_end])

    def _note_kills(self) -> None:
        if self._kills and not self.complete:
            count = self._kills.count() - self._killed_before
            self.events.append(KilledForMemory(count, self._kills.where))

    def _note_end(self) -> None:
        self.finished = time.monotonic()
        self.launched = self.launched or self.finished

    def attempt(self) -> Attempt:
        """What happened to it, once it has ended."""
        return Attempt(
            events=self.events,
            forced=self.forced,
            cut_by=self.cut_by,
            launched=self.launched,
            started=self.started,
            finished=self.finished,
            released=self.released,
            stopped=self.stopped,
            last_words=self.log.last_words(),
            watched=self.watcher.watched(),
        )

    @property
    def complete(self) -> bool:
        """Whether every rank has reported its result."""
        return len(self._with_result) == self.order.ranks

    @property
    def has_waited_enough(self) -> bool:
        """Whether ranks may still wait for one that has left without a result, and have had their grace."""
        return (
            not self.complete
            and self._left_early is not None
            and time.monotonic() > self._left_early + GRACE_S
        )

    def whereabouts(self) -> str:
        """Where its processes are at this moment and what they printed last, in words; their stacks go to the log."""
        last_words = self.log.last_words()
        stacks = self.running.stacks()
        for one in stacks:
            if one.text:
                self.log.add(f"gpubench asked {one.name} at the deadline where it is:\n{one.text}")
        where = told(stacks)
        said = f"; last line of its output: {last_words}" if last_words else ""
        return f"; {where}{said}" if where else said

    @property
    def has_failed(self) -> bool:
        """Whether it broke. One that has reported its result may abort in its teardown."""
        return not self.complete and self.failed_at is not None

    @property
    def stage(self) -> int:
        """How far along it is, among jobs that wait for each other."""
        return self.complete + self.progress.filling + (self.progress.waiting or self.released is not None)

    def take(self, event: Event) -> None:
        """Notes one event, and answers a rank that waits."""
        if isinstance(event, Steps):  # of every step: kept in a quarter of the room
            event = replace(event, end_us=array("q", event.end_us), wait_us=array("q", event.wait_us))
        if not isinstance(event, StepsDone | AskMemory):  # many, for hours, and nothing is made of them later
            self.events.append(event)
        now, watcher = self.progress, self.watcher
        if isinstance(event, self._last_word):
            self._with_result.add(event.rank)
        match event:
            case Hello():
                self.started = self.started or time.monotonic()
            case Begin(rank=0):  # all ranks stand at the same edge: once is enough
                self.progress = replace(
                    now,
                    before=now.before + (now.steps if now.measured else 0),
                    epoch=event.epoch,
                    step=0,
                    steps=event.steps,
                    measured=event.measured,
                    between=False,
                )
                watcher.edge(first=event.measured and not now.measured)
            case StepsDone():
                self.progress = replace(now, step=event.step)
            case End(rank=0):
                self.progress = replace(now, between=True)
                watcher.edge()
            case Evaluated():
                self.progress = replace(
                    now, evaluated=event.epoch + 1, top1_pct=event.top1_pct, between=False
                )
            case Warm():
                self.ready.add(event.rank)
                self.progress = replace(now, waiting=self.is_ready)
            case Rehearsed():
                self.ready.add(event.rank)
            case Filling():
                self.progress = replace(now, filling=True)
            case AskMemory():
                self.running.reply(event.rank, DriverMemory(driver_mib=watcher.process_gpu_mib()))
            case Settle():
                watcher.settle()
                self.running.reply(event.rank, GoOn())
            case Error():
                self.failed_at = self.failed_at or time.monotonic()
            case RankExit() if event.code != 0:
                self.failed_at = self.failed_at or time.monotonic()
            case RankExit() if event.rank not in self._with_result:
                self._left_early = self._left_early or time.monotonic()
            case Garbled() if not self.complete:  # what is said after the results changes nothing
                self.failed_at = self.failed_at or time.monotonic()
                self.forced = ("failed", garbled(event.rank, event.what))
