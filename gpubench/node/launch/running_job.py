"""One job under way: what its processes said, how far it is, what it ends with."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace

from msgspec import structs

from gpubench.basics.stacks import describe_stacks
from gpubench.node.cgroup import OomKillCounter
from gpubench.node.launch import shared_memory
from gpubench.node.launch.event_checker import format_garbled_reason
from gpubench.node.launch.fork_server import ForkedTrial, ForkServer
from gpubench.node.launch.trial_log import TrialLog
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.events import (
    AskMemory,
    Begin,
    CommandEnded,
    CommandStarted,
    DriverMemory,
    End,
    EpochBegan,
    EpochEnded,
    Error,
    Evaluated,
    Event,
    Filling,
    Garbled,
    Hello,
    KilledForMemory,
    Proceed,
    RankExit,
    Settle,
    Steps,
    StepsDone,
    Warm,
)
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended
from gpubench.schema.workload import WORKLOADS


class RunningJob:
    """One job under way."""

    def __init__(self, order: TrialOrder, watcher: Watcher, kills: OomKillCounter | None) -> None:
        self.order = order
        self.watcher = watcher
        self.log = TrialLog(order.log)
        self.running: ForkedTrial
        self.progress = JobProgress()
        self.events: list[Event] = []
        self.forced: tuple[Ended, str] | None = None
        self.cut_by: int | None = None
        self.launched = self.started = self.finished = 0.0
        self.released: float | None = None
        self.stopped: float | None = None
        self.ready: set[int] = set()
        """Ranks that are warm and wait for the other jobs."""
        self._last_word = WORKLOADS[order.trial.workload].last_word
        self._with_result: set[int] = set()
        self.failed_at: float | None = None
        """When the first word came that it broke."""
        self._kills = kills
        self._killed_before = kills.read_kill_count() if kills else 0
        self.is_launched = False
        self._begun, self._expected_s = 0.0, 0.0
        """When the window under way began, and how long it should take where its rank tells nothing meanwhile."""

    def read_progress(self) -> JobProgress:
        """How far it is, with the latest readings. In a window of which nothing is told, by the time that it takes."""
        progress = replace(self.progress, live=self.watcher.make_live_readings())
        if self._expected_s and not progress.between:
            part = min(1.0, (time.monotonic() - self._begun) / self._expected_s)
            progress = replace(progress, step=int(part * progress.steps))
        return progress

    def launch(self, launcher: ForkServer, should_stop: Callable[[], bool]) -> None:
        self.launched = time.monotonic()
        self.running = launcher.launch(self.order, should_stop)
        self.is_launched = True

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether all of its ranks wait for the other jobs."""
        return len(self.ready) == self.order.ranks

    def end_and_clean_up(self) -> None:
        """Leaves no process behind, nor anything of theirs: what fails to be cleaned keeps nothing else from it."""
        parts: list[Callable[[], object]] = []
        if self.is_launched:
            parts = [
                self._note_memory_kills,
                self.running.end,
                lambda: shared_memory.remove_leftover_segments(self.order.scratch),
                self.watcher.fetch_driver_samples,
                self.log.cut_middle,
            ]
        call_all_then_raise([*parts, self._note_end_time])

    def _note_memory_kills(self) -> None:
        if self._kills and not self.has_all_results:
            count = self._kills.read_kill_count() - self._killed_before
            self.events.append(KilledForMemory(count, self._kills.where))

    def _note_end_time(self) -> None:
        self.finished = time.monotonic()
        self.launched = self.launched or self.finished

    def make_attempt(self) -> Attempt:
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
            last_words=self.log.read_last_words(),
            watched=self.watcher.make_watched(),
        )

    @property
    def has_all_results(self) -> bool:
        """Whether every rank has reported its result."""
        return len(self._with_result) == self.order.ranks

    def describe_and_log_stacks(self) -> str:
        """Where its processes are at this moment and what they printed last, in words; their stacks go to the log."""
        last_words = self.log.read_last_words()
        stacks = self.running.request_stacks()
        for stack in stacks:
            if stack.text:
                self.log.append_note(
                    f"gpubench asked {stack.name} at the deadline where it is:\n{stack.text}"
                )
        where = describe_stacks(stacks)
        last_line = f"; last line of its output: {last_words}" if last_words else ""
        return f"; {where}{last_line}" if where else last_line

    @property
    def has_failed(self) -> bool:
        """Whether it broke. One that has reported its result may abort in its teardown."""
        return not self.has_all_results and self.failed_at is not None

    @property
    def stage_index(self) -> int:
        """How far along it is, among jobs that wait for each other."""
        return (
            self.has_all_results
            + self.progress.filling
            + (self.progress.waiting or self.released is not None)
        )

    def handle_event(self, event: Event) -> None:
        """Notes one event, and answers a rank that waits."""
        if isinstance(event, Steps):  # of every step: kept in a quarter of the room
            event = structs.replace(event, end_us=array("q", event.end_us), wait_us=array("q", event.wait_us))
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
                    epoch=event.epoch,
                    step=0,
                    steps=event.steps,
                    measured=event.measured,
                    between=False,
                )
                self._begun, self._expected_s = time.monotonic(), event.seconds
                watcher.sample_counters_at_edge(first=event.measured and not now.measured)
            case StepsDone():
                self.progress = replace(now, step=event.step)
            case End(rank=0):
                self.progress = replace(now, between=True)
                watcher.sample_counters_at_edge()
            case Evaluated():
                self.progress = replace(
                    now, evaluated=event.epoch + 1, top1_pct=event.top1_pct, between=False
                )
            case Warm():
                self.ready.add(event.rank)
                self.progress = replace(now, waiting=self.is_waiting_for_others)
            case Filling():
                self.progress = replace(now, filling=True)
            case CommandStarted():
                watcher.sample_counters_at_edge(first=True)
                watcher.watch_tree_memory()
            case EpochBegan():
                self.progress = replace(now, epoch=event.epoch, measured=True)
                watcher.sample_counters_at_edge()
            case EpochEnded():
                self.progress = replace(now, epoch=event.epoch + 1, measured=True)
                watcher.sample_counters_at_edge()
            case CommandEnded():
                watcher.sample_counters_at_edge(first=True)
            case AskMemory():
                self.running.reply(event.rank, DriverMemory(driver_mib=watcher.read_trial_gpu_mib()))
            case Settle():
                watcher.sample_final_memory()
                self.running.reply(event.rank, Proceed())
            case Error():
                self.failed_at = self.failed_at or time.monotonic()
            case RankExit() if event.code != 0 or event.rank not in self._with_result:
                self.failed_at = self.failed_at or time.monotonic()
            case Garbled() if not self.has_all_results:  # what is said after the results changes nothing
                self.failed_at = self.failed_at or time.monotonic()
                self.forced = ("failed", format_garbled_reason(event.rank, event.what))


def call_all_then_raise(parts: Iterable[Callable[[], object]]) -> None:
    """Calls each, whatever the ones before have raised. Raises the first error: the others may have come of it."""
    first: BaseException | None = None
    for part in parts:
        try:
            part()
        except BaseException as error:  # noqa: BLE001 - raised again below
            first = first or error
    if first is not None:
        raise first
