"""One attempt at one unit: launch, watch, answer, deadline, end. A single-threaded event loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpubench.basics.errors import UnusableError
from gpubench.basics.stopping import SIGNALS
from gpubench.node.cgroup import find_oom_kill_counter
from gpubench.node.launch.fork_server import ForkServer, LaunchStoppedError, collect_events
from gpubench.node.launch.running_job import RunningJob, call_all_then_raise
from gpubench.node.watch.metrics import LATE_S
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.events import LeaderExit, Proceed, RankExit, StopFilling
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended

VIEW_PERIOD_S = 0.5
FAILED_LIMIT_S = 20.0
"""How long a trial may live on after one of its ranks has failed. Its leader ends the other ranks after 5 s; but a rank
that has told its error may never end, where the driver does not let go of it."""
SIGNAL_GRACE_S = 1.0
"""How much later than a trial's processes this one may be sent the same signal."""
INTERRUPTED: tuple[Ended, str] = ("interrupted", "the sweep was stopped")


def run_attempt(
    orders: Sequence[TrialOrder],
    watchers: Sequence[Watcher],
    launcher: ForkServer,
    *,
    timeout_s: float,
    should_stop: Callable[[], bool],
    look: Callable[[Sequence[JobProgress]], None],
) -> list[Attempt]:
    """Runs one unit to its end, whatever that is; afterwards none of its processes is left.

    `watchers`: of each order's processes. Several orders are jobs of a group: they warm up, begin what is measured at
    one moment, and go on until each of them has its window, or its epochs. What ends one of them ends all.
    """
    kills = find_oom_kill_counter()
    jobs = [RunningJob(order, watcher, kills) for order, watcher in zip(orders, watchers, strict=True)]
    for job in jobs:
        job.watcher.sample_before_trial()

    def train() -> None:
        if _launch_jobs(jobs, launcher, should_stop):
            _run_event_loop(jobs, timeout_s=timeout_s, should_stop=should_stop, look=look)
            if any(_is_ended_by_stop_signal(job) for job in jobs) and wait_for_stop_signal(should_stop):
                for job in jobs:
                    job.forced = INTERRUPTED

    call_all_then_raise([train, *(job.end_and_clean_up for job in jobs)])
    if all(job.has_all_results and not job.forced for job in jobs):
        _read_late_meters(jobs, should_stop)
    return [job.make_attempt() for job in jobs]


def _read_late_meters(jobs: Sequence[RunningJob], should_stop: Callable[[], bool]) -> None:
    """Goes on reading meters that show late what was drawn. Whoever stops the sweep meanwhile has the trial without."""
    if not jobs[0].watcher.has_late_meter:  # all jobs have the same
        return
    until = time.monotonic() + LATE_S
    while time.monotonic() < until and not should_stop():
        for job in jobs:
            job.watcher.sample_after_trial()
        wake = min(until, *(job.watcher.next_deadline() for job in jobs))
        time.sleep(max(0.0, wake - time.monotonic()))


def _is_ended_by_stop_signal(job: RunningJob) -> bool:
    """Whether one of its processes ended by a signal that asks this process to stop."""
    ends = (event.code for event in job.events if isinstance(event, RankExit | LeaderExit))
    return not job.has_all_results and any(-code in SIGNALS for code in ends)


def wait_for_stop_signal(should_stop: Callable[[], bool]) -> bool:
    """Asks for a moment: a batch system signals all processes of a job, and this one may be the last to hear it."""
    deadline = time.monotonic() + SIGNAL_GRACE_S
    while not (stopped := should_stop()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return stopped


def _launch_jobs(jobs: Sequence[RunningJob], launcher: ForkServer, should_stop: Callable[[], bool]) -> bool:
    """Starts all; False where one can't be: the server was there when the sweep began, so this is the unit's ending."""
    for index, job in enumerate(jobs):
        try:
            job.launch(launcher, should_stop)
            job.watcher.attach_to_trial(job.running.pid)
        except LaunchStoppedError:
            for other in jobs:
                other.forced = INTERRUPTED
            return False
        except UnusableError as error:
            job.forced = ("failed", str(error))
            _mark_cut_jobs(jobs, [index])
            return False
    return True


def _run_event_loop(
    jobs: Sequence[RunningJob],
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
            _mark_timed_out(jobs, timeout_s)
            return
        if now >= next_look:
            look([job.read_progress() for job in jobs])
            for job in jobs:
                job.log.punch_middle_hole()
            next_look = now + VIEW_PERIOD_S
        for job in jobs:
            job.watcher.sample_due()
            if job.failed_at is not None and not job.has_all_results:
                deadline = min(deadline, job.failed_at + FAILED_LIMIT_S)
        wake = min(deadline, next_look, *(job.watcher.next_deadline() for job in jobs))
        # Asked first: what an ended job has said last is still to be read.
        over = [not job.has_all_results and job.running.has_leader_ended for job in jobs]
        events_by_job = collect_events(
            [job.running for job in jobs], 0 if any(over) else wake - time.monotonic()
        )
        for job, news in zip(jobs, events_by_job, strict=True):
            for event in news:
                job.handle_event(event)
        broken = [index for index, job in enumerate(jobs) if job.forced]
        if broken:
            _mark_cut_jobs(jobs, broken)
            return
        if all(job.has_all_results for job in jobs):
            return  # what is left is teardown, which may hang or abort: it is not waited for
        for index, (is_over, news) in enumerate(zip(over, events_by_job, strict=True)):
            if is_over and not news:
                _mark_cut_jobs(jobs, [index])
                return
        if len(jobs) > 1:
            _release_barrier_when_warm(jobs)
            _stop_filling_when_measured(jobs)


def _release_barrier_when_warm(jobs: Sequence[RunningJob]) -> None:
    """The barrier: once every rank of every job is warm, all begin what is measured."""
    if jobs[0].released is None and all(job.is_waiting_for_others for job in jobs):
        now = time.monotonic()
        for rank in range(max(job.order.ranks for job in jobs)):
            for job in jobs:
                if rank < job.order.ranks:
                    job.running.reply(rank, Proceed())
        for job in jobs:
            job.released = now
            job.progress = replace(job.progress, waiting=False)


def _stop_filling_when_measured(jobs: Sequence[RunningJob]) -> None:
    """Ends the fillers, once every job has measured what it was to measure."""
    if jobs[0].stopped is None and all(job.progress.filling for job in jobs):
        now = time.monotonic()
        for job in jobs:
            job.stopped = now
            job.running.reply(0, StopFilling())


def _mark_timed_out(jobs: Sequence[RunningJob], timeout_s: float) -> None:
    """Names the jobs that the others waited for: they did not end in time; the others were taken with them."""
    failed = [index for index, job in enumerate(jobs) if job.has_failed]
    if failed:  # its other ranks still have their grace
        _mark_cut_jobs(jobs, failed)
        return
    stages = [job.stage_index for job in jobs]
    late = [index for index, stage in enumerate(stages) if stage == min(stages)]
    for index in late:
        jobs[index].forced = (
            "timeout",
            f"did not end within {timeout_s:g} s{jobs[index].describe_and_log_stacks()}",
        )
    _mark_cut_jobs(jobs, late)


def _mark_cut_jobs(jobs: Sequence[RunningJob], causes: Sequence[int]) -> None:
    """Marks the jobs that end because of others; not one that has failed by itself at the same time."""
    for index, job in enumerate(jobs):
        if index not in causes and not job.has_failed:
            job.cut_by = causes[0]
